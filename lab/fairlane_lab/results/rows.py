# SPDX-License-Identifier: Apache-2.0
"""One finished run as flat rows: what definition/names.py calls the columns. Pure functions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairlane_lab.definition.names import column_kind
from fairlane_lab.inputs import configuration
from fairlane_lab.known import known_mean, known_sum
from fairlane_lab.programs import find_part
from fairlane_lab.results.senders import (
    FLOW_COLUMNS,
    counted,
    fair_share_ratios,
    file_metrics,
    sender_metrics,
    spike_metrics,
)
from fairlane_lab.results.slowdown import slowdown_metrics, with_slowdowns
from fairlane_lab.results.video import viewings
from fairlane_lab.run_result import FlowResult, PortResult, RunResult, Transfer
from fairlane_lab.satellite import ceiling_of
from fairlane_lab.scenario import Scenario

Row = dict[str, Any]
KEY = ("experiment", "point", "repeat", "seed", "runtime", "target")
"""The columns that every table begins with; (point, repeat) is unique in a folder."""
TEXTS = ("configuration", "drawn")
"""Of a run, what is no parameter and no number."""


@dataclass
class RunRows:
    """The rows of one run, by table."""

    runs: list[Row] = field(default_factory=list[Row])
    flows: list[Row] = field(default_factory=list[Row])
    ports: list[Row] = field(default_factory=list[Row])
    vcs: list[Row] = field(default_factory=list[Row])
    transfers: list[Row] = field(default_factory=list[Row])
    series: list[Row] = field(default_factory=list[Row])
    events: list[Row] = field(default_factory=list[Row])
    timing: list[Row] = field(default_factory=list[Row])
    """What differs from one time to the next although the seed is the same: wall time, the machine."""


def make_rows(scenario: Scenario, result: RunResult, runtime: str, target: str) -> RunRows:
    """All rows of a run. Flows, transfers and series are in the order of their names and times."""
    key = row_key(scenario, runtime, target)
    cut_s = scenario.warmup_s if result.cut_s is None else result.cut_s
    params = {name: column_value(name, value) for name, value in scenario.params.items()}
    windows = cwnd_samples(replace(scenario, warmup_s=cut_s), result)
    flows = sorted(result.flows, key=lambda flow: natural(flow.flow))
    transfers = sorted(
        with_slowdowns(scenario, result.transfers),
        key=lambda each: (each.start_s, natural(each.flow), each.completion_s),
    )
    watched = viewings(scenario, transfers, cut_s)
    total = sum(flow.goodput_bps for flow in flows)
    run = {**key, **params, **run_metrics(flows, result.ports, transfers, windows, watched)}
    run |= file_metrics(transfers) | sender_metrics(flows) | spike_metrics(flows, result.ports)
    if (ceiling := ceiling_of(scenario)) is not None:
        run["ceiling_bps"] = ceiling
    part = find_part(scenario.program)
    run |= result.sharing | part.metrics(result)
    run |= {"cut_s": cut_s, "unsteady": None if result.steady is None else float(not result.steady)}
    run |= {"drawn": json.dumps(scenario.drawn) if scenario.drawn else None}
    run |= {"configuration": configuration(scenario), "virtual_s": result.virtual_s, "packets": result.packets}
    return RunRows(
        runs=[run],
        flows=[{**key, **params, **_flow(flow, total, windows), **watched.get(flow.flow, {})} for flow in flows],
        ports=[{**key, **params, **_port(port)} for port in sorted(result.ports, key=lambda p: (p.switch, p.port))],
        vcs=[{**key, **params, **row} for row in part.vc_rows(result)],
        transfers=[{**key, **params, **_transfer(each)} for each in transfers],
        series=[
            {**key, "t_s": point.t_s, "flow": point.flow, "metric": point.metric, "value": float(point.value)}
            for point in sorted(result.series, key=lambda p: (p.metric, natural(p.flow), p.t_s))
        ]
        if scenario.series
        else [],
        events=[{**key, **event} for event in result.events],
        timing=[{**key, "wall_s": result.wall_s, "about": json.dumps(result.about, sort_keys=True, default=str)}],
    )


def row_key(scenario: Scenario, runtime: str, target: str) -> Row:
    """The key columns of a run."""
    return {
        "experiment": scenario.experiment,
        "point": scenario.point,
        "repeat": scenario.repeat,
        "seed": scenario.seed,
        "runtime": runtime,
        "target": target,
    }


def column_value(name: str, value: Any) -> Any:
    """A parameter as its column holds it: `threshold` is text, because it is packets, `model` or `auto`."""
    return None if value is None else str(value) if column_kind(name) is str else value


def param_value(name: str, value: Any) -> Any:
    """The parameter of a column's value: the inverse of `column_value`."""
    return int(value) if name == "threshold" and isinstance(value, str) and value.isdigit() else value


