# SPDX-License-Identifier: Apache-2.0
"""One finished run as flat rows: what definition/names.py calls the columns. A metric is of its flows, groups of flows, ports, transfers,
viewers and delay spikes; one that a run does not have is None, or not there. Pure functions.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
from fairlane_hosts.programs import COUNTERS

from fairlane_lab.definition.names import RUN_METRICS, column_kind, split_metric
from fairlane_lab.inputs import configuration
from fairlane_lab.measures import INSTANT_S, ceiling_of, finite_or_none, known_mean, known_sum, least_s, path_of
from fairlane_lab.programs import find_part
from fairlane_lab.run_result import FlowResult, PortResult, RunResult, Transfer
from fairlane_lab.scenario import Scenario, checked_topology, names_of, tcp_of

Row = dict[str, Any]
SENT = ("segments_sent", "window_reductions")
BW_EST = ("bw_est_bps", "bw_est_ratio")
FLOW_COLUMNS = (*SENT, *COUNTERS, "after_spike_bytes", "after_spike_retransmits", "recovery_s", *BW_EST)
"""Of a flow, where its runtime knows them and, for the last five, the run has a delay spike."""
SHORT_BYTES = 100_000
"""A transfer up to here is short …"""
LONG_BYTES = 1_000_000
"""… and above here long."""


def run_metrics(
    flows: Sequence[FlowResult],
    ports: Sequence[PortResult],
    transfers: Sequence[Transfer],
    windows: Mapping[str, Sequence[float]] | None = None,
    watched: Mapping[str, Row] | None = None,
) -> Row:
    """The metrics of a run, and those of each group of flows as `NAME[GROUP]`.

    Args:
        flows: Fairness and Jain's index are over the greedy ones, by weight.
        ports: The managed ones.
        transfers: Finished ones, and those that the run's end cut.
        windows: Flow -> samples of its congestion window, packets.
        watched: Flow -> `viewings`.

    """
    rates = {flow.flow: flow.goodput_bps / flow.weight for flow in flows if flow.greedy}
    total_bps = sum(flow.goodput_bps for flow in flows)
    metrics = {"goodput_bps": total_bps, **_sharing(list(rates.values())), **_counts(flows, (*SENT, *COUNTERS))}
    metrics |= {
        **_bottleneck(ports),
        **_completion(transfers),
        **file_metrics(transfers),
        **spike_metrics(flows, ports),
    }
    mean_bps = fmean(rates.values()) if len(rates) > 1 else 0.0
    for group in dict.fromkeys(flow.group for flow in flows):
        mine = [flow for flow in flows if flow.group == group]
        goodput_bps = sum(flow.goodput_bps for flow in mine)
        shares = [rates[flow.flow] / mean_bps for flow in mine if flow.flow in rates and mean_bps > 0]
        found: Row = {
            "goodput_bps": goodput_bps / len(mine),
            "share": goodput_bps / total_bps if total_bps > 0 else 0.0,
            **_counts(mine, SENT),
            **({"fair_share_ratio": known_mean(shares)} if shares else {}),
            "cwnd_packets": known_mean(flow.cwnd_packets for flow in mine),
            **window_metrics([value for flow in mine for value in (windows or {}).get(flow.flow, ())]),
            "srtt_ms": known_mean(flow.srtt_ms for flow in mine),
            **_watched([watched[flow.flow] for flow in mine if flow.flow in watched] if watched else []),
            **_completion([each for each in transfers if each.group == group]),
        }
        metrics |= {f"{name}[{group}]": value for name, value in found.items()}
    return metrics


def window_metrics(samples: Sequence[float]) -> Row:
    """Of samples of a congestion window, packets."""
    p95 = float(np.quantile(samples, 0.95, method="inverted_cdf")) if samples else None
    return {"cwnd_peak_packets": max(samples, default=None), "cwnd_p95_packets": p95}


def counter(flow: FlowResult, name: str) -> Any:
    """One of FLOW_COLUMNS; None where its runtime does not know it."""
    return flow.counters.get(name) if name in COUNTERS else getattr(flow, name)


def _sharing(rates: Sequence[float]) -> Row:
    """The smallest over the largest, the Jain index (Σ x)²/(N·Σ x²), the smallest over the mean; 0 where nothing moved."""
    names = ("fairness", "jain", "least_share")
    if len(rates) < 2 or max(rates) <= 0:
        return dict.fromkeys(names, None if len(rates) < 2 else 0.0)
    jain = math.fsum(rates) ** 2 / (len(rates) * math.fsum(rate * rate for rate in rates))
    return dict(zip(names, (min(rates) / max(rates), jain, min(rates) * len(rates) / sum(rates)), strict=True))


def _counts(flows: Sequence[FlowResult], names: Sequence[str]) -> Row:
    """Sums over flows, of `names` those that all know; `wasted_share`: of the data segments sent, those sent again."""
    retransmits = sum(flow.retransmits for flow in flows)
    metrics: Row = {"retransmits": retransmits, "timeouts": known_sum(flow.timeouts for flow in flows)}
    for name in names if flows else ():
        total = known_sum(counter(flow, name) for flow in flows)
        metrics |= {} if total is None else {name: total}
    sent = metrics.get("segments_sent")
    return metrics | ({"wasted_share": min(1.0, retransmits / sent)} if sent else {})


def _bottleneck(ports: Sequence[PortResult]) -> Row:
    """Of the managed port. With several: sums of what adds up, the rest of the most used one."""
    if not ports:
        return {}
    main = max(ports, key=lambda port: port.utilisation or 0.0)
    return {
        "throughput_bps": sum(port.throughput_bps for port in ports),
        "utilisation": main.utilisation,
        "drops": sum(port.drops for port in ports),
        "queue_packets": known_sum(port.queue_packets for port in ports),
        **main.values,
    }


def _completion(transfers: Sequence[Transfer]) -> Row:
    """Quantiles are None where they are infinite (`_quantile`). Slowdowns are of the finished ones."""
    if not transfers:
        return {}
    finished = [each for each in transfers if each.complete]
    metrics: Row = {"transfers": len(finished), "unfinished": len(transfers) - len(finished)}
    metrics |= {"completion_s": _quantile(transfers, 0.5), "completion_p95_s": _quantile(transfers, 0.95)}
    return metrics | slowdown_metrics(finished)


def _quantile(transfers: Sequence[Transfer], share: float) -> float | None:
    """Of completion times. What the run's end cut is infinite; what had not yet waited as long as this quantile of the finished ones says nothing."""
    times = [each.completion_s for each in transfers if each.complete]
    least_s = float(np.quantile(times, share)) if times else 0.0
    times += [math.inf for each in transfers if not each.complete and each.completion_s >= least_s]
    with np.errstate(invalid="ignore"):
        found = float(np.quantile(times, share))
    # Between a number and infinity nothing is interpolated, even where the quantile is the number itself.
    return finite_or_none(found if math.isfinite(found) else float(np.quantile(times, share, method="higher")))


