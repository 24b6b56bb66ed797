# SPDX-License-Identifier: Apache-2.0
"""The sim runner: one scenario in virtual time, with the controller's own code on the simulated switches."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable

from fairlane_controller.errors import FairlaneError

from fairlane_lab.run_result import AFTER_SPIKE_S, RunError, RunResult
from fairlane_lab.scenario import Scenario
from fairlane_lab.sim.config import resolve
from fairlane_lab.sim.kernel import Machine
from fairlane_lab.sim.measure import MemoryLog, Snapshot, snapshot
from fairlane_lab.sim.result import Observed, run_result
from fairlane_lab.sim.steady import marks_s
from fairlane_lab.sim.world import SimWorld

SAMPLE_S = 0.02
"""Cwnd and queue are sampled at least this often, so that their means are good."""
MANY_FLOWS = 32
"""With more flows they are sampled as the scenario says, and no finer."""
DONE_STEP_S = 0.5
STEPS = 50
"""In so many pieces does a run go, to tell progress and to hear ^C."""

Progress = Callable[[float], None]


def run(scenario: Scenario, progress: Progress | None = None, machine: Machine | None = None) -> RunResult:
    """One run, with a `machine` of real hosts. `progress` is called with the share of its virtual time that has passed, 0 to 1.

    Raises RunError for a scenario that cannot be run, or a run that cannot be trusted. The result depends on the scenario
    alone, but for `wall_s`.
    """
    started = time.perf_counter()
    if scenario.sample_s <= 0:
        raise RunError(f"sample_s {scenario.sample_s:g} must be greater than 0")
    connections = sum(flow.connections for flow in scenario.flows)
    step = 1 if connections > MANY_FLOWS else max(1, round(scenario.sample_s / SAMPLE_S))
    config = resolve(scenario, sample_period_ns=max(1, round(scenario.sample_s * 1e9 / step)), machine=machine)
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
        begins: list[Snapshot] = []
        for mark_s in marks_s(scenario):
            await _sleep_until(mark_s, scenario, progress)
            begins.append(await _trusted(world, loops))
        if scenario.spike_s is not None:
            for mark_s in (scenario.spike_s[0], scenario.spike_s[1], scenario.spike_s[1] + AFTER_SPIKE_S):
                await _sleep_until(min(mark_s, scenario.duration_s), scenario, progress)
                spike.append(await _trusted(world, loops))
        if scenario.ends_with_its_files:
            await _sleep_until_done(world, progress)
        else:
            await _sleep_until(scenario.duration_s, scenario, progress)
        after = await _trusted(world, loops)
        if problem := world.simulation.machine_failure():
            raise RunError(f"the machine of the hosts: {problem}")
    return Observed(world, begins, spike, after, loops.log.events)


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
        await _instant(min(t_s, now_s + scenario.duration_s / STEPS))
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
        await _instant(min(scenario.duration_s, loop.time() + DONE_STEP_S))
        progress(loop.time() / scenario.duration_s)
    progress(1.0)


async def _instant(at_s: float) -> None:
    """Until the loop's clock says exactly `at_s`; whoever is interrupted leaves no timer behind."""
    loop = asyncio.get_running_loop()
    reached = loop.create_future()
    timer = loop.call_at(at_s, reached.set_result, None)
    try:
        await reached
    finally:
        timer.cancel()


def _silent(share: float) -> None:
    """No progress is reported."""


class _Loops:
    """What the program runs beside the simulation: its control loops."""

    def __init__(self, world: SimWorld) -> None:
        self.log = MemoryLog()
        self._tasks: list[asyncio.Task[None]] = []
        self._world = world

    async def __aenter__(self) -> _Loops:
        self._tasks = [asyncio.create_task(job) for job in await self._world.start(self.log)]
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
        for agent in self._world.agents:
            if agent.last_error is not None:
                raise RunError(f"the control loop of {agent.endpoint.name} failed: {agent.last_error.message}")
