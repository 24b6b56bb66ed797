# SPDX-License-Identifier: Apache-2.0
"""How long the control loop takes to see that the network has changed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

SETTLED_SHARE = 0.1
"""A measurement has followed a change with the first sample this near to what it comes to before the next one."""

Samples = Sequence[tuple[float, float]]
"""(t_s, value), in order of time."""


def reaction_s(samples: Samples, changes_s: Sequence[float], end_s: float) -> float | None:
    """The longest time from a change to the first sample within a tenth of what the samples come to, seconds.

    `changes_s`: instants of changes in order; what the samples come to is the median of the second half of the time until the next one, or
    until `end_s`. Where none is so near, that whole time counts. A change that moves it by less than a tenth does not count; None when none does.
    """
    slowest = None
    for change_s, next_s in pairwise([*changes_s, end_s]):
        before = [value for t, value in samples if t <= change_s]
        after = [(t, value) for t, value in samples if change_s < t <= next_s]
        late = [value for t, value in after if t > (change_s + next_s) / 2]
        if not before or not late:
            continue
        settled = median(late)
        if abs(settled - before[-1]) <= SETTLED_SHARE * abs(before[-1]):
            continue
        near = [t for t, value in after if abs(value - settled) <= SETTLED_SHARE * settled]
        taken = near[0] - change_s if near else next_s - change_s
        slowest = taken if slowest is None else max(slowest, taken)
    return slowest