def file_metrics(transfers: Sequence[Transfer]) -> Row:
    """Of transfers whose first data segment is known, means over all of them; nothing without such.

    `transfer_bps`: bytes over the time that it ran, cut ones too (Lee and Kim 2000); `transfer_s`: None where one was cut; `packets_sent`: of the
    finished ones (FastTCP paper).
    """
    known = [each for each in transfers if each.ran_s is not None]
    finished = [each for each in known if each.complete]
    means: dict[str, Iterable[float | None]] = {
        "transfer_bps": [8 * each.bytes / each.ran_s for each in known if each.ran_s],
        "transfer_s": [each.ran_s for each in finished] if len(finished) == len(known) else (),
        "packets_sent": [each.packets for each in finished],
    }
    return {name: mean for name, values in means.items() if (mean := known_mean(values)) is not None}


def spike_metrics(flows: Sequence[FlowResult], ports: Sequence[PortResult]) -> Row:
    """What became of the flows after a delay spike, summed; `recovery_s`: of the slowest. Nothing in a run without one."""
    hit = [flow for flow in flows if flow.after_spike_bytes is not None]
    if not hit:
        return {}
    recoveries = [flow.recovery_s for flow in hit]
    estimates = {name: known_sum(getattr(flow, name) for flow in hit) for name in BW_EST}
    return {
        "after_spike_bytes": sum(flow.after_spike_bytes or 0.0 for flow in hit),
        "after_spike_retransmits": sum(flow.after_spike_retransmits or 0 for flow in hit),
        "after_spike_drops": sum(port.after_spike_drops or 0 for port in ports),
        "recovery_s": None if None in recoveries else max(value for value in recoveries if value is not None),
        **{name: total for name, total in estimates.items() if total is not None},
    }


