# SPDX-License-Identifier: Apache-2.0
"""The sim runner: one scenario in virtual time, with the controller's own code on the simulated switches."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from fairlane_controller.errors import FairlaneError
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.programs.qthresh.flows import FlowKey
from fairlane_controller.programs.qthresh.options import QthreshOptions
from fairlane_controller.programs.qthresh.topology import QthreshTopology
from fairlane_controller.state.loop_state import Mode, PolicyState

from fairlane_lab.run_result import AFTER_SPIKE_S, RunError, RunResult
from fairlane_lab.scenario import Scenario
from fairlane_lab.sim.config import SimConfig, resolve
from fairlane_lab.sim.measure import MemoryLog, Snapshot, Watch, snapshot
from fairlane_lab.sim.result import Observed, run_result
from fairlane_lab.sim.world import TRAFFIC_CLASS, SimWorld

SAMPLE_S = 0.02
"""Cwnd and queue are sampled at least this often, so that their means are good."""
MANY_FLOWS = 32
"""With more flows they are sampled as the scenario says, and no finer."""
DONE_STEP_S = 0.5
STEPS = 50
"""In so many pieces does a run go, to tell progress and to hear ^C."""

Progress = Callable[[float], None]


def run(scenario: Scenario, progress: Progress | None = None) -> RunResult:
    """One run. `progress` is called with the share of its virtual time that has passed, 0 to 1.

    Raises RunError for a scenario that cannot be run, or a run that cannot be trusted. The result depends on the scenario
    alone, but for `wall_s`.
    """
    started = time.perf_counter()
    if scenario.sample_s <= 0:
        raise RunError(f"sample_s {scenario.sample_s:g} must be greater than 0")
    connections = sum(flow.connections for flow in scenario.flows)
    step = 1 if connections > MANY_FLOWS else max(1, round(scenario.sample_s / SAMPLE_S))
    config = resolve(scenario, sample_period_ns=max(1, round(scenario.sample_s * 1e9 / step)))
    world = SimWorld(config)
    try:
        seen = world.loop.run_until_complete(_observe(world, progress or _silent))
        result = run_result(seen, step)
    finally:
        world.close()
    result.wall_s = time.perf_counter() - started
    return result


async def _observe(world: SimWorld, progress: Progress) -> Observed:
    scenario = world.config.scenario
    await world.set_up()
    loops = _Loops(world)
    spike: list[Snapshot] = []
    async with loops:
        await _sleep_until(scenario.warmup_s, scenario, progress)
        before = await _trusted(world, loops)
        if scenario.spike_s is not None:
            for mark_s in (scenario.spike_s[0], scenario.spike_s[1], scenario.spike_s[1] + AFTER_SPIKE_S):
                await _sleep_until(min(mark_s, scenario.duration_s), scenario, progress)
                spike.append(await _trusted(world, loops))
        if scenario.ends_with_its_files:
            await _sleep_until_done(world, progress)
        else:
            await _sleep_until(scenario.duration_s, scenario, progress)
        after = await _trusted(world, loops)
        if world.gfr is not None:
            world.gfr.sample()
    return Observed(world, before, after, loops.watch, loops.log.events, spike)


async def _trusted(world: SimWorld, loops: _Loops) -> Snapshot:
    """All counters, once every control loop is known to work."""
    loops.check()
    try:
        return await snapshot(world)
    except FairlaneError as problem:
        raise RunError(problem.message) from None


async def _sleep_until(t_s: float, scenario: Scenario, progress: Progress) -> None:
    """Until an instant, in steps of the whole run's length divided by `STEPS`."""
    loop = asyncio.get_running_loop()
    while (now_s := loop.time()) < t_s - 1e-9:
        progress(now_s / scenario.duration_s)
        reached = loop.create_future()
        loop.call_at(min(t_s, now_s + scenario.duration_s / STEPS), reached.set_result, None)
        await reached
    progress(t_s / scenario.duration_s)


