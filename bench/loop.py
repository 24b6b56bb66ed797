# SPDX-License-Identifier: Apache-2.0
"""Measures what the control loop takes of a processor while it tunes 256 real flows on one port, beside two flows. Root is needed."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import replace

import psutil
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.loading import load
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.runners import mininet
from fairlane_lab.scenario import Scenario
from fairlane_lab.testbed.collect import VoidError
from summary import Run

FLOWS = (2, 256)
RATE = "20Mbit"
WARM_UP_S, WINDOW_S, WINDOWS = 15.0, 5.0, 6
AIM = 0.05
START_S = 120.0
"""Starting the network takes no longer."""


def scenario(flows: int) -> Scenario:
    """Half Reno, half Vegas, tuned by the law, on the link of two flows of `qthresh-flows`, ten times as fast."""
    points = expand(load("qthresh-flows"), Selection(runtime="sim"))
    chosen = next(point for point in points if point.point == "2 flows/auto")
    links = [{**link, "bandwidth": RATE} if link["b"] == "s2-p1" else link for link in chosen.topology["links"]]
    each = tuple(replace(flow, connections=flows // 2) for flow in chosen.flows)
    seconds = WARM_UP_S + WINDOW_S * (WINDOWS + 1)
    switches = {
        **chosen.topology["switches"],
        "s1": {"ports": {"3": {"queue_packets": 25 * flows, "bottleneck": True}}},
    }
    topology = {**chosen.topology, "links": links, "switches": switches}
    return replace(chosen, topology=topology, flows=each, duration_s=seconds, warmup_s=WARM_UP_S, series=False)


def used_s(process: psutil.Process) -> float:
    """Time on a processor that a process has had so far, seconds."""
    times = process.cpu_times()
    return times.user + times.system


def find_loop(timeout_s: float = START_S) -> psutil.Process:
    """The control loop of the network that this process starts. Raises TimeoutError."""
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):  # it has just ended
                if {"run", "--ready-file"} <= set(process.cmdline()):
                    return process
        time.sleep(0.2)
    raise TimeoutError(f"no control loop within {timeout_s:.0f} s")


def shares(flows: int) -> list[float]:
    """The loop's part of one processor in windows of a run. Raises RuntimeError when the run ends before."""
    problems: list[str] = []

    def work() -> None:
        def take(_: Scenario, result: RunResult | RunError) -> None:
            # A machine that stood still spoils the flows' shares, and not the loop's.
            if isinstance(result, RunError) and not isinstance(result, VoidError):
                problems.append(str(result))

        try:
            mininet.run_many([scenario(flows)], mininet.MininetOptions(), take)
        except RuntimeError as error:
            problems.append(str(error))

    running = threading.Thread(target=work)
    running.start()
    found: list[float] = []
    try:
        loop = find_loop()
        time.sleep(WARM_UP_S)  # not for readiness: the flows start, and their thresholds settle
        for _ in range(WINDOWS):
            began_s, before_s = time.monotonic(), used_s(loop)
            time.sleep(WINDOW_S)
            found.append((used_s(loop) - before_s) / (time.monotonic() - began_s))
    finally:
        running.join()
    if problems:
        raise RuntimeError(f"the run with {flows} flows failed: {problems[0]}")
    return found


def bench(run: Run) -> None:
    """Each number of flows in a run of its own."""
    samples = {flows: shares(flows) for flows in FLOWS}
    for flows, values in samples.items():
        aim = 100 * AIM if flows == max(FLOWS) else None
        percent = [100 * share for share in values]
        run.row("the control loop, of one processor", f"{flows} flows on one port", percent, "%", at_most=aim)
    run.raw["loop_share"] = {str(flows): values for flows, values in samples.items()}
