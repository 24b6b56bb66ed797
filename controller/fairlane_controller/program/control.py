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
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from finsy import P4TableEntry

from fairlane_controller.errors import ErrorCode, unknown_name
from fairlane_controller.gnmi.open import open_ports
from fairlane_controller.measure.estimators import LinkChange
from fairlane_controller.measure.occupancy import CountedState, OccupancyKeeper
from fairlane_controller.measure.port import MeasureOptions, PortMeter
from fairlane_controller.measure.source import listen_probes, send_probes
from fairlane_controller.program.requests import Request
from fairlane_controller.state.run_state import RunState, SwitchState
from fairlane_controller.switch.changeset import sort_entries
from fairlane_controller.switch.client import DIGEST_LIST_MAX, DIGEST_LIST_S, Endpoint, SwitchClient

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
    "A lock that whoever writes to the switch acquires first."
    dry_run: bool
    "Whether what is written is dropped: measure and decide, as if it were in force."

    def event(self, event: str, **fields: Any) -> None:
        """Write one line of the event log, of this switch.

        Args:
            event: The name of the event.
            fields: Its values; `why` is its sentence.
        """
        ...

    async def attempt(
        self, client: SwitchClient, what: str, act: Callable[[SwitchClient], Awaitable[Any]], *, keep: bool = True
    ) -> bool:
        """Write something.

        Args:
            client: The connection to the switch.
            what: What is written, in words.
            act: Writes it.
            keep: Whether to retry later what is refused.

        Returns:
            False when the switch refused it, which is logged.
        """
        ...


class SwitchControl:
    """The run time of a program on one switch; made once, and used again after a lost connection. Its clock is the event loop's."""

    def __init__(self, session: Session, topology: Any) -> None:
        """Begin without a connection.

        Args:
            session: The session of the switch.
            topology: The program's `TopologyControl`.
        """
        self.session = session
        self.topology = topology

    def entries_after_restart(self) -> Iterable[P4TableEntry]:
        """The entries that a switch gets after a restart, besides its routes: by default what the program wants of the topology's ports."""
        run = self.topology.run
        if run is None:
            return ()
        program = self.topology.program
        wanted = program.initial_plan(run).wanted(self.session.endpoint.name, {})
        return sort_entries(wanted.entries, program.tables)

    async def observe(self, client: SwitchClient) -> None:
        """As the backup: read what the switch would need after a restart. Writes nothing."""

    async def take_over(self, client: SwitchClient) -> None:
        """Continue from the switch's state: called with each new connection, before `jobs`."""

    def jobs(self, client: SwitchClient) -> Sequence[Coroutine[Any, Any, Any]]:
        """What runs while the switch is connected: by default the methods with `on_digest` and `every`."""
        hooks = [(method, getattr(method, _HOOK)) for _, method in inspect.getmembers(self) if hasattr(method, _HOOK)]
        return [job(method, client) for method, job in hooks]

    def link_jobs(
        self, client: SwitchClient, meters: Callable[[], Mapping[int, PortMeter]], counted: CountedState | None
    ) -> list[Coroutine[Any, Any, Any]]:
        """What measures the links of managed ports by probes, and compares what the program counts as waiting with the queues.

        Args:
            client: The connection to the switch.
            meters: The meters of the ports as they are now.
            counted: Where the program counts; None: nothing is compared.
        """
        jobs: list[Coroutine[Any, Any, Any]] = []
        if self.topology.probes:
            jobs += [send_probes(client, meters), listen_probes(client, lambda port: meters().get(port))]
        if counted is not None:
            open_queues = partial(open_ports, self.session.endpoint, self.topology.run)
            keeper = OccupancyKeeper(counted, open_queues, self.session.event)
            jobs.append(keeper.keep_forever(client, meters))
        return jobs

    def report_link(self, port: int, change: LinkChange) -> None:
        """Report that the link behind a port has changed."""
        self.session.event("link_changed", port=port, why=change.why, **change.to_json())

    async def changed(self, client: SwitchClient) -> None:
        """Another client has written entries or settings: read them again and continue from them."""

    def use_options(self) -> None:
        """Use the new options of `topology` from now on."""

    def status(self) -> dict[str, Any]:
        """What it reports of itself as plain data, beside what the core reports of the switch."""
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
    "Whether a loop must serve every switch of the topology."
    listens: bool = True
    "Whether its controls wait for what switches send by themselves."
    loop: Any = None
    "`Program.LoopSettings` in force; None: their defaults."

    def __init__(self, run: RunState | None = None, *, probes: bool = True) -> None:
        """Begin without connections.

        Args:
            run: The topology; None: single switches, and nothing is stored.
            probes: Whether to send probes.

        Raises:
            FairlaneError: BAD_FILE, what is stored cannot be in force.
        """
        self.run = run
        self.probes = probes
        self.measure = MeasureOptions(sample_includes_t_d=run is None or run.target != "bmv2")
        "What the target's timestamps include."

    def use_loop(self, loop: Any) -> None:
        """Use new options.

        Args:
            loop: `[loop]` of a configuration (`Program.LoopSettings` are among its keys).
        """
        self.loop = loop

    def refresh(self, controls: Mapping[str, Any]) -> None:
        """Read the documents again: this process has become the primary, or somebody has made a change.

        Args:
            controls: The controls of the switches, by their names.
        """

    @property
    def program(self) -> Program:
        """The program of the topology.

        Raises:
            FairlaneError: NO_TOPOLOGY, the loop has single switches.
        """
        from fairlane_controller.program.registry import load_program  # which imports this module

        if self.run is None:
            raise ErrorCode.NO_TOPOLOGY("this loop needs a topology: name its run state by --state")
        return load_program(self.run.program)

    async def handle(self, agents: Mapping[str, Any], request: dict[str, Any]) -> Any:
        """Answer one of `requests`.

        Args:
            agents: The sessions by switch (`loop/agent.py`).
            request: The request.

        Returns:
            The answer, as JSON has it.
        """
        raise unknown_name("op", str(request["op"]), self.requests)


def _hook(job: Callable[[Any, SwitchClient], Coroutine[Any, Any, Any]]) -> Callable[[_F], _F]:
    def mark(method: _F) -> _F:
        setattr(method, _HOOK, job)
        return method

    return mark


def on_digest(name: str) -> Callable[[_F], _F]:
    """Call `method(client, values)` for each list of a digest's values; the digest is enabled first.

    Args:
        name: The digest.
    """

    async def listen(method: Any, client: SwitchClient) -> None:
        await enable_digest(method.__self__.session, client, name)
        async for values in client.digests(name):
            await method(client, values)

    return _hook(listen)


def every(period_s: float | Callable[[Any], float]) -> Callable[[_F], _F]:
    """Call `method(client)` periodically.

    Args:
        period_s: The period in seconds, or a function of the control that returns it.
    """

    async def repeat(method: Any, client: SwitchClient) -> None:
        while True:
            await asyncio.sleep(period_s(method.__self__) if callable(period_s) else period_s)
            await method(client)

    return _hook(repeat)


async def enable_digest(
    session: Session,
    client: SwitchClient,
    name: str,
    *,
    max_list: int = DIGEST_LIST_MAX,
    max_delay_s: float = DIGEST_LIST_S,
) -> None:
    """Have the switch send a digest; a refusal is retried later.

    Args:
        session: The session of the switch.
        client: The connection to it.
        name: The digest.
        max_list: Values of a list, at most.
        max_delay_s: Age of a list, at most, in seconds.
    """

    await session.attempt(
        client, f"digest {name}", lambda one: one.enable_digest(name, max_list=max_list, max_timeout_s=max_delay_s)
    )
