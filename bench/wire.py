# SPDX-License-Identifier: Apache-2.0
"""Measures the wire: how exact its delays are, on the machine as it is and on a busy one, and how many frames a second it moves.

    probe ── pa ── da ▒wire▒ db ── pb ── probe      (the probe in a namespace, the wire in ours)

Delay: kernel stamp at `pb` less the clock before the send into `pa`, less the link's delay.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

from fairlane_switch.interfaces import run as run_command
from fairlane_switch.wire import LinkOptions, WireLink, start_wire
from summary import Run
from testbed import build_example, make_bed

DELAYS_US = (5_000, 100_000)
DELAY_ERROR_AIM_US = 100.0
THROUGHPUT_AIM_PPS = 200_000
PROBE_PPS = 1_000


@contextlib.contextmanager
def busy_machine() -> Generator[None]:
    """As many processes that only compute as there are processors, at ordinary priority."""
    command = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait(timeout=10)


def cpu_ns(pid: int) -> int:
    """Time that a process has run, ns, the kernel's work for it included."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def measure(*, delay_us: int, rate_pps: int, seconds: float, busy: bool) -> dict[str, Any]:
    """One run of the probe over a link of `delay_us`; adds the wire's own counts as `wire`."""
    options = LinkOptions(delay_us=delay_us)
    probe = build_example("wire", "wire_probe", built="FAIRLANE_WIRE_PROBE")
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as folder, make_bed() as bed:
        link = WireLink("a-b", bed.left, bed.right, options, options)
        with start_wire([link], folder=Path(folder)) as wire:
            words = ("--delay-us", delay_us, "--rate-pps", rate_pps, "--seconds", seconds)
            with busy_machine() if busy else contextlib.nullcontext():
                before = cpu_ns(wire.process.pid)
                command = bed.inside(probe, "--from", "pa", "--to", "pb", *words)
                result: dict[str, Any] = json.loads(run_command(*command, timeout_s=seconds + 30))
                used = cpu_ns(wire.process.pid) - before
            stats = wire.client.stats()["a-b"]
    result["wire"] = {
        "cpu_ns_per_frame": used / max(1, result["received"]),
        "late_us_p99": stats.a_to_b.late_us_p99,
        "dropped_ring_full": stats.a.dropped_ring_full,
        "dropped_unsent": stats.a_to_b.dropped_unsent,
    }
    return result


def bench(run: Run) -> None:
    """Delays, on the machine as it is and on a busy one, and throughput."""
    for busy in (False, True):
        machine = "busy machine" if busy else "machine as it is"
        for delay_us in DELAYS_US:
            name = f"wire, {delay_us // 1000} ms link, {machine}"
            result = run.raw[name] = measure(delay_us=delay_us, rate_pps=PROBE_PPS, seconds=run.seconds, busy=busy)
            if result["received"] != result["sent"]:
                raise RuntimeError(f"{name}: {result['sent'] - result['received']} of {result['sent']} frames lost")
            run.row(name, "delay error p50", result["delay_error_us_p50"], "µs")
            run.row(name, "delay error p99", result["delay_error_us_p99"], "µs", below=DELAY_ERROR_AIM_US)
    name = "wire, 5 ms link, 64-byte frames as fast as the probe sends"
    result = run.raw[name] = measure(delay_us=5_000, rate_pps=0, seconds=run.seconds, busy=False)
    run.row(name, "throughput", result["received_pps"], "packets/s", at_least=THROUGHPUT_AIM_PPS)
    run.row(name, "processor time a frame", result["wire"]["cpu_ns_per_frame"], "ns")
    run.row(name, "frames lost to overload", 100 * (1 - result["received"] / result["sent"]), "%")
