# SPDX-License-Identifier: Apache-2.0
"""What a program does at run time on one switch: take over, listen to digests, measure, decide, write.

class Control(SwitchControl):
    @on_digest("port_report_t")
    async def report(self, client, values): ...

    @every(0.25)
    async def decide(self, client): ...
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from finsy import P4TableEntry

from fairlane_controller.errors import unknown_name
from fairlane_controller.program.requests import Request
from fairlane_controller.state.run_state import RunState, SwitchState
from fairlane_controller.switch.client import DIGEST_LIST_MAX, DIGEST_LIST_S, Endpoint, SwitchClient
from fairlane_controller.switch.difference import sort_entries

if TYPE_CHECKING:
    from fairlane_controller.program.contract import Program

_F = TypeVar("_F", bound=Callable[..., Any])
_HOOK = "_fairlane_hook"


class Session(Protocol):
    """The session of a switch as its control has it (`loop/agent.py`)."""

    endpoint: Endpoint
    state: SwitchState | None
    "The switch in the run state."
    writes: asyncio.Lock
    "Held by whoever writes to the switch."
    dry_run: bool
    "Whether what is written is dropped: measure and decide, as if it were in force."

    @property
    def log(self) -> Any:
        """The event log: `log.write(event, **fields)`."""
        ...

    def event(self, event: str, **fields: Any) -> None:
        """One line of the event log, of this switch; `why=` is its sentence."""
        ...

    async def attempt(
        self, client: SwitchClient, what: str, act: Callable[[SwitchClient], Awaitable[Any]], *, keep: bool = True
    ) -> bool:
        """Write something; False when it is refused, which is noted, and with `keep` tried again later."""
        ...

    def connected(self) -> SwitchClient:
        """The client; raises what is wrong when there is none."""
        ...


class SwitchControl:
    """The run time of a program on one switch; made once, and kept over lost connections. Its clock is the event loop's."""

    def __init__(self, session: Session, topology: Any) -> None:
        self.session = session
        self.topology = topology
        "The program's `TopologyControl`."

    def entries_after_restart(self) -> Iterable[P4TableEntry]:
        """What a switch that has restarted gets besides its routes: by default what the program wants of the topology's ports."""
        run = self.topology.run
        if run is None:
            return ()
        program = self.topology.program
        wanted = program.initial_plan(run).wanted(self.session.endpoint.name, {})
        return sort_entries(wanted.entries, program.tables)

    async def observe(self, client: SwitchClient) -> None:
        """As the backup: remember what the switch would need after a restart. Reads only."""

    async def take_over(self, client: SwitchClient) -> None:
        """Go on from what the switch has: called with each new connection, before `jobs`."""

    def jobs(self, client: SwitchClient) -> Sequence[Coroutine[Any, Any, Any]]:
        """What runs while the switch is connected: by default the methods with `on_digest`, `on_idle` and `every`."""
        hooks = [(method, getattr(method, _HOOK)) for _, method in inspect.getmembers(self) if hasattr(method, _HOOK)]
        return [job(method, client) for method, job in hooks]

    async def changed(self, client: SwitchClient) -> None:
        """Somebody else wrote entries or settings: read them again and go on from them."""

    def use_options(self) -> None:
        """The options of `topology` have changed: work with them from now on."""

    def status(self) -> dict[str, Any]:
        """What it knows, as plain data, beside what the core says of the switch."""
        return {}

    def measurements(self) -> list[dict[str, Any]]:
        """What it measures, one object a managed port."""
        return []


class TopologyControl:
    """The run time of a program on a whole topology: what its switches' controls share, and what people ask for."""

    control_type: ClassVar[type[SwitchControl]] = SwitchControl
    requests: ClassVar[Mapping[str, type[Request]]] = {}
    """Requests of the control socket of its own, which `handle` answers, by op; each is checked by its model before."""
    needs_all_switches: ClassVar[bool] = False
    "Whether a loop must keep every switch of the topology."
    dry_run_observes: ClassVar[bool] = False
    "Whether a dry run looks on as a backup does, instead of being the primary."

    def __init__(self, run: RunState | None = None, *, probes: bool = True) -> None:
        """`run` None: single switches, and nothing is remembered. Raises BAD_FILE when what is remembered cannot be in force."""
        self.run = run
        self.probes = probes

    def use_loop(self, loop: Any) -> None:
        """Take `[loop]` of a configuration (`Program.LoopSettings` are among its keys) into use."""

    def refresh(self, controls: Mapping[str, Any]) -> None:
        """What is remembered may have changed: this process has become the primary, or somebody has made a change. `controls` are those of the switches."""

    @property
    def program(self) -> Program:
        """The program of the topology."""
        from fairlane_controller.program.registry import load_program  # which imports this module

        assert self.run is not None
        return load_program(self.run.program)

    async def handle(self, agents: Mapping[str, Any], request: dict[str, Any]) -> Any:
        """Answer one of `requests`. `agents` are the sessions by switch (`loop/agent.py`)."""
        del agents
        raise unknown_name("op", str(request["op"]), self.requests)


def _hook(job: Callable[[Any, SwitchClient], Coroutine[Any, Any, Any]]) -> Callable[[_F], _F]:
    def mark(method: _F) -> _F:
        setattr(method, _HOOK, job)
        return method

    return mark


def on_digest(name: str, *, max_list: int = DIGEST_LIST_MAX, max_delay_s: float = DIGEST_LIST_S) -> Callable[[_F], _F]:
    """Call `method(client, values)` for each list of a digest's values; the digest is enabled first."""

    async def listen(method: Any, client: SwitchClient) -> None:
        await enable_digest(method.__self__.session, client, name, max_list=max_list, max_delay_s=max_delay_s)
        async for values in client.digests(name):
            await method(client, values)

    return _hook(listen)


def every(period_s: float | Callable[[Any], float]) -> Callable[[_F], _F]:
    """Call `method(client)` again and again; the period in seconds may be a function of the control."""

    async def repeat(method: Any, client: SwitchClient) -> None:
        while True:
            await asyncio.sleep(period_s if isinstance(period_s, (int, float)) else period_s(method.__self__))
            await method(client)

    return _hook(repeat)


def on_idle(table: str) -> Callable[[_F], _F]:
    """Call `method(client, entries)` for entries of a table that nothing matched for their idle time."""

    async def listen(method: Any, client: SwitchClient) -> None:
        async for notification in client.switch.read_idle_timeouts(queue_size=10_000):
            entries = [entry for entry in notification if entry.table_id == table]
            if entries:
                await method(client, entries)

    return _hook(listen)


async def enable_digest(
    session: Session,
    client: SwitchClient,
    name: str,
    *,
    max_list: int = DIGEST_LIST_MAX,
    max_delay_s: float = DIGEST_LIST_S,
) -> None:
    """Have a digest sent in lists of at most `max_list`, at most `max_delay_s` old; a refusal is retried later."""

    def enable(client: SwitchClient) -> Awaitable[None]:
        return client.enable_digest(name, max_list=max_list, max_timeout_s=max_delay_s)

    await session.attempt(client, f"digest {name}", enable)
