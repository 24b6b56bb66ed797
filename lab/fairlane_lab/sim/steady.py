# SPDX-License-Identifier: Apache-2.0
"""Where the steady state of a run in virtual time begins: at the end of its warm-up, or later where MSER-5 says so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlane_lab.measures import mser5
from fairlane_lab.recording import FlowRecord, Values
from fairlane_lab.scenario import Scenario

BINS = 500
"""Goodput is looked at over so many equal parts of the run."""
MARKS = 5
"""The measured window may begin at the end of the warm-up, or so many tenths of what follows it later."""


def marks_s(scenario: Scenario) -> list[float]:
    """The instants at which the measured window may begin, seconds."""
    rest_s = scenario.duration_s - scenario.warmup_s
    count = MARKS if scenario.has_steady_state else 0
    return [round(scenario.warmup_s + rest_s * step / 10, 9) for step in range(count + 1)]


def steady_s(flows: Sequence[FlowRecord], end_s: float) -> float | None:
    """From when on the goodput of every group of greedy flows is steady, seconds; None when it never is in the first half."""
    edges = np.linspace(0.0, end_s, BINS + 1)
    groups: dict[str, Values] = {}
    for each in flows:
        if each.is_greedy_tcp and each.sampled.t_s.size:
            grown = np.diff(each.sampled.at(edges))
            groups[each.flow.group] = groups.get(each.flow.group, 0.0) + grown
    cuts = [mser5(grown.tolist()) for grown in groups.values()]
    known = [cut for cut in cuts if cut is not None]
    return max(known, default=0) * end_s / BINS if len(known) == len(cuts) else None
