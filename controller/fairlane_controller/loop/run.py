# SPDX-License-Identifier: Apache-2.0
"""The process `fairlane run`: one loop per running topology, one agent per switch, a lock so that there is only one."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairlane_controller.errors import unknown_name
from fairlane_controller.loop.agent import AgentOptions, SwitchAgent
from fairlane_controller.loop.control import SOCKET_FILE, ControlServer
from fairlane_controller.loop.events import EVENTS_FILE, EventLog
from fairlane_controller.loop.flow_weights import WeightRules
from fairlane_controller.loop.session import Log, SwitchSession
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.state.locks import take_loop_lock
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.switch.setup import endpoint_of

READY_TIMEOUT_S = 15.0


@dataclass(frozen=True)
class LoopTarget:
    """What one loop controls: a running topology, or single switches without any file."""

    run: RunState | None = None
    endpoints: tuple[Endpoint, ...] = ()
    event_log: Path | None = None
    "Where events go; `controller-events.jsonl` in the run-state folder unless given."

    @property
    def folder(self) -> Path | None:
        """The run-state folder."""
        return self.run.folder if self.run else None


class TopologyLoop:
    """The agents of one target and the socket through which people reach them."""

    def __init__(self, target: LoopTarget, options: AgentOptions) -> None:
        if target.run is not None and target.run.target == "bmv2":
            options = replace(options, measure=replace(options.measure, sample_includes_t_d=False))
        self.target = target
        folder = target.folder
        self._lock = take_loop_lock(folder) if folder else None
        self._store = LoopStore(folder)
        log_path = target.event_log or (folder / EVENTS_FILE if folder else None)
        self._log = EventLog(log_path)
        states = {s.name: s for s in target.run.switches} if target.run else {}
        endpoints = target.endpoints or tuple(endpoint_of(s) for s in states.values())
        self.agents = {
            e.name: SwitchAgent(e, self._store, self._log, options, target.run, states.get(e.name)) for e in endpoints
        }

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Until cancelled."""
        self._log.write("started", switches=sorted(self.agents))
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self.close)
            if self.target.folder:
                await stack.enter_async_context(ControlServer(self.target.folder / SOCKET_FILE, self.handle))
            await run_agents(self.agents.values(), self._tell_ready(on_ready), self._log)

    async def _tell_ready(self, on_ready: Callable[[], None]) -> None:
        waits = asyncio.gather(*(agent.ready.wait() for agent in self.agents.values()))
        with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(waits, READY_TIMEOUT_S)
        on_ready()

    async def handle(self, request: dict[str, Any]) -> Any:
        """One request of the control socket."""
        match request["op"]:
            case "status":
                return [agent.status() for agent in self.agents.values()]
            case "measure":
                return [m for agent in self.agents.values() for m in agent.measurements()]
            case "threshold_set" | "threshold_auto" | "scheme_set":
                return await self._agent(request).change(request)
            case "flow_weights":
                rules = WeightRules.parse(request["rules"])
                for agent in self.agents.values():
                    agent.use_flow_weights(rules)
                return {"rules": len(rules.rules)}
            case other:
                ops = ("status", "measure", "threshold_set", "threshold_auto", "scheme_set", "flow_weights")
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
        if self._lock is not None:
            self._lock.close()
            self._lock = None


async def run_agents(agents: Iterable[SwitchSession], tell_ready: Coroutine[Any, Any, None], log: Log) -> None:
    """All agents of one loop, and `tell_ready` beside them, until cancelled."""
    tasks = [asyncio.create_task(agent.run()) for agent in agents]
    tasks.append(asyncio.create_task(tell_ready))
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


async def run_loops(targets: Sequence[LoopTarget], options: AgentOptions, on_ready: Callable[[], None]) -> None:
    """Run the loops of all targets until SIGTERM or SIGINT; `on_ready` is called once when all are (or could not be)."""
    loops: list[TopologyLoop] = []
    try:
        for target in targets:
            loops.append(TopologyLoop(target, options))
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
