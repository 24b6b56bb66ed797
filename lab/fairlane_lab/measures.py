# SPDX-License-Identifier: Apache-2.0
"""Measures over the samples of a run: goodput in a window, and where the steady state begins. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike

from fairlane_lab.scenario import FRAME_OVERHEAD_BYTES


def window_rate_bps(samples: Sequence[tuple[float, float]], start_s: float, end_s: float) -> float:
    """Mean rate in bit/s between two instants.

    `samples` are (time in s, bytes so far) in time order; the counter is read at both ends by linear interpolation
    (before the first sample it is that sample's value, after the last the last's). Raises ValueError for an empty window.
    """
    if end_s <= start_s:
        raise ValueError(f"the window ends at {end_s} s, before it starts at {start_s} s")
    before, after = counters_at(samples, (start_s, end_s))
    return 8 * (after - before) / (end_s - start_s)


def counters_at(samples: Sequence[tuple[float, float]], times: ArrayLike) -> list[float]:
    """Values of a growing counter at several instants, interpolated; 0 without samples."""
    pairs = np.array(samples or [(0.0, 0.0)], dtype=float)
    return np.interp(np.asarray(times, dtype=float), pairs[:, 0], pairs[:, 1]).tolist()


def summed(flows: Sequence[Sequence[tuple[float, float]]]) -> list[tuple[float, float]]:
    """The sum of several counters, at every instant at which one of them was sampled."""
    times = sorted({at_s for samples in flows for at_s, _ in samples})
    columns = [counters_at(samples, times) for samples in flows]
    return [(at_s, sum(values)) for at_s, *values in zip(times, *columns, strict=True)]


def rate_series(samples: Sequence[tuple[float, float]], step_s: float) -> list[tuple[float, float]]:
    """(middle of the step in s, bit/s) for consecutive steps of `step_s` seconds."""
    edges = np.arange(samples[0][0], samples[-1][0] + 1e-9, step_s) if samples else np.empty(0)
    bps = 8 * np.diff(counters_at(samples, edges)) / step_s
    return list(zip((edges[:-1] + step_s / 2).tolist(), bps.tolist(), strict=True))


RECOVERED_SHARE = 0.9
RECOVERY_WINDOW_S = 1.0


def recovery_s(
    samples: Sequence[tuple[float, float]], spike_end_s: float, new_rate_bps: float, step_s: float = 0.1
) -> float | None:
    """From a spike's end to the first window of `RECOVERY_WINDOW_S` in which 90 % of the new rate is reached; None when that never comes.

    `samples` are (time in s, bytes so far); `new_rate_bps` is what the path then carries of these bytes. What the spike held
    back comes all at once at its end: those bytes (in the first 0.1 s) do not count.
    """
    last_s = samples[-1][0] - RECOVERY_WINDOW_S if samples else spike_end_s
    starts = np.arange(spike_end_s + step_s, last_s + 1e-9, step_s)
    grown = np.subtract(counters_at(samples, starts + RECOVERY_WINDOW_S), counters_at(samples, starts))
    found = starts[8 * grown / RECOVERY_WINDOW_S >= RECOVERED_SHARE * new_rate_bps]
    return round(float(found[0]) - spike_end_s, 6) if found.size else None


def carried_bps(rate_bps: float, mss_bytes: int, frame_overhead_bytes: int = FRAME_OVERHEAD_BYTES) -> float:
    """Application bits per second that a link of `rate_bps` carries in full segments; frames as the switch counts them."""
    return rate_bps * mss_bytes / (mss_bytes + frame_overhead_bytes)


def on_line_bps(packets_per_s: float, mss_bytes: int) -> float:
    """Bits per second that so many full segments take on a link."""
    return 8 * packets_per_s * (mss_bytes + FRAME_OVERHEAD_BYTES)


def mean_between(steps: Sequence[tuple[float, float]], start_s: float, end_s: float) -> float:
    """Time-weighted mean of a step function in a window; `steps` are (from when, value), the first holds before it too.

    Raises ValueError for an empty window or without steps.
    """
    if end_s <= start_s or not steps:
        raise ValueError(f"no mean of {len(steps)} steps from {start_s} s to {end_s} s")
    total = 0.0
    for index, (since_s, value) in enumerate(steps):
        begin = start_s if index == 0 else max(since_s, start_s)
        end = end_s if index + 1 == len(steps) else min(steps[index + 1][0], end_s)
        total += value * max(0.0, end - begin)
    return total / (end_s - start_s)


MSER_BATCH = 5


def mser5(values: Sequence[float]) -> int | None:
    """How many values at the beginning are not of the steady state: MSER-5 (White, Cobb, Spratt 2000).

    Batches of five; what is cut is what makes the standard error of the rest the smallest. None: that is more than half, so
    there is no steady state to be seen.
    """
    batches = [fmean(values[at : at + MSER_BATCH]) for at in range(0, len(values) - MSER_BATCH + 1, MSER_BATCH)]
    total = squares = 0.0
    best, cut = math.inf, 0
    for count, value in enumerate(reversed(batches), start=1):
        total += value
        squares += value * value
        error = max(squares - total * total / count, 0.0) / count**2
        if count > MSER_BATCH and error <= best:
            best, cut = error, len(batches) - count
    return None if cut > len(batches) / 2 else cut * MSER_BATCH
