# SPDX-License-Identifier: Apache-2.0
"""VCs of a run: when each counts, the share that the GFR paper gives it, (3), what it got.

Times are seconds from the scenario's zero.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from fairlane_lab.measures import Samples
from fairlane_lab.run_result import SeriesPoint, VcResult
from fairlane_lab.scenario import Flow, Scenario, Vc, connections_of, flows_of, tcp_of

from ..model import cells_of_packet, guaranteed_shares, ideal_goodput_bps, jain_index

TCP_HEADERS_BYTES = 40
"""IPv4 and TCP, without options."""
TIMESTAMPS_BYTES = 12
UDP_HEADERS_BYTES = 28
WINDOW_S = 5.0
"""The MCR is looked at over every window of this length."""
SERIES_STEP_S = 1.0

Span = tuple[float, float]
"""From when to when."""
ManagedPort = tuple[float, Collection[str]]
"""C_GFR in bit/s on the line, and the names of the VCs that cross it."""


# ---- what it should get ----------------------------------------------------------------------------------------------


def active(scenario: Scenario, vc: Vc) -> Span:
    """From its first flow's start to its last one's end."""
    flows = flows_of(scenario, vc)
    return min((flow.start_s for flow in flows), default=0.0), max(map(scenario.end_s, flows), default=0.0)


def counted(scenario: Scenario, vc: Vc) -> Span:
    """The part of the measured window in which a VC counts: one that starts during it has a warm-up of its own, as long as the run's."""
    begin_s, end_s = active(scenario, vc)
    warm_s = scenario.warmup_s
    begin_s = warm_s if begin_s < warm_s else begin_s + warm_s
    return begin_s, max(begin_s, end_s)


def ideal_shares(scenario: Scenario, ports: Iterable[ManagedPort]) -> dict[str, float]:
    """Mean w_i of every VC that ever counts over the time in which it counts, bits on the line, by name.

    At each moment a VC has the least of the w_i that the ports on its way give it, N and Σ MCR being those of the VCs that are active then.
    """
    spans = {vc.name: active(scenario, vc) for vc in scenario.vcs}
    crossing = [(bps, [vc for vc in scenario.vcs if vc.name in names]) for bps, names in ports]
    found: dict[str, float] = {}
    for vc in scenario.vcs:
        begin_s, end_s = counted(scenario, vc)
        edges = {begin_s, end_s, *(at_s for span in spans.values() for at_s in span if begin_s < at_s < end_s)}
        for first_s, last_s in pairwise(sorted(edges)):
            there = {name for name, span in spans.items() if _holds(span, first_s, last_s)}
            shares: list[float] = []
            for capacity_bps, vcs in crossing:
                here = [each for each in vcs if each.name in there]
                if vc in here:
                    shares.append(guaranteed_shares([each.mcr_bps for each in here], capacity_bps)[here.index(vc)])
            w_bps = min(shares, default=0.0) * (last_s - first_s) / (end_s - begin_s)
            found[vc.name] = found.get(vc.name, 0.0) + w_bps
    return found


def _holds(span: Span, begin_s: float, end_s: float) -> bool:
    """Whether an interval lies in a span."""
    return span[0] <= begin_s + 1e-9 and end_s <= span[1] + 1e-9


def segment(scenario: Scenario, vc: Vc) -> tuple[int, int]:
    """(application bytes, cells) of a full segment of the VC; of the longest where its flows differ. (1, 1) for a VC without flows."""
    flows = flows_of(scenario, vc)
    return max(
        ((_payload_bytes(scenario, flow), cells_of_packet(packet_bytes(scenario, flow))) for flow in flows),
        default=(1, 1),
    )


def packet_bytes(scenario: Scenario, flow: Flow) -> int:
    """Length of a flow's full IP packets."""
    headers = TCP_HEADERS_BYTES + (TIMESTAMPS_BYTES if tcp_of(scenario, flow).timestamps else 0)
    return _payload_bytes(scenario, flow) + (UDP_HEADERS_BYTES if flow.app.kind == "cbr_udp" else headers)


def _payload_bytes(scenario: Scenario, flow: Flow) -> int:
    return flow.app.payload_bytes if flow.app.kind == "cbr_udp" else tcp_of(scenario, flow).mss_bytes


