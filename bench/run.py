# SPDX-License-Identifier: Apache-2.0
"""`make bench`: every benchmark in one run, one table, and the numbers in `results/bench/<UTC time>/summary.json`."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable
from typing import Any

import chain
import differences
import forwarding
import kernel_time
import loop
import netsim
import p4runtime
import pipeline
import topology
import wire
from rich.console import Console
from summary import git_revision, processor, save, show
from testbed import ROOT

BUSY_LOAD = 1.0


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="All benchmarks; one table, and JSON under results/bench/.")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each measurement")
    parser.add_argument("--rounds", type=int, default=6, help="rounds of a comparison")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench/run.py: network namespaces need root; run 'make bench'")
    console = Console()
    load = os.getloadavg()
    if load[0] > BUSY_LOAD:
        console.print(f"[yellow]this machine is busy (load {load[0]:.1f}): what needs two processors suffers most[/]")
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "pipeline alone": pipeline.bench,
        "virtual time": lambda: netsim.bench(arguments.rounds),
        "Linux in virtual time": kernel_time.bench,
        "forwarding": lambda: forwarding.bench(arguments.seconds, arguments.rounds),
        "several switches": lambda: chain.bench(arguments.seconds, arguments.rounds),
        "a large topology": lambda: topology.bench(rounds=arguments.rounds),
        "P4Runtime": lambda: p4runtime.bench(arguments.rounds),
        "the control loop": loop.bench,
        "links": lambda: wire.bench(arguments.seconds),
        "what BMv2 does otherwise": lambda: differences.bench(arguments.seconds),
    }
    rows: list[dict[str, Any]] = []
    raw: dict[str, Any] = {}
    for name, part in parts.items():
        with console.status(f"measuring {name}"):
            result = part()
        rows += result["rows"]
        raw |= result["raw"]
    numbers = {
        "experiment": "bench",
        "git": git_revision(),
        "kernel": platform.release(),
        "processor": processor(),
        "processors": os.cpu_count(),
        "load_before": load,
        "params": {"seconds": arguments.seconds, "rounds": arguments.rounds},
        "rows": rows,
        "raw": raw,
    }
    file = save(numbers)
    show(rows, console)
    console.print(f"numbers: {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
