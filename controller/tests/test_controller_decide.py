# SPDX-License-Identifier: Apache-2.0
"""When a threshold changes: agreement, hysteresis, rate limit, bounds, stale measurements (virtual time)."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import asdict, replace

import pytest
from fairlane_controller.measure.estimators import Estimate
from fairlane_controller.measure.port import PortMeasurement
from fairlane_controller.programs.qthresh.decide import (
    Decision,
    Outcome,
    ThresholdDecider,
    lane_room,
)
from fairlane_controller.programs.qthresh.model import bounded_capacity
from fairlane_controller.programs.qthresh.settings import PolicySettings
from hypothesis import given
from hypothesis import strategies as st

K = 1.5
SETTINGS = PolicySettings(k=K)


def measured(t_res_s: float, *, rate_bps: float = 2e6, age_s: float = 0.1, count: int = 50) -> PortMeasurement:
    def estimate(value: float) -> Estimate:
        return Estimate(value, count, age_s, 0.0)

    return PortMeasurement(estimate(rate_bps), estimate(t_res_s), estimate(1000.0), estimate(2.0), 3)


def t_res_for(exact_packets: float) -> float:
    """The T_res at 2 Mbit/s, 1000 bytes, 2 flows for which (9) gives exactly this: T_D is 4 ms."""
    return (exact_packets / K - 2.0) * 2 * 0.004


def step(decider: ThresholdDecider, now_s: float, measurement: PortMeasurement, capacity: int = 50) -> Decision:
    decision = decider.evaluate(now_s, measurement, SETTINGS, capacity)
    if decision.outcome is Outcome.WRITE:
        assert decision.qthresh_packets is not None
        decider.record_write(now_s, decision.qthresh_packets)
    return decision


def test_first_threshold_needs_agreement() -> None:
    decider = ThresholdDecider(samples=3)
    outcomes = [step(decider, i * 0.25, measured(t_res_for(5.0))).outcome for i in range(4)]
    assert outcomes == [Outcome.HOLD, Outcome.HOLD, Outcome.WRITE, Outcome.HOLD]
    assert decider.in_force_packets == 5


def test_a_restarted_loop_leaves_a_right_value_alone() -> None:
    decider = ThresholdDecider(in_force_packets=5)
    decisions = [step(decider, i * 0.25, measured(t_res_for(5.2))) for i in range(20)]
    assert {d.outcome for d in decisions} == {Outcome.HOLD}


def test_noise_about_a_boundary_never_writes() -> None:
    rng = random.Random(3)
    decider = ThresholdDecider(in_force_packets=5)
    for i in range(2000):
        step(decider, i * 0.25, measured(t_res_for(5.5 + rng.uniform(-0.09, 0.09))))
    assert decider.in_force_packets == 5


def test_disagreeing_evaluations_never_write() -> None:
    decider = ThresholdDecider(samples=3, in_force_packets=5)
    for i in range(100):
        step(decider, i * 0.25, measured(t_res_for(7.0 if i % 2 else 9.0)))
    assert decider.in_force_packets == 5


def test_a_value_between_two_whole_packets_is_written() -> None:
    decider = ThresholdDecider(in_force_packets=5)
    for i in range(20):
        step(decider, i * 0.25, measured(t_res_for(8.4 if i % 2 else 8.6)))
    assert decider.in_force_packets in (8, 9)


@given(st.lists(st.floats(min_value=0.0, max_value=0.2), min_size=50, max_size=200))
def test_at_most_one_write_a_second_whatever_comes(t_res: list[float]) -> None:
    decider = ThresholdDecider(samples=1)
    writes = [
        i * 0.25 for i, value in enumerate(t_res) if step(decider, i * 0.25, measured(value)).outcome is Outcome.WRITE
    ]
    assert all(later - earlier >= 1.0 for earlier, later in itertools.pairwise(writes))


def test_a_change_follows_within_a_second() -> None:
    decider = ThresholdDecider(in_force_packets=5)
    written = [
        i * 0.25 for i in range(1, 20) if step(decider, i * 0.25, measured(t_res_for(11.0))).outcome is Outcome.WRITE
    ]
    assert written == [0.5]
    assert decider.in_force_packets == 11


def test_a_large_threshold_follows_while_its_estimate_still_moves() -> None:
    decider = ThresholdDecider(in_force_packets=8)
    assert step(decider, 0.25, measured(t_res_for(41.0))).outcome is Outcome.HOLD
    assert step(decider, 0.5, measured(t_res_for(40.0))).outcome is Outcome.WRITE
    assert decider.in_force_packets == 40


def test_a_packet_more_or_less_is_nothing_to_a_large_threshold() -> None:
    decider = ThresholdDecider(in_force_packets=45)
    assert all(step(decider, i * 0.25, measured(t_res_for(46.2))).outcome is Outcome.HOLD for i in range(20))


@pytest.mark.parametrize(
    ("measurement", "reason"),
    [
        (PortMeasurement(None, None, None, None), "fewer than 2 measurements of BW"),
        (measured(0.01, count=1), "fewer than 2 measurements of BW"),
        (replace(measured(0.01), t_res_s=measured(0.01, count=1).t_res_s), "fewer than 2 measurements of T_res"),
        (measured(0.01, age_s=4.0), "BW was last measured 4.0 s ago, which is too old"),
        (replace(measured(0.01), n_c=None), "fewer than 1 measurement of N_C"),
    ],
)
def test_nothing_to_go_by_keeps_the_last_threshold(measurement: PortMeasurement, reason: str) -> None:
    decider = ThresholdDecider(in_force_packets=7)
    for i in range(10):
        decision = step(decider, i * 0.25, measurement)
        assert decision.outcome is Outcome.NOT_READY
        assert reason in decision.reason
    assert decider.in_force_packets == 7


def test_bounds() -> None:
    decider = ThresholdDecider(samples=1)
    step(decider, 0.0, measured(10.0), capacity=50)
    assert decider.in_force_packets == 50
    decider = ThresholdDecider(samples=1)
    step(decider, 0.0, measured(0.0), capacity=2)
    assert decider.in_force_packets == 2


@given(st.integers(0, 100_000), st.floats(min_value=1 / 256, max_value=255))
def test_the_effective_threshold_fits_the_port(capacity: int, weight: float) -> None:
    most = bounded_capacity(capacity, weight)
    assert 2 <= most <= 65_535
    if capacity >= 2 * max(1.0, weight):
        assert most * max(weight, 1.0) <= max(capacity, 2) + 1e-6


def test_a_decision_explains_itself() -> None:
    decider = ThresholdDecider(samples=1, in_force_packets=4)
    data = asdict(step(decider, 0.0, measured(t_res_for(8.0))))
    assert (data["outcome"], data["previous_packets"], data["qthresh_packets"]) == ("write", 4, 8)
    assert data["reason"] == "changed from 4 to 8"
    assert math.isclose(data["exact_packets"], 8.0)
    assert data["plan"]["rate_bps"] == 2e6


@pytest.mark.parametrize(
    ("has_lane", "capacity_packets", "packets"),
    [(False, 100, 100), (True, 100, 14), (True, 10, 4), (True, 10_000, 296)],
)
def test_in_lanes_the_port_s_room_is_divided_by_the_flows(has_lane: bool, capacity_packets: int, packets: int) -> None:
    """Seven flows on a path of 1,049 packets, for which (9) is 296 each; four packets are the least."""
    port = replace(measured(4.196), n_c=Estimate(7.0, 9, 0.1, 0.0))
    decider = ThresholdDecider(samples=1)
    room = lane_room(capacity_packets, 7.0, 1.0) if has_lane else capacity_packets
    decision = decider.evaluate(0.0, port, PolicySettings(), room, has_lane=has_lane)
    assert decision.qthresh_packets == packets


@pytest.mark.parametrize("uncertainty", [0.0, 0.02, math.inf])
def test_a_noisy_measurement_and_a_sure_one_decide_alike(uncertainty: float) -> None:
    """What protects from noise is the quantile over a window, the hysteresis and agreement (docs/decisions.md)."""
    decider = ThresholdDecider()
    for i, exact in enumerate([5.0] * 8 + [8.0] * 8):
        sure = measured(t_res_for(exact))
        assert sure.t_res_s is not None
        step(decider, i * 0.25, replace(sure, t_res_s=replace(sure.t_res_s, uncertainty=uncertainty)))
        assert decider.in_force_packets == (None if i < 1 else 5 if i < 9 else 8)
