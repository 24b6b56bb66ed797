# SPDX-License-Identifier: Apache-2.0
"""What a run's files and samples say of its VCs (program `gfr`). Pure functions; times in are CLOCK_MONOTONIC seconds."""

from __future__ import annotations

from collections.abc import Mapping

from fairlane_lab.gfr.counters import added, grown
from fairlane_lab.gfr.results import summed
from fairlane_lab.gfr.windows import connections_of
from fairlane_lab.scenario import Scenario
from fairlane_lab.testbed.port_watch import Samples

Points = list[tuple[float, float]]


def vc_samples(scenario: Scenario, carried: Mapping[str, Points], zero_s: float) -> dict[str, Points]:
    """Bytes over time of each VC, seconds after the zero."""
    return {
        vc.name: [
            (t - zero_s, value) for t, value in summed([carried.get(name, []) for name in connections_of(scenario, vc)])
        ]
        for vc in scenario.vcs
    }


def refused(samples: Samples, start_s: float, end_s: float) -> dict[str, dict[str, int]]:
    """Frames that each VC lost in the measured window, by verdict; to the second."""
    parts: list[dict[str, dict[str, int]]] = []
    for points in samples.refusals.values():
        before = [counts for t, counts in points if t <= start_s] or [points[0][1]]
        after = [counts for t, counts in points if t <= end_s] or [points[0][1]]
        parts.append(grown(before[-1], after[-1]))
    return added(parts)