def cwnd_samples(scenario: Scenario, result: RunResult) -> dict[str, list[float]]:
    """Flow → its congestion windows sampled in the measured window; empty for runs without series."""
    samples: dict[str, list[float]] = {}
    for point in result.series:
        if point.metric == "cwnd_packets" and point.flow and scenario.warmup_s <= point.t_s <= scenario.duration_s:
            samples.setdefault(point.flow, []).append(point.value)
    return samples


def _windows(samples: Sequence[float]) -> Row:
    p95 = float(np.quantile(samples, 0.95, method="inverted_cdf")) if samples else None
    return {"cwnd_peak_packets": max(samples, default=None), "cwnd_p95_packets": p95}


def run_metrics(
    flows: Sequence[FlowResult],
    ports: Sequence[PortResult],
    transfers: Sequence[Transfer],
    windows: Mapping[str, Sequence[float]] | None = None,
    watched: Mapping[str, Row] | None = None,
) -> Row:
    """One value a metric; None where it does not exist. Fairness and Jain are over the greedy flows, by weight."""
    greedy = [flow.goodput_bps / flow.weight for flow in flows if flow.greedy]
    metrics: Row = {
        "goodput_bps": sum(flow.goodput_bps for flow in flows),
        "fairness": min(greedy) / max(greedy) if len(greedy) > 1 and max(greedy) > 0 else _zero_or_none(greedy),
        "jain": _jain(greedy) if len(greedy) > 1 else None,
        "least_share": _least_share(greedy),
        "retransmits": sum(flow.retransmits for flow in flows),
        "timeouts": known_sum(flow.timeouts for flow in flows),
        **_bottleneck(ports),
        **_completion(transfers),
    }
    groups = dict.fromkeys(flow.group for flow in flows)
    total = metrics["goodput_bps"]
    ratios = fair_share_ratios(flows)
    for group in groups:
        metrics |= {
            f"{name}[{group}]": value for name, value in _group(flows, group, total, windows or {}, ratios).items()
        }
        seen = [watched[flow.flow] for flow in flows if flow.group == group and flow.flow in watched] if watched else []
        metrics |= {f"{name}[{group}]": value for name, value in _viewing(seen).items()}
        mine = [each for each in transfers if each.group == group]
        metrics |= {f"{name}[{group}]": value for name, value in _completion(mine).items()} if mine else {}
    return metrics


def _jain(rates: Sequence[float]) -> float:
    """The Jain index (Σ x)²/(N·Σ x²); 0 when nothing moved."""
    squares = math.fsum(rate * rate for rate in rates)
    return math.fsum(rates) ** 2 / (len(rates) * squares) if squares > 0 else 0.0


def _least_share(greedy: Sequence[float]) -> float | None:
    """The smallest over the mean: 1 is an equal split, 0 a flow that starves."""
    return min(greedy) * len(greedy) / sum(greedy) if len(greedy) > 1 and sum(greedy) > 0 else _zero_or_none(greedy)


def _zero_or_none(greedy: Sequence[float]) -> float | None:
    return 0.0 if len(greedy) > 1 else None


def _bottleneck(ports: Sequence[PortResult]) -> Row:
    """Of the managed port. With several: sums of what adds up, the rest of the most used one."""
    if not ports:
        return {}
    main = max(ports, key=lambda port: port.utilisation)
    return {
        "throughput_bps": sum(port.throughput_bps for port in ports),
        "utilisation": main.utilisation,
        "drops": sum(port.drops for port in ports),
        "queue_packets": known_sum(port.queue_packets for port in ports),
        **main.values,
    }


