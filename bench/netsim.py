# SPDX-License-Identifier: Apache-2.0
"""Measures virtual time: packets through the P4 pipeline per second in netsim, and how much faster than real time the paper's links run,
also beside ns-2 where it is installed."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlane_lab.definition.expansion import expand
from fairlane_lab.definition.loading import load
from fairlane_lab.runners.sim import run
from fairlane_lab.scenario import Scenario
from fairlane_switch.interfaces import run as run_command
from summary import Run, ratios
from testbed import ROOT, run_example

PACKETS_PER_S_AIM = 400_000.0
GROWTH_AIM = 1.5
GIGABIT_AIM = 2.0
LINKS_AIM = 100.0
FAT_AIM = 1 / 40
THREADS_AIM = 1.6
FAT_THREADS_AIM = 1.4
NS2_AIM = 6.0
NS2_CASE, NS2_VIRTUAL_S = "2M-2ms", 2_000.0
THRESHOLDS = {"512k-5ms": 4, "1.5M-2ms": 5, "2M-2ms": 6, "5M-2ms": 6}
"""The paper's best threshold of each of Table 2's links."""
PAPER_AIM_S = 60.0
PAPER = (
    "qthresh-table1",
    "qthresh-table2",
    "qthresh-fig3",
    "qthresh-fig6",
    "qthresh-fig9",
    "qthresh-weights",
    "qthresh-qos",
    "qthresh-window",
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
    return parse(run_example("netsim", "packets_per_second", *arguments))


def links() -> dict[str, Scenario]:
    """Table 2's links at the paper's threshold, by their names."""
    found: dict[str, Scenario] = {}
    for scenario in expand(load("qthresh-table2")):
        case = str(scenario.params.get("case") or scenario.point.split("/")[0])
        if scenario.repeat == 0 and scenario.control.threshold == THRESHOLDS[case]:
            found[case] = scenario
    return found


def table2() -> list[dict[str, Any]]:
    """One run of each of Table 2's links: virtual and wall seconds."""
    rows: list[dict[str, Any]] = []
    for case, scenario in links().items():
        started = time.perf_counter()
        result = run(scenario)
        rows.append({"case": case, "virtual_s": result.virtual_s, "wall_s": time.perf_counter() - started})
    return rows


def beside_ns2(table: Run) -> dict[str, list[float]]:
    """Processor seconds of `NS2_VIRTUAL_S` of Reno against Vegas, here with Qthresh, in ns-2 without, and in ns-2 with
    each event of a packet written to a file; in turns."""
    group = f"processor time of {NS2_VIRTUAL_S:,.0f} virtual s of Reno against Vegas at 2 Mbit/s"
    if shutil.which("ns") is None:
        return {}
    scenario = replace(links()[NS2_CASE], duration_s=NS2_VIRTUAL_S)
    dumbbell = ["ns", str(ROOT / "bench" / "dumbbell.tcl"), "2000000", "2", f"{NS2_VIRTUAL_S:g}"]

    def netsim() -> float:
        started = time.process_time()
        run(scenario)
        return time.process_time() - started

    def ns2(*trace: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*dumbbell, *trace], capture_output=True, check=True, timeout=600)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    with tempfile.TemporaryDirectory() as folder:
        measures = {"netsim": netsim, "ns-2": ns2, "ns-2 with trace": lambda: ns2(f"{folder}/trace")}
        samples = table.in_turns(measures)
    for who, values in samples.items():
        table.row(group, who, values, "s")
    for who in ("ns-2", "ns-2 with trace"):
        table.row(group, f"speed over {who}", ratios(samples[who], samples["netsim"]), "times", at_least=NS2_AIM)
    return samples


def paper_000(jobs: int = 2) -> float:
    """Wall seconds of `fairlane lab run` for all of the Qthresh paper in virtual time, five repeats of every point, without the plots."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("fairlane")), "lab", "run", *PAPER, "--jobs", str(jobs)]
        command += ["--repeats", "5", "--no-plots", "--results", folder]
        started = time.perf_counter()
        run_command(*command, timeout_s=1800)
        wall_s = time.perf_counter() - started
        there = {path.parent.parent.name for path in Path(folder).glob("*/*/summary.json")}
        if there != set(PAPER):
            raise RuntimeError(f"{' '.join(command)}: no results of {', '.join(sorted(set(PAPER) - there))}")
    return wall_s


def bench(table: Run) -> None:
    """All in virtual time; ns-2 where it is installed."""
    flows = _example("--flows", "2,10,100,1000")
    gigabit = _example("--flows", "65", "--mss-bytes", "1446")
    fat_options = ("--rate-bps", "10000000000", "--pairs", "250", "--queue-packets", "8500", "--packets", "4000000")
    (fat,) = _example("--flows", "10000", *fat_options)
    (fat_threads,) = _example("--flows", "10000", *fat_options, "--threads", "2")
    (tiers,) = _example("--flows", "320", "--switches", "64")
    (threads,) = _example("--flows", "320", "--switches", "64", "--threads", "2")
    table2_runs = table2()
    by_flows = {one["flows"]: one for one in flows}
    growth = by_flows[1000]["ns_per_packet"] / by_flows[2]["ns_per_packet"]
    ratio = sum(link["virtual_s"] for link in table2_runs) / sum(link["wall_s"] for link in table2_runs)
    forwarding, speed = "virtual time: packets through a switch", "virtual time: virtual over wall time"
    rates = {f"{count:,} flows at 1 Gbit/s": one for count, one in sorted(by_flows.items())}
    for name, one in {**rates, "320 flows, 64 switches": tiers}.items():
        table.row(forwarding, name, one["packets_per_s"], "packets/s", at_least=PACKETS_PER_S_AIM)
    for name, one, two, aim in (
        ("64 switches", tiers, threads, THREADS_AIM),
        ("10,000 flows", fat, fat_threads, FAT_THREADS_AIM),
    ):
        table.row(forwarding, f"2 threads to 1, {name}", one["wall_s"] / two["wall_s"], "times", at_least=aim)
    table.row(forwarding, "time of one, 1,000 flows to 2", growth, "times", below=GROWTH_AIM)
    table.row(speed, "65 flows at 1 Gbit/s", gigabit[0]["virtual_per_wall"], "times", at_least=GIGABIT_AIM)
    table.row(speed, "10,000 flows at 10 Gbit/s", fat["virtual_per_wall"], "times", at_least=FAT_AIM)
    table.row(speed, "Table 2's links", ratio, "times", at_least=LINKS_AIM)
    ns2 = beside_ns2(table)
    paper_s = paper_000()
    table.row("all of the Qthresh paper in virtual time", "5 repeats, 2 processes", paper_s, "s", at_most=PAPER_AIM_S)
    raw = {
        "flows": flows,
        "gigabit": gigabit,
        "fat": fat,
        "fat_threads": fat_threads,
        "tiers": tiers,
        "threads": threads,
        "table2": table2_runs,
        "ns2_s": ns2,
    }
    table.raw["netsim"] = raw | {"paper_s": paper_s}
