# SPDX-License-Identifier: Apache-2.0
"""The process `fairlane run`: one loop per running topology, one agent per switch, one primary and at most one backup."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finsy import GRPCStatusCode

from fairlane_controller.config.model import LoopConfig
from fairlane_controller.config.reload import OPS as CONFIG_OPS
from fairlane_controller.config.reload import ConfigService
from fairlane_controller.errors import ErrorCode, FairlaneError, find_by_name, unknown_name
from fairlane_controller.history.undo import settle, settle_at_start
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.roles import FolderRole, Role
from fairlane_controller.loop.session import Log, SwitchSession
from fairlane_controller.program.contract import Program
from fairlane_controller.program.control import TopologyControl
from fairlane_controller.program.requests import REQUESTS, checked
from fairlane_controller.state.events import EVENTS_FILE, EventLog
from fairlane_controller.state.locks import change_lock
from fairlane_controller.state.run_state import RunState, SwitchState
from fairlane_controller.switch.changeset import write_plain
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.faults import Refusal
from fairlane_controller.switch.setup import endpoint_of
from fairlane_controller.switch.updates import update_row, updates_of

READY_TIMEOUT_S = 15.0
MAX_LOGGED = 20
"""Updates of one request that an event has,"""
MAX_DESCRIBED = 4
"""and that its sentence has."""


@dataclass(frozen=True)
class LoopTarget:
    """What one loop controls: a running topology, or single switches without any file."""

    program: Program
    run: RunState | None = None
    endpoints: tuple[Endpoint, ...] = ()
    config: Path | None = None
    "The configuration file, watched and reloaded; read once already into `loop_config`."
    loop_config: LoopConfig | None = None
    "`[loop]`; None: as in the program's own defaults."
    probes: bool = True
    "Whether the links behind managed ports are probed for their delay."
    event_log: Path | None = None
    "Where events go; `controller-events.jsonl` in the run-state folder unless given."

    @property
    def folder(self) -> Path | None:
        """The run-state folder."""
        return self.run.folder if self.run else None

    def switches(self) -> list[tuple[Endpoint, SwitchState | None]]:
        """Every switch with what the run state says of it."""
        states = {state.name: state for state in self.run.switches} if self.run else {}
        endpoints = self.endpoints or tuple(endpoint_of(state) for state in states.values())
        return [(endpoint, states.get(endpoint.name)) for endpoint in endpoints]


def topology_of(target: LoopTarget) -> TopologyControl:
    """What the target's program does at run time; raises BAD_INPUT when it needs no loop, BAD_FILE."""
    control = target.program.topology_control()
    if control is None:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"the program {target.program.name} needs no control loop")
    topology = control(target.run, probes=target.probes)
    if target.loop_config is not None:
        topology.use_loop(target.loop_config)
    return topology


_OTHER_KINDS = {
    (GRPCStatusCode.ALREADY_EXISTS, "insert"): "modify",
    (GRPCStatusCode.NOT_FOUND, "modify"): "insert",
    (GRPCStatusCode.NOT_FOUND, "delete"): None,
}
"""What an update is to be where the loop itself has changed the entity since it was planned; None: it is done."""


async def put_over(
    client: SwitchClient, updates: Sequence[dict[str, Any]], refused: Mapping[int, Refusal]
) -> dict[int, Refusal]:
    """Write again what was refused because an entity is there, or is not; what is still refused, by index."""
    left = {at: why for at, why in refused.items() if (why.code, updates[at]["update"]) not in _OTHER_KINDS}
    kinds = {at: _OTHER_KINDS[why.code, updates[at]["update"]] for at, why in refused.items() if at not in left}
    again = [at for at, kind in kinds.items() if kind is not None]
    found = await client.write_each_with_reasons(updates_of([{**updates[at], "update": kinds[at]} for at in again]))
    return left | {again[at]: why for at, why in found.items()}


async def _nothing(client: SwitchClient) -> None:
    """For `exclusively`: read again what the switch has."""


