# SPDX-License-Identifier: Apache-2.0
"""The sentence that an event gives for a decision names what was measured, what (9) says of it, and what bounds it."""

from __future__ import annotations

from fairlane_controller.measure.estimators import Estimate
from fairlane_controller.measure.port import PortMeasurement
from fairlane_controller.programs.qthresh.decide import ThresholdDecider, explain_decision
from fairlane_controller.programs.qthresh.law import Decision, Law, Why
from fairlane_controller.programs.qthresh.settings import PolicySettings

KNOWN = "BW 2 Mbit/s, T_res 6.8 ms, L_D 1014 B, N_C 2"


def measured(age_s: float = 0.1) -> PortMeasurement:
    bw, t_res, l_d, n_c = (Estimate(value, 50, age_s, 0.0) for value in (2e6, 0.0068, 1014.0, 2.0))
    return PortMeasurement(bw, t_res, l_d, n_c, 3)


def said(decider: ThresholdDecider, now_s: float, age_s: float = 0.1, room: int = 50, *, has_lane: bool = False) -> str:
    measurement = measured(age_s)
    decision = decider.evaluate(now_s, measurement, PolicySettings(), room, has_lane=has_lane)
    return explain_decision(decision, measurement)


def test_a_written_threshold() -> None:
    assert said(ThresholdDecider(samples=1), 0.0) == (
        f"the threshold goes from none to 6 packets: (9) says 5.5 with k 1.95 and {KNOWN}"
    )
    assert said(ThresholdDecider(samples=1, in_force_packets=12), 0.0) == (
        f"the threshold goes from 12 to 6 packets: (9) says 5.5 with k 1.95 and {KNOWN}"
    )


def test_a_threshold_that_stays() -> None:
    decider = ThresholdDecider(in_force_packets=6)
    assert said(decider, 0.0) == (
        f"the threshold 6 stays: the value in force is right: (9) says 5.5 with k 1.95 and {KNOWN}"
    )
    assert said(decider, 9.0, age_s=3.5) == (
        f"the threshold 6 stays: BW was last measured 3.5 s ago, which is too old (known: {KNOWN})"
    )


def test_what_bounds_a_threshold_is_named() -> None:
    decider = ThresholdDecider(samples=1, in_force_packets=6)
    assert "from 6 to 4 packets: (9) says 4.0, bounded by the port's capacity" in said(decider, 0.0, room=4)
    decider = ThresholdDecider(samples=1, in_force_packets=6)
    assert "from 6 to 4 packets: (9) says 4.0, bounded by the port's capacity" in said(
        decider, 0.0, room=1, has_lane=True
    )


def test_a_threshold_that_stays_with_another_spacing() -> None:
    assert said(ThresholdDecider(samples=1, in_force_packets=6), 0.0, has_lane=True) == (
        f"the threshold 6 stays: losses of a flow are to be 20.4 ms apart: (9) says 5.5 with k 1.95 and {KNOWN}"
    )


def test_tuning_says_what_was_done() -> None:
    law = Law[str](utilisation=0.987)
    law.last = {"a": Decision(Why.TUNED, 0.9e6, -0.1, 5.0, 5), "b": Decision(Why.TUNED, 1.3e6, 0.3, 7.0, 7)}
    assert (
        law.report(1, 5.94)["why"] == "1 of 2 flows' entries changed, 0 of them to lose a packet; the line is 99 % used"
    )
    law.last = {"a": Decision(Why.FREE, 0.9e6, -0.1), "b": Decision(Why.TAPPED, 1.3e6, 0.3)}
    assert (
        law.report(1, 5.94)["why"] == "1 of 2 flows' entries changed, 1 of them to lose a packet; the line is 99 % used"
    )
