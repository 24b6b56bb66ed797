# SPDX-License-Identifier: Apache-2.0
"""Measures: windows, rates and thresholds in force."""

from __future__ import annotations

import random

import pytest
from fairlane_controller.programs.qthresh.lab.thresholds import thresholds
from fairlane_lab.measures import counters_at, mser5, rate_series, window_rate_bps

STEADY = [(float(t), 1000.0 * t) for t in range(11)]


def test_window_rate_interpolates_between_samples() -> None:
    assert window_rate_bps(STEADY, 2.25, 7.75) == pytest.approx(8000.0)


def test_a_counter_stands_still_outside_its_samples() -> None:
    assert counters_at(STEADY, [-1.0, 99.0]) == [0.0, 10_000.0]
    assert counters_at([], [1.0]) == [0.0]


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(ValueError, match="ends at 3 s, before it starts at 3 s"):
        window_rate_bps(STEADY, 3, 3)


def test_rate_series_covers_whole_steps() -> None:
    assert rate_series(STEADY, 2.5) == [(pytest.approx(1.25 + 2.5 * i), pytest.approx(8000.0)) for i in range(4)]


def test_flows_own_thresholds_change_with_the_class_s() -> None:
    def event(t_s: float, name: str, **fields: object) -> dict[str, object]:
        return {"t_s": t_s, "event": name, "switch": "s1", "port": 3, **fields}

    events = [
        event(1.0, "threshold", qthresh_packets=4, previous_packets=6),
        event(2.0, "tuned", flows={"a": {"qthresh_packets": 3}, "b": {"qthresh_packets": 6}}),
        event(3.0, "threshold", qthresh_packets=20, previous_packets=4) | {"port": 2},
        event(4.0, "threshold", qthresh_packets=20, previous_packets=4),
    ]
    assert thresholds(events, ("s1", 3), 6) == [(0.0, 6.0), (1.0, 4.0), (2.0, 4.5), (4.0, 22.5)]


def test_a_flow_without_a_threshold_of_its_own_has_what_9_says() -> None:
    flows = {"a": {"qthresh_packets": 2}, "b": {"qthresh_packets": None}}
    event = {"t_s": 1.0, "event": "tuned", "switch": "s1", "port": 3, "flows": flows, "planned_packets": 4.5}
    assert thresholds([event], ("s1", 3), 6) == [(0.0, 6.0), (1.0, 3.25)]


def test_what_a_transient_adds_is_cut_and_no_more() -> None:
    chance = random.Random(7)
    steady = [100 + chance.gauss(0, 5) for _ in range(400)]
    assert mser5(steady) in range(41)  # by chance a little
    ramp = [float(value) for value in range(0, 100, 2)]
    assert mser5([*ramp, *steady]) in range(40, 91)  # the first 50 values


def test_what_never_settles_has_no_steady_state() -> None:
    assert mser5([float(value) for value in range(500)]) is None


def test_values_that_do_not_differ_are_steady_from_the_first_on() -> None:
    assert mser5([3.0] * 100) == 0
    assert mser5([]) == 0
