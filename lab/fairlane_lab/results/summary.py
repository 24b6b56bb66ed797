# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""summary.json: what was run and with what, each point's aggregates, the verdicts. Made from a folder's tables, later and again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairlane_lab.definition.judging import Relative
from fairlane_lab.definition.loading import Definition
from fairlane_lab.definition.names import OTHER_COLUMNS, PARAMETERS, RUN_METRICS
from fairlane_lab.results import tables
from fairlane_lab.results.rows import Row, merged_about, param_value, values_of
from fairlane_lab.results.statistics import Spread, Statistic, aggregate_all, aggregate_ratio
from fairlane_lab.results.verdicts import PointRuns, judge, paired

PER_RUN_PARAMETERS = frozenset({"offset_s"})
"""Parameters that differ between the repeats of a point."""


def summarise(folder: Path, definition: Definition, about: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of a folder with merged tables. `about` is what the caller knows: selection, metadata, completeness, failures."""
    rows, timing = read_rows(folder / "runs.parquet"), read_rows(folder / "timing.parquet")
    cpu_s: list[Any] = [row.get("cpu_s") for row in timing]
    speed = {
        "wall_s_of_runs": sum(row["wall_s"] or 0.0 for row in timing),
        "cpu_s_of_runs": None if None in cpu_s else sum(cpu_s),
        "virtual_s": sum(row.get("virtual_s") or 0.0 for row in rows),
        "packets": sum(row.get("packets") or 0 for row in rows),
    }
    machines = merged_about(json.loads(row["about"]) for row in timing if row["about"])
    return summary_of(rows, definition, {**about, "speed": speed, "about": machines})


def summary_of(rows: Sequence[Row], definition: Definition, about: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of runs, as the definition judges them."""
    experiment = definition.experiment
    points = group_points(rows)
    ratios = add_relative(points, experiment.relative, experiment.statistic)
    verdicts = judge(experiment.expect, points, str(about["runtime"]), experiment.relative)
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "definition_sha256": definition.sha256,
        **about,
        "runs": len(rows),
        "statistic": experiment.statistic,
        "points": [_point(point, experiment.statistic, ratios[point.point]) for point in points],
        "verdicts": [verdict.as_json() for verdict in verdicts],
        "definition": definition.as_json(),
    }


def group_points(rows: Sequence[Row]) -> list[PointRuns]:
    """The runs by point, in the order of the rows."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["point"], []).append(row)
    names = [name for name in PARAMETERS if name not in PER_RUN_PARAMETERS]
    found: list[PointRuns] = []
    for point, group in groups.items():
        values = {name: {row.get(name) for row in group} for name in names if group[0].get(name) is not None}
        params = {name: param_value(name, group[0][name]) for name, seen in values.items() if len(seen) == 1}
        found.append(PointRuns(point, params, group))
    return found


def add_relative(
    points: Sequence[PointRuns], wanted: Sequence[Relative], statistic: Statistic = "median"
) -> dict[str, dict[str, Spread | None]]:
    """Put into every row what `wanted` says: its metric over that of the same repeat at the point that it is relative to; None without.

    Returns the same of each point: ratios of the two middles, None where it is not known.
    """
    found: dict[str, dict[str, Spread | None]] = {point.point: {} for point in points}
    for relative in wanted:
        for point, pairs in zip(points, paired(points, relative.metric, relative.to), strict=True):
            for row in point.rows:
                value, below = pairs.get(row["repeat"], (0.0, 0.0))
                ratio = value / below if below else math.nan
                row[relative.name] = None if math.isnan(ratio) else ratio
            above, under = zip(*pairs.values(), strict=True) if pairs else ((), ())
            found[point.point][relative.name] = aggregate_ratio(above, under, statistic) if pairs else None
    return found


def _point(point: PointRuns, statistic: Statistic, ratios: Mapping[str, Spread | None]) -> dict[str, Any]:
    others = {*OTHER_COLUMNS, *ratios, *PARAMETERS}
    groups = dict.fromkeys(column.removeprefix(column.split("[")[0]) for column in point.rows[0])
    never = (  # an archive has no empty column
        name + group
        for name, about in RUN_METRICS.items()
        for group in groups
        if about.never_beside and about.never_beside + group in point.rows[0]
    )
    columns = {  # a table's rows have the same columns
        name: [float(value) for value in values_of(point.rows, name) if value is not None]
        for name in dict.fromkeys([*point.rows[0], *never])
        if name not in others
    }
    measured = aggregate_all({name: values for name, values in columns.items() if values}, statistic)
    known = {
        name: found
        for name, found in {**measured, **ratios}.items()
        if found and (found.never or math.isfinite(found.lo + found.hi))
    }
    metrics: dict[str, float] = {}
    for name, found in known.items():
        metrics |= {name: found.value, f"{name}_lo": found.lo, f"{name}_hi": found.hi}
    return {
        "point": point.point,
        "params": dict(point.params),
        "runs": len(point.rows),
        "metrics": {name: value for name, value in metrics.items() if math.isfinite(value)},
        "ranges": {name: [found.min, found.max] for name, found in known.items() if math.isfinite(found.max)},
        "counts": {name: found.runs for name, found in known.items() if found.runs != len(point.rows)},
        "never": {name: found.never for name, found in known.items() if found.never},
    }


def read_rows(path: Path) -> list[Row]:
    """A table's rows, what is not finite as None; none when there is no file."""
    return tables.rows_of(tables.read(path))
