# SPDX-License-Identifier: Apache-2.0
"""Measures `--runtime kernel`: how much faster than real time Linux's own TCP runs through the P4 program, what a frame costs, and memory."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context
from statistics import mean

import psutil
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.loading import load
from fairlane_lab.runners import sim
from fairlane_lab.scenario import Scenario
from fairlane_lab.sim.kernel import BUILT
from summary import Run

RUNS = 6
TWO_FLOWS_AIM = 40.0
FRAME_AIM_MS = 0.06
GIGABIT_TENTH_AIM = 4.0
LOSS_AIM = 1.1
MEMORY_AIM_MB = 100.0
SWITCHES = 2
LONG_S = 100.0
FAST_S = 10.0


def two_flows() -> Scenario:
    """Reno and Vegas at 2 Mbit/s behind Qthresh, real hosts."""
    points = expand(load("qthresh-table2"), Selection(runtime="kernel"))
    chosen = next(point for point in points if point.point == "2M-2ms/threshold=8")
    return replace(chosen, duration_s=LONG_S, warmup_s=10.0, series=False)


def many_flows() -> Scenario:
    """17 Reno flows at 100 Mbit/s."""
    base = two_flows()
    links = [{**link, "bandwidth": "1Gbit" if link["b"] == "s1-p1" else "100Mbit"} for link in base.topology["links"]]
    flow = replace(base.flows[0], connections=17)
    return replace(base, topology={**base.topology, "links": links}, flows=(flow,), duration_s=FAST_S, warmup_s=1.0)


def measure(scenario: Scenario) -> dict[str, float]:
    """One run: wall time, and frames through the first switch."""
    started = time.perf_counter()
    result = sim.run_kernel(scenario)
    wall_s = time.perf_counter() - started
    return {"wall_s": wall_s, "virtual_s": result.virtual_s, "frames": result.packets / SWITCHES}


def measure_memory_mb(scenario: Scenario) -> float:
    """What a run takes at most (PSS): the kernel's processes, and what this one grows by."""
    me, done = psutil.Process(), threading.Event()
    sizes = [pss_mb(me)]

    def watch() -> None:
        while not done.wait(0.02):
            sizes.append(sum(map(pss_mb, [me, *me.children(recursive=True)])))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        sim.run_kernel(scenario)
    finally:
        done.set()
        watcher.join()
    return max(sizes) - sizes[0]


def pss_mb(process: psutil.Process) -> float:
    """A process's own memory and its part of what it shares; 0 when it has ended."""
    with suppress(psutil.Error):
        return process.memory_full_info().pss / 2**20
    return 0.0


def bench(run: Run) -> None:
    """Nothing where no kernel is built."""
    if not (BUILT / "linux").exists():
        run.raw["kernel_time"] = "no kernel is built (make kernel)"
        return
    pair, many = two_flows(), many_flows()
    alone: list[dict[str, float]] = []
    together: list[float] = []
    fast: list[dict[str, float]] = []
    memory_mb: list[float] = []
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(measure, [pair, pair]))  # both have loaded what they need
        for _ in range(RUNS):
            alone += pool.map(measure, [pair])
            together += [one["wall_s"] for one in pool.map(measure, [pair, pair])]
            fast += pool.map(measure, [many])
        memory_mb += pool.map(measure_memory_mb, [replace(pair, duration_s=20.0), many])
    speed, fast_speed = ([one["virtual_s"] / one["wall_s"] for one in runs] for runs in (alone, fast))
    frame_ms = [one["wall_s"] * 1e3 / one["frames"] for one in alone]
    loss = mean(together) / mean(one["wall_s"] for one in alone)
    speeds = "Linux in virtual time through P4: virtual over wall time"
    costs = "Linux in virtual time: what a run takes"
    run.row(speeds, "2 flows at 2 Mbit/s", speed, "times", at_least=TWO_FLOWS_AIM, statistic="mean")
    run.row(speeds, "17 flows at 100 Mbit/s", fast_speed, "times", at_least=GIGABIT_TENTH_AIM, statistic="mean")
    run.row(costs, "a frame", frame_ms, "ms", at_most=FRAME_AIM_MS, statistic="mean")
    run.row(costs, "a run beside another", loss, "times", at_most=LOSS_AIM)
    run.row(costs, "memory of the larger run", max(memory_mb), "MB", below=MEMORY_AIM_MB)
    numbers = {"alone": alone, "together_wall_s": together, "many_flows": fast, "memory_mb": memory_mb}
    run.raw["kernel_time"] = numbers
