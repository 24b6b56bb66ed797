# SPDX-License-Identifier: Apache-2.0
"""The process `fairlane run`: the loop of a topology, one agent per switch, one primary and at most one backup."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finsy import GRPCStatusCode

from fairlane_controller.config.model import LoopConfig, loop_model
from fairlane_controller.config.reload import ConfigService
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_input, find_by_name, unknown_name
from fairlane_controller.history.undo import settle, settle_at_start
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.control import ControlServer
from fairlane_controller.program.contract import Program
from fairlane_controller.program.control import TopologyControl
from fairlane_controller.program.requests import REQUESTS, checked
from fairlane_controller.state.ask import BACKUP_SOCKET_FILE, SOCKET_FILE, loop_runs
from fairlane_controller.state.events import EventLog, log_of
from fairlane_controller.state.locks import FolderRole, change_lock
from fairlane_controller.state.run_state import RunState, SwitchState
from fairlane_controller.switch.client import Endpoint, SwitchClient, endpoint_of
from fairlane_controller.switch.faults import Refusal
from fairlane_controller.switch.updates import update_row, updates_of
from fairlane_controller.units import counted

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

    @property
    def folder(self) -> Path | None:
        """The run-state folder."""
        return self.run.folder if self.run else None

    def switches(self) -> list[tuple[Endpoint, SwitchState | None]]:
        """Every switch with what the run state says of it."""
        states = {state.name: state for state in self.run.switches} if self.run else {}
        endpoints = self.endpoints or tuple(endpoint_of(state) for state in states.values())
        return [(endpoint, states.get(endpoint.name)) for endpoint in endpoints]


def control_of(program: Program) -> type[TopologyControl]:
    """What a program does at run time. Raises BAD_INPUT when it needs no loop."""
    control = program.topology_control()
    if control is None:
        raise bad_input(f"the program {program.name} needs no control loop")
    return control


def topology_of(target: LoopTarget) -> TopologyControl:
    """What the target's program does at run time. Raises BAD_INPUT when it needs no loop, BAD_FILE."""
    topology = control_of(target.program)(target.run, probes=target.probes)
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


