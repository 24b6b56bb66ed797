# SPDX-License-Identifier: Apache-2.0
"""Self-tuning of the flows' thresholds: on a plant whose flows follow their thresholds, and on its edges; virtual time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
from fairlane_controller.programs.qthresh.names import weight_for
from fairlane_controller.programs.qthresh.shares import FlowCount, ShareOptions, ShareTuner

LINK_BPS = 2e6
MODEL = 5.7


@dataclass
class Plant:
    """A full link: a `free` flow keeps a constant number of packets waiting whatever its threshold above that, a held one all it may."""

    free_packets: dict[str, float] = field(default_factory=dict[str, float])
    held: tuple[str, ...] = ()
    weights: dict[str, float] = field(default_factory=dict[str, float])
    sent: dict[str, float] = field(default_factory=dict[str, float])

    def step(self, seconds: float, thresholds: dict[str, int]) -> dict[str, FlowCount]:
        """Let time pass under these thresholds; the counters after it."""
        waiting = {name: min(packets, float(thresholds.get(name, 99))) for name, packets in self.free_packets.items()}
        waiting |= {name: 0.75 * thresholds.get(name, round(MODEL)) for name in self.held}
        total = sum(waiting.values())
        for name, packets in waiting.items():
            self.sent[name] = self.sent.get(name, 0.0) + LINK_BPS / 8 * seconds * packets / total
        return {
            name: FlowCount(round(sent / 1000), round(sent), 0, 0, self.weights.get(name, 1.0))
            for name, sent in self.sent.items()
        }


def run(plant: Plant, tuner: ShareTuner[str], seconds: int, start: float = 0.0) -> dict[str, float]:
    """Rates in bit/s over the last half."""
    thresholds: dict[str, int] = {}
    half: dict[str, float] = {}
    for second in range(seconds + 1):
        counts = plant.step(1.0, thresholds)
        thresholds = tuner.observe(start + second, counts, MODEL, 50) or {}
        if second == seconds // 2:
            half = dict(plant.sent)
    return {name: 8 * (sent - half[name]) / (seconds - seconds // 2) for name, sent in plant.sent.items()}


@pytest.mark.parametrize("vegas_packets", [2.5, 3.3, 4.0, 5.2, 6.0])
def test_wherever_the_free_flow_froze_shares_meet(vegas_packets: float) -> None:
    plant = Plant({"vegas": vegas_packets}, held=("reno",))
    rates = run(plant, ShareTuner[str](), 60)
    assert min(rates.values()) / max(rates.values()) > 0.97


def test_whole_packets_average_to_the_real_threshold() -> None:
    tuner = ShareTuner[str]()
    plant = Plant({"vegas": 3.7}, held=("reno",))
    run(plant, tuner, 60)
    seen: list[int] = []
    for second in range(61, 101):
        wanted = tuner.observe(float(second), plant.step(1.0, {"reno": seen[-1] if seen else 5}), MODEL, 50)
        assert wanted
        seen.append(wanted["reno"])
    assert len(set(seen)) > 1
    assert abs(sum(seen) / len(seen) * 0.75 - 3.7) < 0.15


def test_weights_are_shares() -> None:
    plant = Plant({}, held=("one", "two"), weights={"one": 1.0, "two": 2.0})
    rates = run(plant, ShareTuner[str](), 80)
    assert rates["two"] / rates["one"] == pytest.approx(2.0, rel=0.05)


def test_bounds_hold_for_a_flow_that_does_not_answer() -> None:
    tuner = ShareTuner[str](ShareOptions(low_factor=0.5, high_factor=2.0))
    plant = Plant({"unresponsive": 1.0}, held=("reno",))
    run(plant, tuner, 120)
    share = tuner.last["reno"]
    assert share.error > 0.2
    assert share.exact_packets == pytest.approx(MODEL * 0.5)
    assert tuner.last["unresponsive"].exact_packets == pytest.approx(MODEL * 2.0)


def test_nothing_to_compare() -> None:
    tuner = ShareTuner[str](ShareOptions(max_flows=3))
    count = FlowCount(10, 10_000, 0, 0)
    assert tuner.observe(0.0, {"a": count}, MODEL, 50) is None
    assert tuner.observe(1.0, {"a": FlowCount(20, 20_000, 0, 0)}, MODEL, 50) == {}
    many = {name: FlowCount(n, 1000 * n, 0, 0) for name, n in (("a", 30), ("b", 3), ("c", 3), ("d", 3))}
    tuner.observe(2.0, many, MODEL, 50)
    more = {name: FlowCount(2 * c.arrived_packets, 2 * c.arrived_bytes, 0, 0) for name, c in many.items()}
    assert tuner.observe(3.0, more, MODEL, 50) == {}


def test_an_idle_flow_has_no_share() -> None:
    tuner = ShareTuner[str](ShareOptions(active_s=2.0))
    idle = FlowCount(100, 100_000, 0, 0)
    wanted: dict[str, int] | None = None
    for second in range(6):
        busy = FlowCount(100 * second, 100_000 * second, 0, 0)
        other = FlowCount(90 * second, 90_000 * second, 0, 0)
        wanted = tuner.observe(float(second), {"a": busy, "b": other, "idle": idle}, MODEL, 50)
    assert wanted is not None
    assert set(wanted) == {"a", "b"}


def test_a_restarted_loop_goes_on_from_what_is_in_force() -> None:
    tuner = ShareTuner[str]()
    counts = {name: FlowCount(10, 10_000, 0, 0) for name in ("a", "b")}
    assert tuner.observe(0.0, counts, MODEL, 50, {"a": 4}) is None
    again = {name: FlowCount(20, 20_000, 0, 0) for name in ("a", "b")}
    tuner.observe(1.0, again, MODEL, 50, {"a": 9})
    assert tuner.last["a"].exact_packets == pytest.approx(4.0, rel=0.03)
    assert tuner.last["b"].exact_packets == pytest.approx(MODEL, rel=0.03)


@pytest.mark.parametrize("qthresh", [1, 2, 5, 6, 8, 50, 255])
@pytest.mark.parametrize("packets", [1, 2, 3, 5, 7, 49])
def test_the_weight_that_makes_a_threshold(qthresh: int, packets: int) -> None:
    assert qthresh * weight_for(packets, qthresh) >> 8 == packets


def test_errors_are_bounded() -> None:
    tuner = ShareTuner[str](ShareOptions(integral_per_s=0.1, proportional=0.0, common_per_s=0.0, elastic_ratio=-1.0))
    counts = {name: FlowCount(0, 0, 0, 0) for name in "abcdefgh"}
    tuner.observe(0.0, counts, MODEL, 50)
    tuner.observe(1.0, {**counts, "a": FlowCount(8, 8000, 0, 0)}, MODEL, 50)
    assert tuner.last["a"].error == pytest.approx(7.0)
    assert math.log(tuner.last["a"].exact_packets / MODEL) == pytest.approx(-0.1)


def counted(packets: int, dropped: int = 0, weight: float = 1.0) -> FlowCount:
    """So many packets of 1000 bytes."""
    return FlowCount(packets + dropped, 1000 * (packets + dropped), dropped, 1000 * dropped, weight)


def test_a_flow_that_asks_for_little_takes_nothing_from_the_others() -> None:
    tuner = ShareTuner[str]()
    wanted: dict[str, int] | None = None
    for second in range(30):
        counts = {"a": counted(300 * second), "b": counted(300 * second), "telnet": counted(5 * second)}
        wanted = tuner.observe(float(second), counts, MODEL, 50)
    assert wanted is not None
    assert set(wanted) == {"a", "b"}, "the small one has what (9) says"
    assert tuner.last["a"].error == pytest.approx(0.0)
    assert tuner.last["a"].exact_packets == pytest.approx(MODEL)


def test_a_short_transfer_is_no_rival() -> None:
    tuner = ShareTuner[str](ShareOptions(young_s=2.0))
    for second in range(12):
        counts = {"a": counted(300 * second), "b": counted(300 * second)}
        if second >= 10:
            counts["short"] = counted(100 * (second - 9))
        wanted = tuner.observe(float(second), counts, MODEL, 50)
        if second > 0:
            assert wanted is not None
            assert "short" not in wanted
    assert tuner.last["a"].error == pytest.approx(0.0)


def test_thresholds_begin_at_the_weight() -> None:
    tuner = ShareTuner[str]()
    for second in range(3):
        counts = {"one": counted(100 * second), "four": counted(400 * second, weight=4.0)}
        tuner.observe(float(second), counts, MODEL, 50)
    assert tuner.last["one"].exact_packets == pytest.approx(MODEL)
    assert tuner.last["four"].exact_packets == pytest.approx(4 * MODEL)


def idle_line(drops: int, tuner: ShareTuner[str], start: int, seconds: int, packets: int) -> None:
    """Two flows that share a line of 2 Mbit/s alike, `packets` a second together."""
    for second in range(start, start + seconds):
        half = counted(packets // 2 * second, drops * second)
        tuner.observe(float(second), {"a": half, "b": half}, MODEL, 50, line_bps=LINK_BPS)


def test_thresholds_that_leave_the_line_idle_are_lifted_and_come_back() -> None:
    tuner = ShareTuner[str]()
    idle_line(3, tuner, 0, 20, 225)  # 90 %
    lifted = tuner.last["a"].exact_packets
    assert lifted == pytest.approx(ShareOptions().max_common_factor * MODEL, rel=0.01)
    assert tuner.utilisation == pytest.approx(0.9, abs=0.01)
    idle_line(3, tuner, 20, 60, 250)
    assert tuner.last["a"].exact_packets == pytest.approx(MODEL, rel=0.05)


def test_an_idle_line_without_a_refusal_is_the_senders_own() -> None:
    tuner = ShareTuner[str]()
    idle_line(0, tuner, 0, 20, 125)
    assert tuner.last["a"].exact_packets == pytest.approx(MODEL)


@pytest.mark.parametrize(("packets", "below"), [(250, True), (150, False)])
def test_only_on_a_line_that_is_used_a_flow_is_held_down(packets: int, below: bool) -> None:
    tuner = ShareTuner[str]()
    for second in range(40):
        counts = {"a": counted(packets * 2 // 3 * second), "b": counted(packets // 3 * second)}
        tuner.observe(float(second), counts, 40.0, 500, line_bps=LINK_BPS)
    assert (tuner.last["a"].exact_packets < 5.0) is below, (
        "by what it gets too much, not only by what all have in common"
    )
    assert tuner.last["b"].exact_packets > 40.0


def test_an_outage_teaches_nothing() -> None:
    tuner = ShareTuner[str]()
    before: dict[str, int] | None = None
    for second in range(5):
        before = tuner.observe(float(second), {"a": counted(200 * second), "b": counted(100 * second)}, MODEL, 50)
    same = {"a": counted(800), "b": counted(400)}
    assert tuner.observe(5.0, same, MODEL, 50) == before
    assert before


def test_what_all_have_in_common_fades() -> None:
    tuner = ShareTuner[str]()
    start = {"a": counted(0), "b": counted(0)}
    tuner.observe(0.0, start, MODEL, 50, {"a": 2, "b": 2})
    for second in range(1, 61):
        tuner.observe(float(second), {"a": counted(100 * second), "b": counted(100 * second)}, MODEL, 50)
    assert tuner.last["a"].exact_packets == pytest.approx(MODEL, rel=0.01)
