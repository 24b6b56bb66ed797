# SPDX-License-Identifier: Apache-2.0
"""One finished run as flat rows: what definition/names.py calls the columns. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from fairlane_lab.definition.names import column_kind
from fairlane_lab.inputs import configuration
from fairlane_lab.programs import find_part
from fairlane_lab.results.metrics import (
    FLOW_COLUMNS,
    Row,
    counter,
    run_metrics,
    viewings,
    window_metrics,
    with_slowdowns,
)
from fairlane_lab.run_result import RunResult
from fairlane_lab.satellite import ceiling_of
from fairlane_lab.scenario import Scenario

KEY = ("experiment", "point", "repeat", "seed", "runtime", "target")
"""The columns that every table begins with; (point, repeat) is unique in a folder."""
TEXTS = ("configuration", "drawn")
"""Of a run, what is no parameter and no number."""
TABLES: Mapping[str, tuple[str, ...]] = {
    "runs": ("configuration", "virtual_s", "packets"),
    "flows": ("flow", "group", "variant", "weight", "greedy", "goodput_bps", "share", "retransmits", "timeouts", "cwnd_packets", "srtt_ms"),
    "ports": ("switch", "port", "port_rate_bps", "throughput_bps", "utilisation", "drops", "queue_packets"),
    "vcs": ("vc", "mcr_bps", "w_bps", "ideal_bps", "goodput_bps", "ratio", "mcr_met", "mcr_met_5s", "active_s"),
    "transfers": ("flow", "group", "start_s", "bytes", "completion_s", "retransmits"),
    "series": ("t_s", "flow", "metric", "value"),
    "timing": ("wall_s", "about"),
}  # fmt: skip
"""Table -> the columns that it has even without rows, beside the key; parameters and metrics come between and after."""
RunRows = dict[str, list[Row]]
"""The rows of one run, by table; `events` are of events.jsonl. `timing` differs from one time to the next although the seed is the same."""


def make_rows(scenario: Scenario, result: RunResult, runtime: str, target: str) -> RunRows:
    """All rows of a run. Flows, transfers and series are in the order of their names and times."""
    key = dict(
        zip(KEY, (scenario.experiment, scenario.point, scenario.repeat, scenario.seed, runtime, target), strict=True)
    )
    params = {name: column_value(name, value) for name, value in scenario.params.items()}
    cut_s = scenario.warmup_s if result.cut_s is None else result.cut_s
    windows: dict[str, list[float]] = {}
    for point in result.series:
        if point.metric == "cwnd_packets" and point.flow and cut_s <= point.t_s <= scenario.duration_s:
            windows.setdefault(point.flow, []).append(point.value)
    flows = sorted(result.flows, key=lambda flow: natural(flow.flow))
    transfers = sorted(
        with_slowdowns(scenario, result.transfers),
        key=lambda each: (each.start_s, natural(each.flow), each.completion_s),
    )
    watched = viewings(scenario, transfers, cut_s)
    total_bps = sum(flow.goodput_bps for flow in flows)
    ceiling_bps = ceiling_of(scenario)
    part = find_part(scenario.program)
    run = {
        **run_metrics(flows, result.ports, transfers, windows, watched),
        **({} if ceiling_bps is None else {"ceiling_bps": ceiling_bps}),
        **result.sharing,
        **part.metrics(result),
        "cut_s": cut_s,
        "unsteady": None if result.steady is None else float(not result.steady),
        "drawn": json.dumps(scenario.drawn) if scenario.drawn else None,
        "configuration": configuration(scenario),
        "virtual_s": result.virtual_s,
        "packets": result.packets,
    }
    tables: RunRows = {
        "runs": [run],
        "flows": [
            {
                **_columns("flows", flow, share=flow.goodput_bps / total_bps if total_bps > 0 else 0.0),
                **{name: value for name in FLOW_COLUMNS if (value := counter(flow, name)) is not None},
                **window_metrics(windows.get(flow.flow, ())),
                **watched.get(flow.flow, {}),
            }
            for flow in flows
        ],
        "ports": [
            {**_columns("ports", port, port_rate_bps=port.rate_bps), **port.values}
            for port in sorted(result.ports, key=lambda port: (port.switch, port.port))
        ],
        "vcs": part.vc_rows(result),
        "transfers": [
            {
                **_columns("transfers", each),
                **({} if each.ran_s is None else {"ran_s": each.ran_s, "packets": each.packets}),
                **({} if each.complete else {"complete": False}),
                **({} if each.slowdown is None else {"slowdown": each.slowdown}),
            }
            for each in transfers
        ],
    }
    series = sorted(result.series, key=lambda point: (point.metric, natural(point.flow), point.t_s))
    about = json.dumps(result.about, sort_keys=True, default=str)
    return {
        **{name: [{**key, **params, **row} for row in rows] for name, rows in tables.items()},
        "series": [{**key, **_columns("series", point)} for point in series] if scenario.series else [],
        "events": [{**key, **event} for event in result.events],
        "timing": [{**key, "wall_s": result.wall_s, "about": about}],
    }


def _columns(table: str, measured: Any, **others: Any) -> Row:
    """A table's columns, of `others` or else of what was measured."""
    return {name: others[name] if name in others else getattr(measured, name) for name in TABLES[table]}


def column_value(name: str, value: Any) -> Any:
    """A parameter as its column has it: `threshold` is text, because it is packets, `model` or `auto`."""
    return None if value is None else str(value) if column_kind(name) is str else value


def param_value(name: str, value: Any) -> Any:
    """The parameter of a column's value: the inverse of `column_value`."""
    return int(value) if name == "threshold" and isinstance(value, str) and value.isdigit() else value


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key in which `vegas-10` comes after `vegas-9`."""
    parts = filter(None, re.split(r"([0-9]+)", text))
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def merged_about(abouts: Iterable[Mapping[str, Any]]) -> Row:
    """What the runners knew of themselves: a value that all runs share as it is, different ones as a list under `various` (32 at most)."""
    seen: dict[str, Row] = {}
    for about in abouts:
        for name, value in about.items():
            values = seen.setdefault(name, {})
            if len(values) < 32:
                values.setdefault(json.dumps(value, sort_keys=True, default=str), value)
    different = {name: list(values.values()) for name, values in sorted(seen.items())}
    return {name: values[0] if len(values) == 1 else {"various": values} for name, values in different.items()}