class TopologyLoop:
    """The agents of one target and the socket through which people reach them."""

    def __init__(self, target: LoopTarget, *, backup: bool = False) -> None:
        """`backup`: wait for the primary of the folder to end; see `FolderRole`. Raises LOOP_RUNNING, BAD_FILE."""
        self.target = target
        folder = target.folder
        self.role = FolderRole(folder, backup=backup)
        try:
            self._topology = topology_of(target)
        except FairlaneError:
            self.role.close()
            raise
        log_path = target.event_log or (folder / EVENTS_FILE if folder else None)
        self._log = EventLog(log_path, frequent=target.program.frequent_events)
        self.agents = {
            endpoint.name: SwitchAgent(endpoint, self._topology, self._log, state=state)
            for endpoint, state in target.switches()
        }
        self._config = ConfigService(
            target.run,
            self._log,
            self._use_loop,
            target.loop_config,
            target.config,
            lambda: self.role.server and self.role.server.ask,
        )
        self._began_as_backup = self.role.role is Role.BACKUP
        if self._began_as_backup:
            for agent in self.agents.values():
                agent.stand_by()

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Until cancelled; `on_ready` is called when every switch was taken over (as the backup: is looked at), or could not
        be in READY_TIMEOUT_S."""
        name, role = self.target.program.name, self.role.role.value
        self._log.write("started", switches=sorted(self.agents), program=name, role=role)
        # A change without a loop may be on its way: what it leaves is taken over, and the next one finds the socket.
        if not self._began_as_backup and self.target.folder is not None:
            await settle_at_start(self.target.folder)
        people = self.role.serve(self.handle, self._status, self._lead, self._guard)
        try:
            ready = report_ready(self.agents.values(), on_ready)
            await run_agents(self.agents.values(), [people, ready, self._config.watch()], self._log)
        finally:
            self.close()

    @contextlib.asynccontextmanager
    async def _guard(self) -> AsyncGenerator[None]:
        """While the process becomes the primary nobody changes anything; a backup first takes back what was begun and not ended."""
        if self.target.folder is None:
            yield
            return
        async with change_lock(self.target.folder) as lock:
            if self._began_as_backup:
                with contextlib.suppress(FairlaneError):
                    await settle(lock)
            yield

    async def _lead(self, was_backup: bool) -> None:
        """This is the primary from now on: with what is remembered now."""
        self._topology.refresh(self._controls)
        if was_backup:
            self._log.close()  # the primary may have turned the file over: the next event opens the one of this name
            lead_all(self.agents.values(), self._log)

    def _use_loop(self, config: LoopConfig) -> None:
        self._topology.use_loop(config)
        for agent in self.agents.values():
            agent.control.use_options()

    def _status(self) -> list[dict[str, Any]]:
        return [agent.status() for agent in self.agents.values()]

    async def handle(self, request: dict[str, Any]) -> Any:
        """One request of the control socket."""
        match request["op"]:
            case "status":
                return self._status()
            case "measure":
                return [
                    {"switch": name, **row}
                    for name, agent in self.agents.items()
                    for row in agent.control.measurements()
                ]
            case "table_write":
                return await self._write(request)
            case "poke":
                self._topology.refresh(self._controls)
                await asyncio.gather(*(agent.exclusively(_nothing) for agent in self.agents.values() if agent.client))
                return None
            case op if op in CONFIG_OPS:
                return await self._config.handle(request)
            case op if op in self._topology.requests:
                return await self._topology.handle(self.agents, checked(request, self._topology.requests))
            case other:
                raise unknown_name("op", str(other), (*REQUESTS, *self._topology.requests))

    async def _write(self, request: dict[str, Any]) -> Any:
        """`table_write`: the loop is the primary, so it writes what others want; then it goes on from what the switch has.

        Returns:
            With `each`, which writes all that the switch takes: what it refused, by index.
        """
        agent = find_by_name("switch", str(request["switch"]), self.agents)
        updates: list[dict[str, Any]] = request["updates"]
        self._topology.refresh(self._controls)

        async def write(client: SwitchClient) -> dict[int, Refusal]:
            if not request.get("each"):
                await write_plain(client, updates)
                return {}
            refused = await client.write_each_with_reasons(updates_of(updates))
            return await put_over(client, updates, refused) if request.get("put") and refused else refused

        refused = await agent.exclusively(write)
        command = request.get("command") or "table_write"
        agent.event(
            "changed",
            command=command,
            updates=updates if len(updates) <= MAX_LOGGED else len(updates),
            refused=len(refused),
            why=f"asked for by `{command}`: {self._describe(agent, updates)}"
            + (f", {len(refused)} refused by the switch" if refused else ""),
        )
        return {"refused": {index: [one.code.name, one.message] for index, one in refused.items()}}

    def _describe(self, agent: SwitchAgent, updates: Sequence[dict[str, Any]]) -> str:
        """The updates in words; of many only how many there are."""
        if len(updates) > MAX_DESCRIBED or agent.client is None:
            kinds = Counter(f"{one['update']} {one.get('table') or one['entity']}" for one in updates)
            return ", ".join(f"{count} x {kind}" for kind, count in kinds.items())
        schema, units = agent.client.switch.p4info, self.target.program.units
        return "; ".join(" ".join(update_row(one, schema, units)).strip() for one in updates) or "no entry"

    @property
    def _controls(self) -> dict[str, Any]:
        return {name: agent.control for name, agent in self.agents.items()}

    def close(self) -> None:
        """Let the folder go; the switches keep everything."""
        self._log.close()
        self.role.close()


def lead_all(agents: Iterable[SwitchSession], log: Log) -> None:
    """The backup's agents become the primary's."""
    sessions = list(agents)
    log.write(
        "leads",
        switches=sorted(session.endpoint.name for session in sessions),
        why="the primary has ended, so its backup goes on from what the switches hold",
    )
    for session in sessions:
        session.lead()


async def report_ready(agents: Iterable[SwitchSession], on_ready: Callable[[], None]) -> None:
    """Call `on_ready` when every switch was taken over or is looked at; one that is away delays it READY_TIMEOUT_S at most."""

    async def settled(agent: SwitchSession) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (agent.ready, agent.standing_by)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
        await asyncio.wait_for(asyncio.gather(*(settled(agent) for agent in agents)), READY_TIMEOUT_S)
    on_ready()


async def run_agents(agents: Iterable[SwitchSession], beside: Sequence[Coroutine[Any, Any, None]], log: Log) -> None:
    """All agents of one loop, each in a task of its own, and what is done `beside` them, until cancelled."""
    sessions = [asyncio.create_task(agent.run()) for agent in agents]
    others = [asyncio.create_task(coroutine) for coroutine in beside]
    try:
        done, _ = await asyncio.wait([*sessions, *others], return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for tasks in (others, sessions):  # what people asked for is taken back by sessions that are still connected
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        log.write("stopped")


async def run_until_signal(everything: asyncio.Future[Any]) -> None:
    """Wait for it; SIGTERM and SIGINT cancel it."""
    running = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        running.add_signal_handler(number, everything.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await everything


async def run_loops(targets: Sequence[LoopTarget], on_ready: Callable[[], None], *, backup: bool = False) -> None:
    """Run the loops of all targets until SIGTERM or SIGINT; `on_ready` is called once when all are (or could not be)."""
    loops: list[TopologyLoop] = []
    try:
        for target in targets:
            loops.append(TopologyLoop(target, backup=backup))
    except BaseException:
        for loop in loops:
            loop.close()
        raise
    waiting = {id(loop) for loop in loops}

    def ready(loop: TopologyLoop) -> None:
        waiting.discard(id(loop))
        if not waiting:
            on_ready()

    everything = asyncio.gather(*(loop.run(lambda loop=loop: ready(loop)) for loop in loops))
    await run_until_signal(everything)
