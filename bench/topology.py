# SPDX-License-Identifier: Apache-2.0
"""Measures a large topology in seconds: 20 switches in a line, a host at each, one controller; started, pinged, stopped."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from summary import Run
from testbed import ROOT

SWITCHES = 20
INSTANCE = 61
TIMEOUT_S = 600
STARTED_AIM_S = 10.0
CLOCK = "sh date +%s.%N"
SCRIPT = f"{CLOCK}\npingall\n{CLOCK}\nexit\n"
"""What the launcher's command line is told: the time, each host pings each other one, the time."""


def line() -> dict[str, Any]:
    """The topology: port 1 of a switch has its host, 2 and 3 its neighbours, 1 ms away."""
    numbers = range(1, SWITCHES + 1)
    hosts = {f"h{i}": {"ip": f"10.0.{i}.1/24"} for i in numbers}
    links = [{"a": f"h{i}", "b": f"s{i}-p1", "bandwidth": "100Mbit"} for i in numbers]
    links += [
        {"a": f"s{i}-p3", "b": f"s{i + 1}-p2", "bandwidth": "100Mbit", "delay": "1ms"} for i in numbers if i < SWITCHES
    ]
    return {"name": "line", "hosts": hosts, "switches": {f"s{i}": {} for i in numbers}, "links": links}


def parse(output: str) -> list[float]:
    """The instants that the script asked for. Raises ValueError where a ping was lost or an instant is missing."""
    times = [float(instant) for instant in re.findall(r"^(\d{9,}\.\d+)\s*$", output, re.MULTILINE)]
    pings = SWITCHES * (SWITCHES - 1)
    if len(times) != 2 or f"({pings}/{pings} received)" not in output:
        raise ValueError(f"the topology did not do what it was told: {output[-2000:]}")
    return times


def seconds_of(processes: str) -> tuple[float, float, float]:
    """Seconds until the command line is there, of all pings, and until everything is removed."""
    with tempfile.TemporaryDirectory() as folder:
        topology, script = Path(folder, "line.json"), Path(folder, "script")
        topology.write_text(json.dumps(line()))
        script.write_text(SCRIPT)
        launcher = ROOT / "mininet" / "fairlane_topology" / "run.py"
        words = ["--topology", topology, "--script", script, "--instance", str(INSTANCE), "--processes", processes]
        begin = time.time()
        done = subprocess.run(
            [sys.executable, launcher, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        end = time.time()
    ready, pinged = parse(done.stdout)
    return ready - begin, pinged - ready, end - pinged


def bench(run: Run) -> None:
    """In one process, and with a process for each switch and link, in turns."""
    kinds = {"one": "in one process", "separate": "a process for each switch"}
    samples = run.in_turns({processes: partial(seconds_of, processes) for processes in kinds})
    for processes, name in kinds.items():
        started, pinged, stopped = zip(*samples[processes], strict=True)
        group = f"{SWITCHES} switches, {SWITCHES} hosts, {name}"
        aim = STARTED_AIM_S if processes == "one" else None
        run.row(group, "started, with the control loop", started, "s", at_most=aim)
        run.row(group, f"{SWITCHES * (SWITCHES - 1)} pings", pinged, "s")
        run.row(group, "stopped", stopped, "s")
    run.raw["topology_s"] = samples
