# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""What a congestion window's trace is like in numbers, so that a simulated sender and the kernel's can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlane_lab.report.run_folder import RunFolder

Floats = npt.NDArray[np.float64]

MIN_SWING_PACKETS = 1.5
MIN_SWING_SHARE = 0.25
"""A turn of the trace counts when it swings by this share of its 5 % to 95 % range, and by MIN_SWING_PACKETS."""


@dataclass(frozen=True)
class TraceStatistics:
    """A trace of cwnd in packets, each sample held until the next one."""

    duration_s: float
    mean: float
    p10: float
    p50: float
    p90: float
    peak: float
    """Median of the peaks of the saw-tooth; NaN without one."""
    trough: float
    """Median of the lows between them; NaN without one."""
    amplitude: float
    """Median fall from a peak to the low after it; NaN without one."""
    period_s: float
    """Median time from peak to peak; NaN with fewer than two."""
    falls_per_min: float
    """How often the window fell from a peak, as it does at a loss."""
    slow_start_s: float
    """Time with cwnd below ssthresh; NaN when ssthresh was not sampled."""


def trace_statistics(
    t_s: Floats, cwnd: Floats, ssthresh: Floats | None = None, from_s: float | None = None
) -> TraceStatistics:
    """Statistics of a trace of at least two samples with rising times; `from_s` leaves out what is before it (not for slow start).

    Raises ValueError when there are fewer than two samples left or lengths differ.
    """
    if len(t_s) != len(cwnd) or (ssthresh is not None and len(ssthresh) != len(t_s)):
        raise ValueError(f"a trace has one value a time: got {len(t_s)} times and {len(cwnd)} windows")
    slow_start_s = float("nan")
    if ssthresh is not None and len(t_s) > 1:
        held = np.diff(t_s, append=t_s[-1])
        slow_start_s = float(held[cwnd < ssthresh].sum())
    if from_s is not None:
        keep = t_s >= from_s
        t_s, cwnd = t_s[keep], cwnd[keep]
    if len(t_s) < 2:
        raise ValueError(f"a trace needs at least two samples, got {len(t_s)}")
    held = np.diff(t_s)
    values = cwnd[:-1]
    duration_s = float(t_s[-1] - t_s[0])
    p5, p10, p50, p90, p95 = (weighted_quantile(values, held, share) for share in (0.05, 0.1, 0.5, 0.9, 0.95))
    peaks, troughs = turns(cwnd, max(MIN_SWING_PACKETS, MIN_SWING_SHARE * (p95 - p5)))
    falls = [
        cwnd[peak] - cwnd[low] for peak in peaks if (low := next((t for t in troughs if t > peak), None)) is not None
    ]
    return TraceStatistics(
        duration_s=duration_s,
        mean=float(np.average(values, weights=held)),
        p10=p10,
        p50=p50,
        p90=p90,
        peak=_median([cwnd[index] for index in peaks]),
        trough=_median([cwnd[index] for index in troughs]),
        amplitude=_median(falls),
        period_s=_median(np.diff(t_s[peaks])) if len(peaks) > 1 else float("nan"),
        falls_per_min=len(falls) / duration_s * 60,
        slow_start_s=slow_start_s,
    )


def weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """The value below or at which `share` of the weight lies."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, share * reached[-1])])


def turns(values: Floats, swing: float) -> tuple[list[int], list[int]]:
    """Indices of peaks from which the trace falls by at least `swing`, and of the lows from which it rises by as much again."""
    peaks: list[int] = []
    troughs: list[int] = []
    high = low = 0
    falling: bool | None = None
    for index, value in enumerate(values):
        if value > values[high]:
            high = index
        if value < values[low]:
            low = index
        if falling is not True and values[high] - value >= swing:
            if falling is False or high > 0:
                peaks.append(high)
            falling, low = True, index
        elif falling is not False and value - values[low] >= swing:
            if falling:
                troughs.append(low)
            falling, high = False, index
    if falling and low > (peaks[-1] if peaks else 0):
        troughs.append(low)
    return peaks, troughs


def _median(values: Sequence[float] | Floats) -> float:
    return float(np.median(values)) if len(values) else float("nan")


@dataclass(frozen=True)
class Trace:
    """The window of one flow in one run."""

    point: str
    flow: str
    runtime: str
    t_s: Floats
    cwnd: Floats
    statistics: TraceStatistics


def read_traces(run: RunFolder, repeat: int = 0) -> list[Trace]:
    """The sampled windows of a run folder's points, in the table's order; statistics from the end of the warm-up on."""
    table = run.series
    if table.empty:
        return []
    table = table[(table["repeat"] == repeat) & table["metric"].isin(["cwnd_packets", "ssthresh_packets"])]
    found: list[Trace] = []
    for (point, flow), samples in table.groupby(["point", "flow"], sort=False):
        cwnd = samples[samples["metric"] == "cwnd_packets"]
        limit = samples[samples["metric"] == "ssthresh_packets"]
        times, values = cwnd["t_s"].to_numpy(float), cwnd["value"].to_numpy(float)
        if len(times) < 2 or not flow:
            continue
        limits = limit["value"].to_numpy(float) if np.array_equal(limit["t_s"].to_numpy(float), times) else None
        try:
            statistics = trace_statistics(times, values, limits, run.warmup_s)
        except ValueError:
            continue  # sampled during the warm-up only
        found.append(Trace(str(point), str(flow), run.runtime, times, values, statistics))
    return found
