# SPDX-License-Identifier: Apache-2.0
"""What one run measured, as a value a metric: of its flows, groups of flows, ports, transfers, viewers and delay spikes. Pure functions.

A metric that a run does not have is None, or not there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
from fairlane_hosts.programs import COUNTERS
from fairlane_topology import topology as fl_topology

from fairlane_lab.known import known_mean, known_sum
from fairlane_lab.run_result import FlowResult, PortResult, Transfer
from fairlane_lab.satellite import least_s, path_of
from fairlane_lab.scenario import Scenario, names_of, tcp_of

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
        transfers: Finished ones, and files that the run's end cut.
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
    p95_s = float(np.quantile(times, 0.95))
    metrics: Row = {"transfers": len(finished), "completion_s": float(np.median(times)), "completion_p95_s": p95_s}
    return metrics | slowdown_metrics(finished)


def file_metrics(transfers: Sequence[Transfer]) -> Row:
    """Of transfers whose first data segment is known, means over all of them; nothing without such.

    `transfer_bps`: bytes over the time that it ran, cut ones too (Lee and Kim 2000); `transfer_s`, `packets_sent`: of the finished ones (FastTCP paper).
    """
    known = [each for each in transfers if each.ran_s is not None]
    finished = [each for each in known if each.complete]
    means: dict[str, Iterable[float | None]] = {
        "transfer_bps": [8 * each.bytes / each.ran_s for each in known if each.ran_s],
        "transfer_s": [each.ran_s for each in finished],
        "packets_sent": [each.packets for each in finished],
    }
    found: Row = {"unfinished": len(known) - len(finished)} if known else {}
    return found | {name: mean for name, values in means.items() if (mean := known_mean(values)) is not None}


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


def with_slowdowns(scenario: Scenario, transfers: Sequence[Transfer]) -> list[Transfer]:
    """The transfers, those of `web` flows with their slowdown where their path has one managed port and costs time.

    The slowdown is the time that it took over the least that any TCP could take there (`satellite.least_s`).
    """
    web = [flow for flow in scenario.flows if flow.app.kind == "web"]
    if not web:
        return list(transfers)
    topology = fl_topology.check(dict(scenario.topology))
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
        end_s = scenario.duration_s if flow.stop_s is None else min(flow.stop_s, scenario.duration_s)
        for name in names_of(flow):
            mine = sorted((each.start_s + each.completion_s, each.bytes) for each in transfers if each.flow == name)
            if metrics := _viewing(mine, flow.app.segment_s, cut_s, end_s):
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
