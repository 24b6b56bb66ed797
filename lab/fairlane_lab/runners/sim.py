# SPDX-License-Identifier: Apache-2.0
"""The sim runner: one scenario in virtual time, with the controller's own code on the simulated switches."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.scenario import Scenario
from fairlane_lab.sim.config import resolve
from fairlane_lab.sim.kernel import Machine, make_machine
from fairlane_lab.sim.result import run_result
from fairlane_lab.sim.sharing import marks_s, spike_marks_s
from fairlane_lab.sim.world import SimWorld, Snapshot, snapshot

SAMPLE_S = 0.02
"""Cwnd and queue are sampled at least this often, so that their means are good."""
MANY_FLOWS = 32
"""With more flows they are sampled as the scenario says, and no finer."""
DONE_STEP_S = 0.5
STEPS = 50
"""In so many pieces does a run go, so that Ctrl-C is handled."""


def run(scenario: Scenario, machine: Machine | None = None) -> RunResult:
    """One run in virtual time; its result depends on the scenario alone.

    Args:
        scenario: What is run.
        machine: The real hosts, where there are any.

    Raises:
        RunError: The scenario cannot be run, or the run cannot be trusted.
        FairlaneError: What a switch, or the controller's own checks, refuse.

    """
    connections = sum(flow.connections for flow in scenario.flows)
    step = 1 if connections > MANY_FLOWS else max(1, round(scenario.sample_s / SAMPLE_S))
    config = resolve(scenario, sample_period_ns=max(1, round(scenario.sample_s * 1e9 / step)), machine=machine)
    if machine is not None:
        machine.add_libraries(config.programs)
    world = SimWorld(config)
    try:
        result = run_result(world, *world.loop.run_until_complete(_observe(world)), step)
        captures = json.loads(world.simulation.captures())
        result.capture_problems = [capture["error"] for capture in captures if capture["error"]]
    finally:
        world.close()
    return result


def run_kernel(scenario: Scenario) -> RunResult:
    """One run on Linux's TCP in virtual time, as `run`. The result depends on the scenario and the kernel's file alone."""
    cores = os.sched_getaffinity(0)  # the simulation shares a core with the machine
    try:
        with tempfile.TemporaryDirectory(prefix="fairlane-kernel-") as folder:
            machine = make_machine(Path(folder))
            machine.check_senders(scenario)
            result = run(scenario, machine)
            machine.check_programs()
            return result
    finally:
        os.sched_setaffinity(0, cores)


async def _observe(world: SimWorld) -> tuple[list[Snapshot], list[Snapshot], Snapshot]:
    """Run it; returns the snapshots that `run_result` needs."""
    scenario = world.config.scenario
    step_s = scenario.duration_s / STEPS
    await world.set_up()
    world.start()

    async def at(instants_s: Iterable[float]) -> list[Snapshot]:
        found: list[Snapshot] = []
        for instant_s in instants_s:
            await _sleep_until(min(instant_s, scenario.duration_s), step_s)
            found.append(await snapshot(world))
        return found

    try:
        begins = await at(marks_s(scenario))
        spike = await at(spike_marks_s(scenario))
        if scenario.ends_with_its_files:
            await _sleep_until(scenario.duration_s, DONE_STEP_S, _are_finished(world))
        else:
            await _sleep_until(scenario.duration_s, step_s)
        after = await snapshot(world)
        if problem := world.simulation.machine_failure():
            raise RunError(f"the machine of the hosts: {problem}")
    finally:
        await world.end()
    return begins, spike, after


async def _sleep_until(t_s: float, step_s: float, is_over: Callable[[], bool] = lambda: False) -> None:
    """Until an instant, in steps; `is_over` is asked before each."""
    loop = asyncio.get_running_loop()
    while (now_s := loop.time()) < t_s - 1e-9 and not is_over():
        await _instant(min(t_s, now_s + step_s))


def _are_finished(world: SimWorld) -> Callable[[], bool]:
    """What says whether every file of the run is finished."""
    names = {each.name: each.flow.app.times for each in world.config.flows if each.flow.app.kind == "bytes"}

    def are_finished() -> bool:
        counts = {row["flow"]: row["completed"] for row in json.loads(world.simulation.flows())}
        return all(counts[name] >= times for name, times in names.items())

    return are_finished


async def _instant(at_s: float) -> None:
    """Until the loop's clock says exactly `at_s`; whoever is interrupted leaves no timer behind."""
    loop = asyncio.get_running_loop()
    reached = loop.create_future()
    timer = loop.call_at(at_s, reached.set_result, None)
    try:
        await reached
    finally:
        timer.cancel()
