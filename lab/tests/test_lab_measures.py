# SPDX-License-Identifier: Apache-2.0
"""Measures: windows, rates and thresholds in force."""

from __future__ import annotations

import random

import numpy as np
import pytest
from fairlane_controller.programs.qthresh.lab.__init__ import thresholds
from fairlane_lab.measures import Samples, mser5

STEADY = Samples.of([(float(t), 1000.0 * t) for t in range(11)])


def test_a_counter_is_read_between_samples_and_stands_still_outside_of_them() -> None:
    assert STEADY.grown(2.25, 7.75) == pytest.approx(5500.0)
    assert STEADY.at(np.array([-1.0, 99.0])).tolist() == [0.0, 10_000.0]
    assert Samples.of([]).at(np.array([1.0])).tolist() == [0.0]


def test_rates_are_of_whole_steps_or_between_samples() -> None:
    assert STEADY.rates(2.5).points == [(pytest.approx(1.25 + 2.5 * i), pytest.approx(8000.0)) for i in range(4)]
    assert STEADY.rates().points == [(pytest.approx(1.0 + i), pytest.approx(8000.0)) for i in range(10)]


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