async def _sleep_until_done(world: SimWorld, progress: Progress) -> None:
    """Until every file of the run is finished, looked at once in `DONE_STEP_S`, or its time is over."""
    scenario = world.config.scenario
    names = {each.name: each.flow.app.times for each in world.config.flows if each.flow.app.kind == "bytes"}
    loop = asyncio.get_running_loop()
    while loop.time() < scenario.duration_s - 1e-9:
        counts = {row["flow"]: row["completed"] for row in json.loads(world.simulation.flows())}
        if all(counts[name] >= times for name, times in names.items()):
            break
        reached = loop.create_future()
        loop.call_at(min(scenario.duration_s, loop.time() + DONE_STEP_S), reached.set_result, None)
        await reached
        progress(loop.time() / scenario.duration_s)
    progress(1.0)


def _silent(share: float) -> None:
    """No progress is told."""


class _Loops:
    """The control loops of a run, one for each switch with managed ports, where the scenario needs them."""

    def __init__(self, world: SimWorld) -> None:
        self.log = MemoryLog()
        self.watch = Watch()
        self.agents: list[SwitchAgent] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._world = world

    async def __aenter__(self) -> _Loops:
        control = self._world.config.scenario.control
        if self._world.gfr is not None:
            self._tasks += self._world.gfr.follow(self.log)
            return self
        if not control.needs_loop:
            return self
        self._world.loop.stop_on_messages = True
        options = QthreshOptions(
            flow_weight=_FlowWeights.of(self._world.config), probes=control.probes, keeps_counts=False
        )
        store = LoopStore(None)
        settings = PolicyState(
            mode=Mode.AUTO if isinstance(control.threshold, str) else Mode.MANUAL,
            self_tuning=control.threshold == "auto",
        )
        store.put({(switch, port, TRAFFIC_CLASS): settings for switch, port in self._world.config.managed})
        topology = QthreshTopology(options=options, store=store)
        for switch in self._world.managed_switches():
            endpoint = self._world.endpoint(switch)
            agent = SwitchAgent(endpoint, topology, self.log, client_factory=self._world.client)
            self.agents.append(agent)
            self._tasks.append(asyncio.create_task(agent.run()))
        self._tasks.append(asyncio.create_task(self.watch.look_forever(self.agents)))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def check(self) -> None:
        """Raises RunError when a loop has failed or is not there: in virtual time nothing may come between."""
        for task in self._tasks:
            if task.done():
                problem = None if task.cancelled() else task.exception()
                raise RunError(f"a control loop ended: {problem!r}")
        for event in self.log.events:
            if event["event"] in ("error", "disconnected", "flow_refused"):
                raise RunError(f"the control loop of {event['switch']} failed at {event['t_s']:g} s: {event}")
        keepers = self._world.gfr.agents if self._world.gfr else []
        for agent in (*self.agents, *keepers):
            if agent.last_error is not None:
                raise RunError(f"the control loop of {agent.endpoint.name} failed: {agent.last_error.message}")


@dataclass(frozen=True)
class _FlowWeights:
    """The weight that a new flow's entry gets: the scenario's, by its key or (`web`: many keys) by its sending host."""

    by_key: dict[FlowKey, float]
    by_sender: dict[object, float]

    @classmethod
    def of(cls, config: SimConfig) -> _FlowWeights | None:
        """None when every flow has the weight 1."""
        if all(flow.weight == 1.0 for flow in config.scenario.flows):
            return None
        by_key = {each.key: each.flow.weight for each in config.flows if each.has_known_key}
        by_sender: dict[object, float] = {}
        for each in config.flows:
            if not each.has_known_key and by_sender.setdefault(each.key.src, each.flow.weight) != each.flow.weight:
                raise RunError(
                    f"flow {each.name}: web flows of one host ({each.flow.sender}) must have the same weight"
                )
        return cls(by_key, by_sender)

    def __call__(self, key: FlowKey) -> float | None:
        weight = self.by_key.get(key, self.by_sender.get(key.src, 1.0))
        return None if weight == 1.0 else weight