class TopologyLoop:
    """The agents of one target and the socket through which people reach them."""

    def __init__(self, target: LoopTarget, *, backup: bool = False) -> None:
        """`backup`: wait for the primary of the folder to end; see `FolderRole`. Raises LOOP_RUNNING, BAD_FILE."""
        self.target = target
        self._role = FolderRole(target.folder, backup=backup)
        try:
            self._topology = topology_of(target)
        except FairlaneError:
            self._role.close()
            raise
        self._log = EventLog(log_of(target.run), frequent=target.program.frequent_events)
        self._server: ControlServer | None = None
        "The primary's, while people reach it."
        self.agents = {
            endpoint.name: SwitchAgent(endpoint, self._topology, self._log, state=state)
            for endpoint, state in target.switches()
        }
        self._config = ConfigService(
            target.run,
            self._log,
            self._use_loop,
            target.loop_config or loop_model(target.program)(),
            target.config,
            lambda: self._server and self._server.ask,
        )
        if not self._role.is_primary:
            for agent in self.agents.values():
                agent.stand_by()

    async def run(self) -> None:
        """Until cancelled."""
        name, role = self.target.program.name, "primary" if self._role.is_primary else "backup"
        self._log.write("started", switches=sorted(self.agents), program=name, role=role)
        # A change without a loop may be on its way: what it leaves is taken over, and the next one finds the socket.
        if self._role.is_primary and self.target.folder is not None:
            await settle_at_start(self.target.folder)
        sessions = [asyncio.create_task(agent.run()) for agent in self.agents.values()]
        others = [asyncio.create_task(work) for work in (self._serve(), self._config.watch())]
        try:
            done, _ = await asyncio.wait([*sessions, *others], return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            for tasks in (others, sessions):  # what people asked for is taken back by sessions that are still connected
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            self._log.write("stopped")
            self.close()

    async def _serve(self) -> None:
        """Serve the folder's control socket, until cancelled; as the backup only `status`, on a socket of its own, until the
        primary has ended. Without a folder there is no socket."""
        folder, was_backup = self.target.folder, not self._role.is_primary
        if folder is None:
            self._topology.refresh(self._controls)
            return
        if was_backup:
            async with ControlServer(folder / BACKUP_SOCKET_FILE, self._answer_as_backup):
                await self._role.wait_until_primary()
        async with contextlib.AsyncExitStack() as stack:
            async with change_lock(folder) as lock:  # nobody changes anything until the socket is there
                if was_backup:
                    with contextlib.suppress(FairlaneError):
                        await settle(lock)
                self._topology.refresh(self._controls)
                if was_backup:
                    self._lead()
                self._server = await stack.enter_async_context(ControlServer(folder / SOCKET_FILE, self.handle))
            await asyncio.Event().wait()

    def _lead(self) -> None:
        """The backup's agents become the primary's."""
        self._log.close()  # the primary may have turned the file over: the next event opens the one of this name
        why = "the primary has ended, so its backup goes on from what the switches hold"
        self._log.write("leads", switches=sorted(self.agents), why=why)
        for agent in self.agents.values():
            agent.lead()

    def _use_loop(self, config: LoopConfig) -> None:
        self._topology.use_loop(config)
        for agent in self.agents.values():
            agent.control.use_options()

    def _status(self) -> list[dict[str, Any]]:
        return [agent.status() for agent in self.agents.values()]

    async def _answer_as_backup(self, request: dict[str, Any]) -> Any:
        if request["op"] == "status":
            return {"pid": os.getpid(), "switches": self._status()}
        raise ErrorCode.LOOP_RUNNING("this is the backup: it answers `status` only")

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
                await asyncio.gather(*(agent.reread() for agent in self.agents.values() if agent.client))
                return None
            case "loop_options":
                return self._config.options
            case "loop_put":
                return self._config.put(request["loop"])
            case op if op in self._topology.requests:
                return await self._topology.handle(self.agents, checked(request, self._topology.requests))
            case other:
                raise unknown_name("op", str(other), (*REQUESTS, *self._topology.requests))

    async def _write(self, request: dict[str, Any]) -> Any:
        """`table_write`: the loop is the primary, so it writes what others want; then it goes on from what the switch has.

        Returns:
            What the switch refused, by index; it has the rest.
        """
        agent = find_by_name("switch", str(request["switch"]), self.agents)
        updates: list[dict[str, Any]] = request["updates"]
        self._topology.refresh(self._controls)

        async def write(client: SwitchClient) -> dict[int, Refusal]:
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
            return counted(len(updates), "update")
        schema, units = agent.client.switch.p4info, self.target.program.units
        return "; ".join(" ".join(update_row(one, schema, units)).strip() for one in updates) or "no entry"

    @property
    def _controls(self) -> dict[str, Any]:
        return {name: agent.control for name, agent in self.agents.items()}

    def close(self) -> None:
        """Close the log and release the folder; the switches keep everything."""
        self._log.close()
        self._role.close()


async def run_until_signal(agents: Collection[SwitchAgent], work: Awaitable[Any], on_ready: Callable[[], None]) -> None:
    """Wait for the work; SIGTERM and SIGINT cancel it. Call `on_ready` when all agents are ready, READY_TIMEOUT_S from now at the latest."""

    async def report_ready() -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(agent.ready.wait() for agent in agents)), READY_TIMEOUT_S)
        on_ready()

    everything = asyncio.gather(report_ready(), work)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, everything.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await everything


async def run_loop(target: LoopTarget, on_ready: Callable[[], None], *, backup: bool = False) -> None:
    """Run the loop of a target until SIGTERM or SIGINT.

    Args:
        target: what the loop controls.
        on_ready: called once, when every switch was taken over (by the backup: is observed), or could not be in READY_TIMEOUT_S.
        backup: see `FolderRole`.

    Raises:
        FairlaneError: LOOP_RUNNING, BAD_FILE, before anything was begun.
    """
    loop = TopologyLoop(target, backup=backup)
    await run_until_signal(loop.agents.values(), loop.run(), on_ready)


async def run_dry(target: LoopTarget, on_ready: Callable[[], None]) -> None:
    """Dry run of a target until SIGTERM or SIGINT; `on_ready` when each switch was read for the first time.

    It measures and decides as the loop does, reports it as the same events with `dry_run`, and writes nothing. Digests and probes are
    for a switch's primary controller alone. So a dry run is the primary with an election id below every writer's, until somebody else
    comes, and is refused where a loop of ours runs.
    """
    topology = topology_of(target)
    if target.folder is not None and loop_runs(target.folder):
        problem = f"a loop runs in {target.folder}, and reports what it decides: `fairlane log --event decision`"
        raise ErrorCode.LOOP_RUNNING(f"{problem}; --dry-run is for a topology without one")
    log = EventLog(log_of(target.run), frequent=target.program.frequent_events, dry_run=True)
    agents = [SwitchAgent(endpoint, topology, log, state=state, dry_run=True) for endpoint, state in target.switches()]
    try:
        await run_until_signal(agents, asyncio.gather(*(agent.run() for agent in agents)), on_ready)
    finally:
        log.close()
