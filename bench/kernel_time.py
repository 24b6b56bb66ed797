# SPDX-License-Identifier: Apache-2.0
"""Measures `--runtime kernel`: how much faster than real time Linux's own TCP runs through the P4 program, what a frame costs, and memory."""

from __future__ import annotations

import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from statistics import mean, stdev
from typing import Any

from fairlane_lab.definition import Selection, expand, load
from fairlane_lab.runners import kernel
from fairlane_lab.scenario import Scenario
from fairlane_lab.sim.kernel import BUILT

RUNS = 5
T_95 = 2.776
"""Student's t of 4 degrees of freedom, two-sided 95 %."""
TWO_FLOWS_AIM = 40.0
FRAME_AIM_MS = 0.06
GIGABIT_TENTH_AIM = 1.0
LOSS_AIM = 1.1
MEMORY_AIM_MB = 100.0
SWITCHES = 2
LONG_S = 100.0
FAST_S = 10.0


def two_flows() -> Scenario:
    """Reno and Vegas at 2 Mbit/s behind Qthresh, four real hosts."""
    points = expand(load("qthresh-table1"), Selection(runtime="kernel"))
    chosen = next(point for point in points if "2M" in point.point and point.control.scheme == "qthresh")
    return replace(chosen, duration_s=LONG_S, warmup_s=10.0, series=False)


def many_flows() -> Scenario:
    """17 Reno flows at 100 Mbit/s."""
    base = two_flows()
    links = [{**link, "bandwidth": "1Gbit" if link["b"] == "s1-p1" else "100Mbit"} for link in base.topology["links"]]
    flow = replace(base.flows[0], connections=17)
    return replace(base, topology={**base.topology, "links": links}, flows=(flow,), duration_s=FAST_S, warmup_s=1.0)


def measure(scenario: Scenario) -> dict[str, float]:
    """One run: wall time, frames through the first switch, and the largest memory of the kernel and of this process."""
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    result = kernel.run(scenario)
    return {
        "wall_s": time.perf_counter() - started,
        "virtual_s": result.virtual_s,
        "frames": result.packets / SWITCHES,
        "kernel_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
        "grown_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1024,
    }


def bench() -> dict[str, Any]:
    """Rows and raw numbers, in the form that `bench/forwarding.py` describes; none where no kernel is built."""
    if not (BUILT / "linux").exists():
        return {"rows": [], "raw": {"kernel_time": "no kernel is built (make kernel)"}}
    pair, many = two_flows(), many_flows()
    alone: list[dict[str, float]] = []
    together: list[float] = []
    fast: list[dict[str, float]] = []
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(measure, [pair, pair]))  # both have loaded what they need
        for _ in range(RUNS):
            alone += pool.map(measure, [pair])
            together += [run["wall_s"] for run in pool.map(measure, [pair, pair])]
            fast += pool.map(measure, [many])
    speed = [run["virtual_s"] / run["wall_s"] for run in alone]
    frame_ms = [run["wall_s"] * 1e3 / run["frames"] for run in alone]
    fast_speed = [run["virtual_s"] / run["wall_s"] for run in fast]
    loss = mean(together) / mean(run["wall_s"] for run in alone)
    memory_mb = max(run["kernel_mb"] + run["grown_mb"] for run in [*alone, *fast])
    rows = [
        _row(
            "Linux in virtual time, 2 flows at 2 Mbit/s through P4, virtual to wall",
            speed,
            "x",
            f">= {TWO_FLOWS_AIM:.0f}",
            mean(speed) >= TWO_FLOWS_AIM,
        ),
        _row("Linux in virtual time, a frame", frame_ms, "ms", f"<= {FRAME_AIM_MS}", mean(frame_ms) <= FRAME_AIM_MS),
        _row(
            "Linux in virtual time, 17 flows at 100 Mbit/s, virtual to wall",
            fast_speed,
            "x",
            f">= {GIGABIT_TENTH_AIM:.0f}",
            mean(fast_speed) >= GIGABIT_TENTH_AIM,
        ),
        _row(
            "Linux in virtual time, a run beside another on the other core",
            [loss],
            "x",
            f"<= {LOSS_AIM}",
            loss <= LOSS_AIM,
        ),
        _row(
            "Linux in virtual time, memory of a run",
            [memory_mb],
            "MB",
            f"< {MEMORY_AIM_MB:.0f}",
            memory_mb < MEMORY_AIM_MB,
        ),
    ]
    return {"rows": rows, "raw": {"kernel_time": {"alone": alone, "together_wall_s": together, "many_flows": fast}}}


def _row(name: str, values: list[float], unit: str, aim: str, ok: bool) -> dict[str, Any]:
    if len(values) > 1:
        name += f" (n = {len(values)}, ± {T_95 * stdev(values) / len(values) ** 0.5:.2g})"
    return {"name": name, "value": mean(values), "unit": unit, "aim": aim, "ok": ok}