# ---- what it got -----------------------------------------------------------------------------------------------------


def vc_results(scenario: Scenario, ports: Iterable[ManagedPort], samples: Mapping[str, Samples]) -> list[VcResult]:
    """A result for each VC that counts; `samples` are the VCs' acknowledged bytes."""
    found: list[VcResult] = []
    ideal = ideal_shares(scenario, ports)
    for vc in scenario.vcs:
        if vc.name not in ideal:
            continue
        begin_s, end_s = counted(scenario, vc)
        fair, guaranteed = (ideal_goodput_bps(bps, *segment(scenario, vc)) for bps in (ideal[vc.name], vc.mcr_bps))
        goodput = 8 * samples[vc.name].grown(begin_s, end_s) / (end_s - begin_s)
        worst = worst_window_bps(samples[vc.name], (begin_s, end_s), WINDOW_S)
        met, met_5s = ((None if bps is None else bps / guaranteed if guaranteed else 1.0) for bps in (goodput, worst))
        active_s = end_s - begin_s
        found.append(VcResult(vc.name, float(vc.mcr_bps), ideal[vc.name], fair, goodput, met or 0.0, met_5s, active_s))
    return found


def vc_samples(scenario: Scenario, carried: Mapping[str, Samples]) -> dict[str, Samples]:
    """The bytes of each VC over time, of those of its connections."""
    return {
        vc.name: Samples.total([carried[name] for name in connections_of(scenario, vc) if name in carried])
        for vc in scenario.vcs
    }


def vc_series(samples: Mapping[str, Samples]) -> list[SeriesPoint]:
    """`vc_goodput_bps` of each VC, second by second; a VC stands where other series have a flow."""
    return [
        SeriesPoint(round(t_s, 3), vc, "vc_goodput_bps", rate_bps)
        for vc, carried in samples.items()
        for t_s, rate_bps in Samples(carried.t_s[carried.t_s >= 0], carried.values[carried.t_s >= 0])
        .rates(SERIES_STEP_S)
        .points
    ]


def worst_window_bps(samples: Samples, span: Span, length_s: float) -> float | None:
    """The least mean rate over any window of `length_s` in `span` that begins or ends at a sample; None when none fits."""
    if span[1] - span[0] < length_s - 1e-9:
        return None
    starts = {
        span[0],
        span[1] - length_s,
        *(at_s - back_s for at_s in samples.t_s.tolist() for back_s in (0.0, length_s)),
    }
    begins = np.array(sorted(start for start in starts if _holds(span, start, start + length_s)))
    return 8 * float((samples.at(begins + length_s) - samples.at(begins)).min()) / length_s


_METRICS = {"vc_goodput_bps": "goodput_bps", "vc_ratio": "ratio", "mcr_met": "mcr_met", "mcr_met_5s": "mcr_met_5s"}
"""Metric of each VC, and what it is of `VcResult`."""


def vc_metrics(vcs: Sequence[VcResult]) -> dict[str, Any]:
    """What VCs add to the metrics of a run, or replace: `jain` and `fairness` over goodput per ideal goodput, (4) of the GFR paper."""
    if not vcs:
        return {}
    ratios = [vc.ratio for vc in vcs]
    ideal = sum(vc.ideal_bps * vc.active_s for vc in vcs)
    metrics: dict[str, Any] = {
        "jain": jain_index(ratios) if len(vcs) > 1 else None,
        "fairness": min(ratios) / max(ratios) if len(vcs) > 1 and max(ratios) > 0 else None,
        "goodput_share": sum(vc.goodput_bps * vc.active_s for vc in vcs) / ideal if ideal > 0 else None,
        "least_ratio": min(ratios),
        "mcr_met": min(vc.mcr_met for vc in vcs),
        "mcr_met_5s": min((vc.mcr_met_5s for vc in vcs if vc.mcr_met_5s is not None), default=None),
    }
    of_vcs = {f"{metric}[{vc.vc}]": getattr(vc, name) for vc in vcs for metric, name in _METRICS.items()}
    return metrics | {name: value for name, value in of_vcs.items() if value is not None}
