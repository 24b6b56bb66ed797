# SPDX-License-Identifier: Apache-2.0
"""What the viewer of a `video` flow saw, from its segments as they came: bit rate, stalls, changes of the rate. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlane_lab.run_result import Transfer
from fairlane_lab.scenario import Scenario, names_of


def viewings(scenario: Scenario, transfers: Sequence[Transfer], cut_s: float) -> dict[str, dict[str, Any]]:
    """Flow → metrics of its viewing from `cut_s` to its end (seconds), for `video` flows of which something was watched by then.

    A segment is played for `segment_s` from when it came, or behind the one before; where none waits, the viewing stalls until the
    next one. What is before the first segment is no viewing. `played_bps`: mean of the segments' rates over the time that they played;
    `stalled_share`: stalls over all time watched; `rate_switches`: how often a segment began whose rate is not that of the one before.
    """
    found: dict[str, dict[str, Any]] = {}
    for flow in scenario.flows:
        if flow.app.kind != "video":
            continue
        end_s = scenario.duration_s if flow.stop_s is None else min(flow.stop_s, scenario.duration_s)
        for name in names_of(flow):
            mine = sorted((each.start_s + each.completion_s, each.bytes) for each in transfers if each.flow == name)
            if metrics := _viewing(mine, flow.app.segment_s, cut_s, end_s):
                found[name] = metrics
    return found


def _viewing(segments: Sequence[tuple[float, int]], segment_s: float, start_s: float, end_s: float) -> dict[str, Any]:
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
