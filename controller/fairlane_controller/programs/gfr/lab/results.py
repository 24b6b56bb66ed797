# SPDX-License-Identifier: Apache-2.0
"""What each VC got: from samples of its bytes to `VcResult`, the metrics of a run, and the rows of `vcs.parquet`. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlane_lab.measures import counters_at, rate_series, summed, window_rate_bps
from fairlane_lab.run_result import SeriesPoint, VcResult
from fairlane_lab.scenario import Scenario, connections_of

from ..model import jain_index
from .ideal import GfrPort, Span, counted, ideal_shares


def vc_metrics(vcs: Sequence[VcResult]) -> dict[str, Any]:
    """What VCs add to the metrics of a run, or replace: `jain` and `fairness` over goodput per ideal goodput, (4) of the GFR paper."""
    if not vcs:
        return {}
    ratios = [vc.ratio for vc in vcs]
    ideal = sum(vc.ideal_bps * vc.active_s for vc in vcs)
    worst = [vc.mcr_met_5s for vc in vcs if vc.mcr_met_5s is not None]
    metrics: dict[str, Any] = {
        "jain": jain_index([vc.goodput_bps for vc in vcs], [vc.ideal_bps for vc in vcs]) if len(vcs) > 1 else None,
        "fairness": min(ratios) / max(ratios) if len(vcs) > 1 and max(ratios) > 0 else None,
        "goodput_share": sum(vc.goodput_bps * vc.active_s for vc in vcs) / ideal if ideal > 0 else None,
        "least_ratio": min(ratios),
        "mcr_met": min(vc.mcr_met for vc in vcs),
        "mcr_met_5s": min(worst, default=None),
    }
    for vc in vcs:
        values = {f"{metric}[{vc.vc}]": getattr(vc, name) for metric, name in _METRICS.items()}
        metrics |= {name: value for name, value in values.items() if value is not None}
    return metrics


_COLUMNS = ("vc", "mcr_bps", "w_bps", "ideal_bps", "goodput_bps", "ratio", "mcr_met", "mcr_met_5s", "active_s")
_METRICS = {"vc_goodput_bps": "goodput_bps", "vc_ratio": "ratio", "mcr_met": "mcr_met", "mcr_met_5s": "mcr_met_5s"}
"""Metric of each VC, and what it is of `VcResult`."""


def vc_row(vc: VcResult) -> dict[str, Any]:
    """A row of `vcs.parquet`, without the key and the parameters."""
    values = {name: getattr(vc, name) for name in _COLUMNS}
    return {**values, **{f"drops_{verdict}": count for verdict, count in vc.drops.items()}}


WINDOW_S = 5.0
"""The MCR is looked at over every window of this length."""

SERIES_STEP_S = 1.0

Samples = Sequence[tuple[float, float]]
"""(seconds from the scenario's zero, bytes so far), in time order."""


def vc_results(
    scenario: Scenario,
    ports: Sequence[GfrPort],
    samples: Mapping[str, Samples],
    drops: Mapping[str, Mapping[str, int]],
) -> list[VcResult]:
    """A result for each VC that counts. `samples` are the VCs' acknowledged bytes, `drops` their refused frames by verdict."""
    ideal = ideal_shares(scenario, ports)
    found: list[VcResult] = []
    for vc in scenario.vcs:
        share = ideal.get(vc.name)
        if share is None:
            continue
        span = counted(scenario, vc)
        mine = samples[vc.name]
        goodput = window_rate_bps(mine, span.begin_s, span.end_s)
        worst = worst_window_bps(mine, span, WINDOW_S)
        found.append(
            VcResult(
                vc=vc.name,
                mcr_bps=float(vc.mcr_bps),
                w_bps=share.w_bps,
                ideal_bps=share.goodput_bps,
                goodput_bps=goodput,
                mcr_met=goodput / share.guaranteed_bps if share.guaranteed_bps else 1.0,
                mcr_met_5s=None if worst is None else worst / share.guaranteed_bps if share.guaranteed_bps else 1.0,
                drops=dict(drops.get(vc.name, {})),
                active_s=span.length_s,
            )
        )
    return found


def vc_samples(scenario: Scenario, carried: Mapping[str, Samples]) -> dict[str, Samples]:
    """The bytes of each VC over time, of those of its connections."""
    return {vc.name: summed([carried.get(name, []) for name in connections_of(scenario, vc)]) for vc in scenario.vcs}


def vc_series(samples: Mapping[str, Samples]) -> list[SeriesPoint]:
    """`vc_goodput_bps` of each VC, second by second; a VC stands where other series have a flow."""
    return [
        SeriesPoint(round(t_s, 3), vc, "vc_goodput_bps", rate_bps)
        for vc, points in samples.items()
        for t_s, rate_bps in rate_series([point for point in points if point[0] >= 0], SERIES_STEP_S)
    ]


def worst_window_bps(samples: Samples, span: Span, length_s: float) -> float | None:
    """The least mean rate over any window of `length_s` in `span` that begins or ends at a sample; None when none fits."""
    if span.length_s < length_s - 1e-9:
        return None
    starts = {span.begin_s, span.end_s - length_s}
    for at_s, _ in samples:
        starts |= {start for start in (at_s, at_s - length_s) if span.holds(start, start + length_s)}
    ordered = sorted(starts)
    low = counters_at(samples, ordered)
    high = counters_at(samples, [start + length_s for start in ordered])
    return 8 * min(end - begin for begin, end in zip(low, high, strict=True)) / length_s