def _completion(transfers: Sequence[Transfer]) -> Row:
    finished = [each for each in transfers if each.complete]
    if not finished:
        return {}
    times = np.array([each.completion_s for each in finished])
    return {
        "transfers": len(finished),
        "completion_s": float(np.median(times)),
        "completion_p95_s": float(np.quantile(times, 0.95)),
        **slowdown_metrics(finished),
    }


def _group(
    flows: Sequence[FlowResult],
    group: str,
    total: float,
    windows: Mapping[str, Sequence[float]],
    ratios: Mapping[str, float],
) -> Row:
    mine = [flow for flow in flows if flow.group == group]
    goodput = sum(flow.goodput_bps for flow in mine)
    shares = [ratios[flow.flow] for flow in mine if flow.flow in ratios]
    return {
        "goodput_bps": goodput / len(mine),
        "share": goodput / total if total > 0 else 0.0,
        "retransmits": sum(flow.retransmits for flow in mine),
        "timeouts": known_sum(flow.timeouts for flow in mine),
        **sender_metrics(mine, ("segments_sent", "window_reductions")),
        **({"fair_share_ratio": known_mean(shares)} if shares else {}),
        "cwnd_packets": known_mean(flow.cwnd_packets for flow in mine),
        **_windows([value for flow in mine for value in windows.get(flow.flow, ())]),
        "srtt_ms": known_mean(flow.srtt_ms for flow in mine),
    }


def _viewing(seen: Sequence[Row]) -> Row:
    """Of a group's viewings (`results/video.py`)."""
    if not seen:
        return {}
    return {
        "played_bps": known_mean(each["played_bps"] for each in seen),
        "stalled_share": known_mean(each["stalled_share"] for each in seen),
        "rate_switches": sum(each["rate_switches"] for each in seen),
    }


def _flow(flow: FlowResult, total: float, windows: Mapping[str, Sequence[float]]) -> Row:
    return {
        "flow": flow.flow,
        "group": flow.group,
        "variant": flow.variant,
        "weight": float(flow.weight),
        "greedy": flow.greedy,
        "goodput_bps": flow.goodput_bps,
        "share": flow.goodput_bps / total if total > 0 else 0.0,
        "retransmits": flow.retransmits,
        "timeouts": flow.timeouts,
        **{name: value for name in FLOW_COLUMNS if (value := counted(flow, name)) is not None},
        "cwnd_packets": flow.cwnd_packets,
        **_windows(windows.get(flow.flow, ())),
        "srtt_ms": flow.srtt_ms,
    }


def _port(port: PortResult) -> Row:
    return {
        "switch": port.switch,
        "port": port.port,
        "port_rate_bps": port.rate_bps,
        "throughput_bps": port.throughput_bps,
        "utilisation": port.utilisation,
        "drops": port.drops,
        "queue_packets": port.queue_packets,
        **port.values,
    }


def _transfer(transfer: Transfer) -> Row:
    return {
        "flow": transfer.flow,
        "group": transfer.group,
        "start_s": transfer.start_s,
        "bytes": transfer.bytes,
        "completion_s": transfer.completion_s,
        "retransmits": transfer.retransmits,
        **({} if transfer.ran_s is None else {"ran_s": transfer.ran_s, "packets": transfer.packets}),
        **({} if transfer.complete else {"complete": False}),
        **({} if transfer.slowdown is None else {"slowdown": transfer.slowdown}),
    }


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key in which `vegas-10` comes after `vegas-9`."""
    parts = filter(None, re.split(r"([0-9]+)", text))
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def merged_about(abouts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What the runners knew of themselves: a value that all runs share as it is, different ones as a list under `various`."""
    seen: dict[str, dict[str, Any]] = {}
    for about in abouts:
        for name, value in about.items():
            values = seen.setdefault(name, {})
            if len(values) < 32:
                values.setdefault(json.dumps(value, sort_keys=True, default=str), value)
    merged: dict[str, Any] = {}
    for name, values in sorted(seen.items()):
        different = list(values.values())
        merged[name] = different[0] if len(different) == 1 else {"various": different}
    return merged
