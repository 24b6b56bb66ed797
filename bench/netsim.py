# SPDX-License-Identifier: Apache-2.0
"""Measures virtual time: packets through the P4 pipeline per second in netsim, and how much faster than real time the paper's links run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fairlane_lab.definition import expand, load
from fairlane_lab.runners.sim import run
from testbed import ROOT

PACKETS_PER_S_AIM = 400_000.0
GROWTH_AIM = 1.5
GIGABIT_AIM = 2.0
LINKS_AIM = 100.0
PAPER_AIM_S = 60.0
PAPER = (
    "qthresh-table1",
    "qthresh-table2",
    "qthresh-fig3",
    "qthresh-fig6",
    "qthresh-fig9",
    "qthresh-weights",
    "qthresh-flows",
    "qthresh-changes",
    "qthresh-short-flows",
)
"""All that the Qthresh paper shows, claims or leaves to future work."""


def parse(text: str) -> list[dict[str, Any]]:
    """The example's rows: one JSON object a line. Raises ValueError when there is none."""
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if not rows:
        raise ValueError(f"no rows in what packets_per_second printed: {text!r}")
    return rows


def _example(*arguments: str) -> list[dict[str, Any]]:
    command = ["cargo", "run", "--release", "--quiet", "--package", "netsim", "--example", "packets_per_second", "--"]
    command += arguments
    done = subprocess.run(command, cwd=ROOT / "switch", env=os.environ, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return parse(done.stdout)


def table2() -> list[dict[str, Any]]:
    """One run of each of Table 2's links at the paper's threshold: virtual and wall seconds."""
    chosen = {"512k-5ms": 4, "1.5M-2ms": 5, "2M-2ms": 6, "5M-2ms": 6}
    found: list[dict[str, Any]] = []
    for scenario in expand(load("qthresh-table2")):
        case = str(scenario.params.get("case") or scenario.point.split("/")[0])
        if scenario.repeat == 0 and scenario.control.threshold == chosen[case]:
            result = run(scenario)
            found.append({"case": case, "virtual_s": result.virtual_s, "wall_s": result.wall_s})
    return found


def paper_000(jobs: int = 2) -> float:
    """Wall seconds of `fairlane lab run` for all of the Qthresh paper in virtual time, five repeats of every point, without the plots."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("fairlane")), "lab", "run", *PAPER, "--jobs", str(jobs)]
        command += ["--repeats", "5", "--no-plots", "--results", folder]
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
        wall_s = time.perf_counter() - started
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        there = {path.parent.parent.name for path in Path(folder).glob("*/*/summary.json")}
        if there != set(PAPER):
            raise RuntimeError(f"{' '.join(command)}: no results of {', '.join(sorted(set(PAPER) - there))}")
    return wall_s


def bench() -> dict[str, Any]:
    """Rows and raw numbers, in the form that `bench/forwarding.py` describes."""
    flows = _example("--flows", "2,10,100,1000")
    gigabit = _example("--flows", "65", "--mss-bytes", "1446")
    links = table2()
    paper_s = paper_000()
    by_flows = {row["flows"]: row for row in flows}
    growth = by_flows[1000]["ns_per_packet"] / by_flows[2]["ns_per_packet"]
    ratio = sum(link["virtual_s"] for link in links) / sum(link["wall_s"] for link in links)
    rows: list[dict[str, Any]] = [
        {
            "name": f"virtual time, {count} flows at 1 Gbit/s, two switches",
            "value": row["packets_per_s"],
            "unit": "packets/s",
            "aim": f">= {PACKETS_PER_S_AIM:,.0f}",
            "ok": row["packets_per_s"] >= PACKETS_PER_S_AIM,
        }
        for count, row in sorted(by_flows.items())
    ]
    rows.append(
        _ratio("virtual time, a packet with 1,000 flows to one with 2", growth, f"< {GROWTH_AIM}", growth < GROWTH_AIM)
    )
    speed = gigabit[0]["virtual_per_wall"]
    rows.append(
        _ratio("virtual to wall time, 65 flows at 1 Gbit/s", speed, f">= {GIGABIT_AIM:.0f}", speed >= GIGABIT_AIM)
    )
    rows.append(_ratio("virtual to wall time, Table 2's links", ratio, f">= {LINKS_AIM:.0f}", ratio >= LINKS_AIM))
    rows.append(
        {
            "name": "all of the Qthresh paper in virtual time, 5 repeats, 2 processes",
            "value": paper_s,
            "unit": "s",
            "aim": f"<= {PAPER_AIM_S:.0f}",
            "ok": paper_s <= PAPER_AIM_S,
        }
    )
    return {"rows": rows, "raw": {"netsim": {"flows": flows, "gigabit": gigabit, "table2": links, "paper_s": paper_s}}}


def _ratio(name: str, value: float, aim: str, ok: bool) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": "x", "aim": aim, "ok": ok}
