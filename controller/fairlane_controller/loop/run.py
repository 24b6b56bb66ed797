# SPDX-License-Identifier: Apache-2.0
"""The process `fairlane run`: one loop per running topology, one agent per switch, one primary and at most one backup."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane_controller.config.model import LoopConfig
from fairlane_controller.config.reload import OPS as CONFIG_OPS
from fairlane_controller.config.reload import ConfigService
from fairlane_controller.errors import ErrorCode, FairlaneError, find_by_name, unknown_name
from fairlane_controller.history.undo import settle_at_start
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.roles import FolderRole, Role
from fairlane_controller.loop.session import Log, SwitchSession
from fairlane_controller.program.contract import Program
from fairlane_controller.program.control import TopologyControl
from fairlane_controller.program.registry import check_owned
from fairlane_controller.program.requests import checked
from fairlane_controller.state.events import EVENTS_FILE, EventLog
from fairlane_controller.state.run_state import RunState, SwitchState
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.entities import table_of
from fairlane_controller.switch.faults import Refusal
from fairlane_controller.switch.setup import endpoint_of
from fairlane_controller.switch.updates import entity_of_plain, updates_of
from fairlane_controller.units import counted

READY_TIMEOUT_S = 15.0


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
            ready = tell_ready(self.agents.values(), on_ready)
            await run_agents(self.agents.values(), [people, ready, self._config.watch()], self._log)
        finally:
            self.close()

    @contextlib.asynccontextmanager
    async def _guard(self) -> AsyncGenerator[None]:
        """While the process becomes the primary; a backup first takes back what the primary, or a command, has begun and not ended."""
        if self._began_as_backup and self.target.folder is not None:
            await settle_at_start(self.target.folder)
        async with self._topology.guard():
            yield

    async def _lead(self, was_backup: bool) -> None:
        """This is the primary from now on: with what is remembered now."""
        self._topology.lead({name: agent.control for name, agent in self.agents.items()})
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
            case "table_write" if request.get("each") or "table_write" not in self._topology.requests:
                return await self._write_others(request)
            case op if op in CONFIG_OPS:
                return await self._config.handle(request)
            case op if op in self._topology.requests:
                return await self._topology.handle(self.agents, checked(request, self._topology.requests))
            case other:
                ops = ("status", "measure", "table_write", *self._topology.requests, *CONFIG_OPS)
                raise unknown_name("op", str(other), ops)

    async def _write_others(self, request: dict[str, Any]) -> Any:
        """`table_write` of what the loop does not keep, by hand; it is the primary, so it writes it.

        Returns:
            The requests that take it back; with `each`, which writes all that the switch takes, what it refused by index.
        """
        agent = find_by_name("switch", str(request["switch"]), self.agents)
        updates = request["updates"]

        async def write(client: SwitchClient) -> tuple[dict[int, Refusal], Any]:
            entities = [client.canonical(entity_of_plain(one)) for one in updates]
            written = {table_of(one, client.switch.p4info) for one in entities}
            check_owned(self.target.program, written, agent.endpoint.name)
            if not request.get("each"):
                return {}, [await self._topology.write_entries(client, request)]
            refused = await client.write_each_with_reasons(updates_of(updates))
            return refused, {"refused": {index: [one.code.name, one.message] for index, one in refused.items()}}

        refused, answer = await agent.exclusively(write)
        count, also = len(updates) - len(refused), f", {len(refused)} refused by the switch" if refused else ""
        agent.event(
            "changed",
            written=count,
            refused=len(refused),
            why=f"asked for by hand: {counted(count, 'update')} of what the loop does not keep{also}",
        )
        return answer

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


async def tell_ready(agents: Iterable[SwitchSession], on_ready: Callable[[], None]) -> None:
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