def counted_transfers(scenario: Scenario, transfers: Iterable[Transfer], cut_s: float) -> list[Transfer]:
    """Those asked for from `cut_s` (seconds) on; files and programs whenever they began, as a run may have no other."""
    whole = {name for flow in scenario.flows if flow.app.kind in ("bytes", "command") for name in names_of(flow)}
    return [each for each in transfers if each.start_s >= cut_s - INSTANT_S or each.flow in whole]


def with_slowdowns(scenario: Scenario, transfers: Sequence[Transfer]) -> list[Transfer]:
    """The transfers, those of `web` flows with their slowdown where their path has one managed port and costs time.

    The slowdown is the time that it took over the least that any TCP could take there (`measures.least_s`).
    """
    web = [flow for flow in scenario.flows if flow.app.kind == "web"]
    if not web:
        return list(transfers)
    topology = checked_topology(scenario)
    paths = {flow.name: (path, tcp_of(scenario, flow)) for flow in web if (path := path_of(topology, scenario, flow))}

    def slowdown(each: Transfer) -> float | None:
        name, _, number = each.flow.rpartition("-")
        found = paths.get(each.flow) or (paths.get(name) if number.isdigit() else None)
        return each.completion_s / least_s(*found, each.bytes) if found and each.complete else None

    return [replace(each, slowdown=slowdown(each)) for each in transfers]


def slowdown_metrics(finished: Sequence[Transfer]) -> Row:
    """Mean and 99 % quantile over all, over the short and over the long ones; nothing where no slowdown is known."""
    known = [(each.bytes, each.slowdown) for each in finished if each.slowdown is not None]
    classes = {
        "slowdown": [slowdown for _, slowdown in known],
        "slowdown_short": [slowdown for size, slowdown in known if size <= SHORT_BYTES],
        "slowdown_long": [slowdown for size, slowdown in known if size > LONG_BYTES],
    }
    metrics: Row = {}
    for name, values in classes.items():
        if values:
            metrics |= {name: float(np.mean(values)), f"{name}_p99": float(np.quantile(values, 0.99))}
    return metrics


def _watched(seen: Sequence[Row]) -> Row:
    """Of a group's viewings."""
    means = {name: known_mean(each[name] for each in seen) for name in ("played_bps", "stalled_share") if seen}
    return means | ({"rate_switches": sum(each["rate_switches"] for each in seen)} if seen else {})


def viewings(scenario: Scenario, transfers: Sequence[Transfer], cut_s: float) -> dict[str, Row]:
    """Flow -> metrics of its viewing from `cut_s` to its end (seconds), for `video` flows of which something was watched by then.

    A segment is played for `segment_s` from when it came, or behind the one before; where none waits, the viewing stalls until the
    next one. What is before the first segment is no viewing. `played_bps`: mean of the segments' rates over the time that they played;
    `stalled_share`: stalls over all time watched; `rate_switches`: how often a segment began whose rate is not that of the one before.
    """
    found: dict[str, Row] = {}
    for flow in (flow for flow in scenario.flows if flow.app.kind == "video"):
        for name in names_of(flow):
            mine = sorted(
                (each.start_s + each.completion_s, each.bytes)
                for each in transfers
                if each.flow == name and each.complete
            )
            if metrics := _viewing(mine, flow.app.segment_s, cut_s, scenario.end_s(flow)):
                found[name] = metrics
    return found


