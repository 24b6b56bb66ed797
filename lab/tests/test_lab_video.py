# SPDX-License-Identifier: Apache-2.0
"""Adaptive video: what a viewer saw, and the experiment file's checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fairlane_lab.results.rows import viewings
from fairlane_lab.run_result import Transfer
from fairlane_lab.scenario import App, Flow
from pydantic import ValidationError
from sim_scenarios import scenario

VIDEO = App("video", bitrates_bps=(300_000, 600_000, 1_200_000), buffer_s=20.0, reservoir_s=6.0, cushion_s=8.0)
FLOW = Flow("film", "film", "h1", "h3", app=VIDEO)


def segment(came_s: float, rate_bps: int, flow: str = "film") -> Transfer:
    return Transfer(flow, "film", came_s - 0.5, rate_bps // 2, 0.5)  # 4 s: half the rate in bytes


def test_a_viewing_has_played_stalled_and_switched() -> None:
    run = replace(scenario(FLOW), duration_s=30.0, warmup_s=0.0)
    # 1 to 5 and 5 to 9 s played, 9 to 11 s stalled, 11 to 15 s played, nothing until the end at 30 s.
    came = [segment(1.0, 300_000), segment(2.0, 600_000), segment(11.0, 600_000)]
    cut = replace(segment(16.0, 600_000), complete=False)
    seen = viewings(run, [*came, cut], 0.0)["film"]
    assert seen["played_bps"] == pytest.approx((300_000 + 2 * 600_000) / 3)
    assert seen["stalled_share"] == pytest.approx((2 + 15) / 29)
    assert seen["rate_switches"] == 1
    # From 8 s on: 1 + 4 s played at 600 kbit/s, no switch.
    later = viewings(run, came, 8.0)["film"]
    assert later == {"played_bps": pytest.approx(600_000), "stalled_share": pytest.approx(17 / 22), "rate_switches": 0}
    # It stops before anything came; and a flow's connections are seen one by one.
    assert viewings(replace(run, flows=(replace(FLOW, stop_s=0.5),)), [], 0.0) == {}
    two = replace(run, flows=(replace(FLOW, connections=2),))
    assert list(viewings(two, [segment(3.0, 300_000, "film-2")], 0.0)) == ["film-2"]


GOOD: dict[str, Any] = {
    "kind": "video",
    "bitrates_bps": (300_000, 600_000),
    "buffer_s": 20,
    "reservoir_s": 6,
    "cushion_s": 10,
}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"bitrates_bps": (600_000, 300_000)}, r"bitrates_bps \[600000, 300000\]: each must be above the one before"),
        ({"bitrates_bps": (600_000,)}, "at least two"),
        ({"buffer_s": 19}, r"buffer_s 19 is below reservoir_s \+ cushion_s \+ segment_s, 20"),
        ({"segment_s": 5}, r"buffer_s 20 is below reservoir_s \+ cushion_s \+ segment_s, 21"),
        ({"interval_s": 1}, "kind 'video' has no interval_s; it has: bitrates_bps, buffer_s, cushion_s"),
    ],
)
def test_a_bad_video_is_refused(other: dict[str, Any], message: str) -> None:
    App(**GOOD)
    with pytest.raises(ValidationError, match=message):
        App(**GOOD | other)
