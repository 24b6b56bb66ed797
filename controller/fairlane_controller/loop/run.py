# SPDX-License-Identifier: Apache-2.0
"""The process `fairlane run`: one loop per running topology, one agent per switch, one primary and at most one backup."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairlane_controller.config.loop_options import agent_options, loop_of_agent
from fairlane_controller.config.model import LoopConfig
from fairlane_controller.config.reload import OPS as CONFIG_OPS
from fairlane_controller.config.reload import ConfigService
from fairlane_controller.errors import FairlaneError, unknown_name
from fairlane_controller.loop import raw, requests
from fairlane_controller.loop.agent import AgentOptions, SwitchAgent
from fairlane_controller.loop.events import EVENTS_FILE, EventLog
from fairlane_controller.loop.roles import FolderRole, Role
from fairlane_controller.loop.session import Log, SwitchSession
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.programs.qthresh.flow_weights import WeightRules
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.switch.setup import endpoint_of

READY_TIMEOUT_S = 15.0


@dataclass(frozen=True)
class LoopTarget:
    """What one loop controls: a running topology, or single switches without any file."""

    run: RunState | None = None
    endpoints: tuple[Endpoint, ...] = ()
    config: Path | None = None
    "The configuration file, watched and reloaded; read once already into `loop_config`."
    loop_config: LoopConfig | None = None
    event_log: Path | None = None
    "Where events go; `controller-events.jsonl` in the run-state folder unless given."

    @property
    def folder(self) -> Path | None:
        """The run-state folder."""
        return self.run.folder if self.run else None


class TopologyLoop:
    """The agents of one target and the socket through which people reach them."""

    def __init__(self, target: LoopTarget, options: AgentOptions, *, backup: bool = False) -> None:
        """`backup`: wait for the primary of the folder to end; see `FolderRole`. Raises LOOP_RUNNING, BAD_FILE."""
        if target.run is not None and target.run.target == "bmv2":
            options = replace(options, measure=replace(options.measure, sample_includes_t_d=False))
        self.target = target
        folder = target.folder
        self.role = FolderRole(folder, backup=backup)
        try:
            self._store = LoopStore(folder)
        except FairlaneError:
            self.role.close()
            raise
        log_path = target.event_log or (folder / EVENTS_FILE if folder else None)
        self._log = EventLog(log_path)
        states = {s.name: s for s in target.run.switches} if target.run else {}
        endpoints = target.endpoints or tuple(endpoint_of(s) for s in states.values())
        self.agents = {
            e.name: SwitchAgent(e, self._store, self._log, options, target.run, states.get(e.name)) for e in endpoints
        }
        said = target.loop_config or loop_of_agent(options)
        self._config = ConfigService(
            target.run, self._log, self._use_loop, said, target.config, lambda: self.role.role is Role.PRIMARY
        )
        if target.loop_config is not None:
            self._use_loop(target.loop_config)
        if self.role.role is Role.BACKUP:
            for agent in self.agents.values():
                agent.stand_by()

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Until cancelled; `on_ready` is called when every switch was taken over (as the backup: is looked at), or could not
        be in READY_TIMEOUT_S."""
        self._log.write("started", switches=sorted(self.agents), role=self.role.role.value)
        people = self.role.serve(self.handle, self._status, self._lead)
        try:
            ready = tell_ready(self.agents.values(), on_ready)
            await run_agents(self.agents.values(), [people, ready, self._config.watch()], self._log)
        finally:
            self.close()

    async def _lead(self, was_backup: bool) -> None:
        """This is the primary from now on."""
        if was_backup:
            self._log.close()  # the primary may have turned the file over: the next event opens the one of this name
            lead_all(self.agents.values(), self._log)

    def _use_loop(self, config: LoopConfig) -> None:
        for agent in self.agents.values():
            agent.use_options(agent_options(config, agent.options))

    def _status(self) -> list[dict[str, Any]]:
        return [agent.status() for agent in self.agents.values()]

    async def handle(self, request: dict[str, Any]) -> Any:
        """One request of the control socket."""
        match request["op"]:
            case "status":
                return self._status()
            case "measure":
                return [m for agent in self.agents.values() for m in agent.measurements()]
            case "threshold_set" | "threshold_auto" | "scheme_set":
                return await self._agent(request).change(request)
            case "policies":
                return await requests.change_policies(self.agents, self._store, request)
            case "table_write":
                return await requests.take_back(self._agent(request), self._store, self._log, request)
            case "p4_write":
                return await raw.write_raw(self._agent(request), self._log, request)
            case "loop_options" | "loop_put" | "config_reload":
                return await self._config.handle(request)
            case "flow_weights":
                rules = WeightRules.parse(request["rules"])
                for agent in self.agents.values():
                    agent.use_flow_weights(rules)
                return {"rules": len(rules.rules)}
            case other:
                ops = (
                    "status",
                    "measure",
                    "threshold_set",
                    "threshold_auto",
                    "scheme_set",
                    "policies",
                    "table_write",
                    "p4_write",
                    "flow_weights",
                    *CONFIG_OPS,
                )
                raise unknown_name("op", other, ops)

    def _agent(self, request: dict[str, Any]) -> SwitchAgent:
        name = str(request["switch"])
        agent = self.agents.get(name)
        if agent is None:
            raise unknown_name("switch", name, self.agents)
        return agent

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
    tasks = [asyncio.create_task(agent.run()) for agent in agents]
    tasks += [asyncio.create_task(coroutine) for coroutine in beside]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        log.write("stopped")


async def until_signalled(everything: asyncio.Future[Any]) -> None:
    """Wait for it; SIGTERM and SIGINT cancel it."""
    running = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        running.add_signal_handler(number, everything.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await everything


async def run_loops(
    targets: Sequence[LoopTarget], options: AgentOptions, on_ready: Callable[[], None], *, backup: bool = False
) -> None:
    """Run the loops of all targets until SIGTERM or SIGINT; `on_ready` is called once when all are (or could not be)."""
    loops: list[TopologyLoop] = []
    try:
        for target in targets:
            loops.append(TopologyLoop(target, options, backup=backup))
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
    await until_signalled(everything)