def _viewing(segments: Sequence[tuple[float, int]], segment_s: float, start_s: float, end_s: float) -> Row:
    """`segments`: when each came, and its bytes."""

    def inside(begin_s: float, until_s: float) -> float:
        return max(0.0, min(until_s, end_s) - max(begin_s, start_s))

    played_s = stalled_s = bits = 0.0
    switches = 0
    plays_until_s = segments[0][0] if segments else end_s
    last_bytes: int | None = None
    for came_s, size in segments:
        begin_s = max(came_s, plays_until_s)
        stalled_s += inside(plays_until_s, begin_s)
        plays_until_s = begin_s + segment_s
        shown_s = inside(begin_s, plays_until_s)
        played_s += shown_s
        bits += 8 * size / segment_s * shown_s
        switches += last_bytes not in (None, size) and start_s <= begin_s < end_s
        last_bytes = size
    stalled_s += inside(plays_until_s, end_s)
    if played_s + stalled_s <= 0:
        return {}
    played_bps = bits / played_s if played_s else None
    return {"played_bps": played_bps, "stalled_share": stalled_s / (played_s + stalled_s), "rate_switches": switches}


KEY = ("experiment", "point", "repeat", "seed", "runtime", "target")
"""The columns that every table begins with; (point, repeat) is unique in a folder."""
TABLES: Mapping[str, tuple[str, ...]] = {
    "runs": ("configuration", "virtual_s", "packets"),
    "flows": ("flow", "group", "variant", "weight", "greedy", "goodput_bps", "share", "retransmits", "timeouts", "cwnd_packets", "srtt_ms"),
    "ports": ("switch", "port", "port_rate_bps", "throughput_bps", "utilisation", "drops", "queue_packets"),
    "vcs": ("vc", "mcr_bps", "w_bps", "ideal_bps", "goodput_bps", "ratio", "mcr_met", "mcr_met_5s", "active_s"),
    "transfers": ("flow", "group", "start_s", "bytes", "completion_s", "retransmits"),
    "series": ("t_s", "flow", "metric", "value"),
    "timing": ("wall_s", "cpu_s", "about"),
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
    watched = viewings(scenario, result.transfers, cut_s)
    transfers = sorted(
        with_slowdowns(scenario, counted_transfers(scenario, result.transfers, cut_s)),
        key=lambda each: (each.start_s, natural(each.flow), each.completion_s),
    )
    total_bps = sum(flow.goodput_bps for flow in flows)
    ceiling_bps = ceiling_of(scenario)
    part = find_part(scenario.program)
    run = {
        **run_metrics(flows, result.ports, transfers, windows, watched),
        **({} if ceiling_bps is None else {"ceiling_bps": ceiling_bps}),
        **result.values,
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
        "vcs": [_columns("vcs", vc) for vc in result.vcs],
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
        "timing": [{**key, "wall_s": result.wall_s, "cpu_s": result.cpu_s, "about": about}],
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


def values_of(rows: Iterable[Mapping[str, Any]], metric: str) -> list[Any]:
    """A metric of some runs, or of a group there: infinite where it never came (`Name.never_beside`), None where it was not measured."""
    name, group = split_metric(metric)
    beside = RUN_METRICS[name].never_beside if name in RUN_METRICS else ""
    found: list[Any] = []
    for row in rows:
        value = row.get(metric)
        if value is None and beside:
            of_run = row.get(beside)
            value = math.inf if (row.get(f"{beside}[{group}]", of_run) if group else of_run) is not None else None
        found.append(value)
    return found


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
