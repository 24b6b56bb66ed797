# SPDX-License-Identifier: Apache-2.0
"""`make bench`: every benchmark in one run, one table, and the numbers in `results/bench/<UTC time>/summary.json`."""

from __future__ import annotations

import argparse
import os
import sys

from fairlane_lab.results.folder import metadata, new_folder, publish
from parts import PARTS
from rich.console import Console
from summary import Run, processor, show
from testbed import ROOT

BUSY_LOAD = 1.0


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="All benchmarks; one table, and JSON under results/bench/.")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each measurement")
    parser.add_argument("--rounds", type=int, default=6, help="rounds of a comparison")
    parser.add_argument("--only", default="", metavar="PART", help=f"only what begins so: {', '.join(PARTS)}")
    arguments = parser.parse_args()
    chosen = {name: part for name, part in PARTS.items() if name.startswith(arguments.only)}
    if not chosen:
        parser.error(f"--only {arguments.only}: there are {', '.join(PARTS)}")
    if os.geteuid() != 0:
        sys.exit("bench/run.py: network namespaces need root; run 'make bench'")
    console = Console()
    load = os.getloadavg()
    if load[0] > BUSY_LOAD:
        console.print(f"[yellow]this machine is busy (load {load[0]:.1f}): what needs two processors suffers most[/]")
    run = Run(arguments.seconds, arguments.rounds)
    for name, part in chosen.items():
        with console.status(f"measuring {name}"):
            part(run)
    numbers = {
        "experiment": "bench",
        **metadata(),
        "processor": processor(),
        "load_before": load,
        "params": {"seconds": arguments.seconds, "rounds": arguments.rounds},
        "rows": run.rows,
        "raw": run.raw,
    }
    file = publish(new_folder("bench", ROOT / "results"), numbers)
    show(run.rows, console)
    console.print(f"numbers: {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
