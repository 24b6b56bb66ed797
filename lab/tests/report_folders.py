# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Run folders for the report's tests, made from real experiment files and invented values: nothing here was measured."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from fairlane_lab.definition import Definition, load_text
from fairlane_lab.definition.points import make_points
from fairlane_lab.definition.strict import matches

Row = dict[str, Any]


def invented(params: Row, groups: list[str], chance: random.Random, runtime: str) -> Row:
    """Metrics of one run that look like Reno against the others behind a threshold."""
    rate = float(params.get("rate_bps", 2e6))
    threshold = params.get("threshold", params.get("window_packets", 50))
    size = float(threshold) if isinstance(threshold, int) else 5.0
    utilisation = min(1.0, 0.55 + 0.13 * size) * (0.995 if runtime == "sim" else 0.985)
    first = 0.5 + 0.4 * (1 - math.exp(-max(0.0, size - 4) / 7)) - 0.06 * math.sin(size) + chance.uniform(-0.02, 0.02)
    shares = [first if i == 0 else (1 - first) / max(1, len(groups) - 1) for i in range(len(groups))]
    goodputs = {group: share * utilisation * rate * 0.947 for group, share in zip(groups, shares, strict=True)}
    metrics: Row = {f"goodput_bps[{group}]": value for group, value in goodputs.items()}
    total = sum(goodputs.values())
    metrics |= {
        "goodput_bps": total,
        "throughput_bps": utilisation * rate,
        "utilisation": utilisation,
        "fairness": min(goodputs.values()) / max(goodputs.values()),
        "jain": total**2 / (len(groups) * sum(value**2 for value in goodputs.values())),
        "retransmits": chance.randrange(50),
        "drops": chance.randrange(50),
        "queue_packets": size * 1.5,
    }
    return metrics


def make_folder(
    folder: Path,
    text: str,
    runtime: str = "sim",
    repeats: int = 3,
    seed: int = 1,
    measure: Callable[[Row, list[str], random.Random, str], Row] = invented,
    series_s: float = 0.0,
    transfers: int = 0,
) -> Path:
    """Write a run folder for an experiment file's text; `series_s` seconds of time series for each point's first repeat."""
    definition: Definition = load_text(text, "test.toml")
    experiment = definition.experiment
    groups = list(dict.fromkeys(str(flow.get("group") or flow["name"]) for flow in experiment.flows))
    only = experiment.mininet.only if runtime == "mininet" else {}
    points = [point for point in make_points(experiment) if matches(only, point.params)]
    chance = random.Random(f"{seed} {runtime}")
    runs: list[Row] = []
    flows: list[Row] = []
    series: list[Row] = []
    moved: list[Row] = []
    summary_points: list[Row] = []
    for point in points:
        mine: list[Row] = []
        for repeat in range(repeats):
            key: Row = {"experiment": experiment.name, "point": point.name, "repeat": repeat, "seed": seed, "runtime": runtime, "target": "embedded"}  # fmt: skip
            params: Row = {name: str(value) if name == "threshold" else value for name, value in point.params.items()}
            metrics = measure(dict(point.params), groups, chance, runtime)
            mine.append(metrics)
            runs.append({**key, **params, **metrics})
            flows += [{**key, **params, "flow": group, "group": group, "variant": group, "weight": 1.0, "goodput_bps": metrics.get(f"goodput_bps[{group}]", 0.0), "cwnd_packets": 4.0} for group in groups]  # fmt: skip
            if repeat == 0 and series_s:
                series += _series(key, groups, series_s, chance)
            moved += [{**key, **params, "flow": group, "group": group, "start_s": chance.uniform(0, 60), "bytes": 12000, "completion_s": chance.lognormvariate(-1.5, 0.8) * (3 if params.get("scheme") == "drop_tail" else 1), "retransmits": 0} for group in groups for _ in range(transfers)]  # fmt: skip
        summary_points.append({"point": point.name, "params": dict(point.params), "runs": repeats, "metrics": _spread(mine)})  # fmt: skip
    folder.mkdir(parents=True)
    for stem, rows in (("runs", runs), ("flows", flows), ("series", series), ("transfers", moved)):
        pd.DataFrame(rows).to_parquet(folder / f"{stem}.parquet")
    summary = {
        "experiment": experiment.name,
        "runtime": runtime,
        "target": "embedded",
        "seed": seed,
        "complete": True,
        "metadata": {
            "git": "abc1234",
            "kernel": "6.18.0",
            "python": "3.11.2",
            "started": f"2026-11-21T1{seed}:00:00+00:00",
        },
        "definition": definition.as_json(),
        "points": summary_points,
    }
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def _spread(rows: list[Row]) -> Row:
    found: Row = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        found |= {name: median(values), f"{name}_lo": min(values), f"{name}_hi": max(values)}
    return found


def _series(key: Row, groups: list[str], seconds: float, chance: random.Random) -> list[Row]:
    rows: list[Row] = []
    for index, group in enumerate(groups):
        cwnd = 2.0
        for step in range(int(seconds / 0.1)):
            cwnd = (
                cwnd / 2
                if index == 0 and cwnd > 30
                else min(cwnd + 0.12 + chance.uniform(-0.1, 0.1), 40 if index == 0 else 4)
            )
            at = {**key, "t_s": round(step * 0.1, 3), "flow": group}
            rows += [{**at, "metric": "cwnd_packets", "value": cwnd}, {**at, "metric": "queue_packets", "value": max(0.0, math.floor(cwnd) - 4)}]  # fmt: skip
    return rows
