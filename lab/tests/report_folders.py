# SPDX-License-Identifier: Apache-2.0
"""Run folders for the report's tests: real experiment files, real tables, invented runs. Nothing here was measured."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.loading import load_text
from fairlane_lab.report.archive import archive_runs, archived_definitions, open_measured
from fairlane_lab.report.run_folder import Measured
from fairlane_lab.results.folder import publish
from fairlane_lab.results.rows import make_rows
from fairlane_lab.results.summary import summarise
from fairlane_lab.results.tables import Store
from fairlane_lab.run_result import FlowResult, PortResult, RunResult, SeriesPoint, Transfer
from fairlane_lab.scenario import Scenario

EXPERIMENTS = Path(__file__).parent / "report_experiments"
Runtime = Literal["sim", "mininet"]
Invent = Callable[[Scenario, random.Random, Runtime], RunResult]


def text_of(name: str) -> str:
    """An experiment file of the tests."""
    return (EXPERIMENTS / f"{name}.toml").read_text()


def invented(scenario: Scenario, chance: random.Random, runtime: Runtime) -> RunResult:
    """A run that looks like Reno (the first group) against the others behind a threshold."""
    params = scenario.params
    rate = float(params.get("rate_bps", 2e6))
    threshold = params.get("threshold", params.get("window_packets", 50))
    size = float(threshold) if isinstance(threshold, int) else 5.0
    utilisation = min(1.0, 0.55 + 0.13 * size) * (0.995 if runtime == "sim" else 0.985)
    first = 0.5 + 0.4 * (1 - math.exp(-max(0.0, size - 4) / 7)) - 0.06 * math.sin(size) + chance.uniform(-0.02, 0.02)
    rest = (1 - first) / max(1, len(scenario.flows) - 1)
    flows = [
        FlowResult(flow.name, flow.group, flow.variant, flow.weight, share * utilisation * rate * 0.947, chance.randrange(50), 1, 4.0, 30.0, flow.app.kind == "greedy")
        for place, flow in enumerate(scenario.flows)
        for share in [first if place == 0 else rest]
    ]  # fmt: skip
    port = PortResult("s1", 3, round(rate), utilisation * rate, utilisation, chance.randrange(50), size * 1.5)
    result = RunResult(flows, [port], virtual_s=scenario.duration_s, wall_s=0.5, packets=10_000)
    result.cpu_s = 0.25 if runtime == "sim" else None
    result.about = {"kernel": "none" if runtime == "sim" else "6.18.0", "offloads": {"tso": "off", "gro": "off"}}
    if scenario.series:
        result.series = saw_teeth(scenario, chance)
    return result


def saw_teeth(scenario: Scenario, chance: random.Random) -> list[SeriesPoint]:
    """cwnd that rises to 30 and halves (first flow) or stays at 4, and what waits in the queue."""
    points: list[SeriesPoint] = []
    for place, flow in enumerate(scenario.flows):
        cwnd = 2.0
        for step in range(int(scenario.duration_s / 0.1)):
            cwnd = cwnd / 2 if cwnd > 30 else min(cwnd + 0.12 + chance.uniform(-0.1, 0.1), 40 if place == 0 else 4)
            t_s = round(step * 0.1, 3)
            points.append(SeriesPoint(t_s, flow.name, "cwnd_packets", cwnd))
            points.append(SeriesPoint(t_s, flow.name, "queue_packets", max(0.0, math.floor(cwnd) - 4)))
    return points


def with_transfers(scenario: Scenario, chance: random.Random, runtime: Runtime) -> RunResult:
    """`invented`, with 30 finished transfers of each flow: slower ones behind drop-tail."""
    result = invented(scenario, chance, runtime)
    slower = 3 if scenario.control.scheme == "drop_tail" else 1
    result.transfers = [
        Transfer(flow.name, flow.group, chance.uniform(0, 20), 12_000, chance.lognormvariate(-1.5, 0.8) * slower)
        for flow in scenario.flows
        for _ in range(30)
    ]
    return result


def make_folder(
    folder: Path,
    text: str,
    runtime: Runtime = "sim",
    repeats: int = 3,
    seed: int = 1,
    invent: Invent = invented,
    about: dict[str, Any] | None = None,
) -> Path:
    """Write a run folder for an experiment file's text."""
    definition = load_text(text, "test.toml")
    chance = random.Random(f"{seed} {runtime}")
    folder.mkdir(parents=True)
    scenarios = expand(definition, Selection(runtime=runtime, seed=seed, repeats=repeats))
    store = Store(folder, list(dict.fromkeys(scenario.point for scenario in scenarios)))
    for scenario in scenarios:
        store.add(make_rows(scenario, invent(scenario, chance, runtime), runtime, "embedded"))
    store.merge()
    known: dict[str, Any] = {
        "runtime": runtime,
        "target": "embedded",
        "seed": seed,
        "quick": False,
        "complete": True,
        "metadata": {"git": "abc1234", "kernel": "6.18.0", "cores": 2, "started": f"2026-11-21T1{seed}:00:00+00:00", "versions": {"finsy": "0.30"}},
    }  # fmt: skip
    publish(folder, summarise(folder, definition, known | (about or {})))
    (folder.parent / "latest").unlink()
    return folder


def measured_of(folders: Sequence[Path]) -> Measured:
    """An experiment's run folders, as a report has them: archived, and read again."""
    data = folders[0].with_name("archive")
    archive_runs(folders, data)
    (definition,) = archived_definitions(data)
    return open_measured(data, definition)
