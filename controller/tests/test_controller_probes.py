# SPDX-License-Identifier: Apache-2.0
"""Probes of a link in virtual time: their frame, when they are sent, τ out of them, and how a change of delay shows."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from fairlane_controller.measure.estimators import LinkChange
from fairlane_controller.measure.port import MeasureOptions, PortMeter, PortReport, TResSample
from fairlane_controller.measure.tau import FRAME_BYTES, LinkProbe, Probe
from hypothesis import given
from hypothesis import strategies as st

RATE_BPS = 5e6


@dataclass
class TrueLink:
    """A link and the queue before it, as the data plane would time probes on it."""

    link: LinkProbe
    tau_s: Callable[[float], float]
    queue_s: Callable[[float], float] = lambda _: 0.03
    answers: Callable[[float], bool] = lambda _: True
    now_s: float = 0.0
    sent_s: list[float] = field(default_factory=list[float])
    shifts: list[tuple[float, LinkChange]] = field(default_factory=list[tuple[float, LinkChange]])
    _under_way: list[tuple[float, int, Probe]] = field(default_factory=list[tuple[float, int, Probe]])

    def run(self, until_s: float) -> None:
        while self.now_s < until_s:
            while self._under_way and self._under_way[0][0] <= self.now_s:
                at_s, _, probe = heapq.heappop(self._under_way)
                shift = self.link.on_home(at_s, probe, RATE_BPS)
                if shift is not None:
                    self.shifts.append((at_s, shift))
            if self.link.due_s(self.now_s) <= self.now_s:
                self._send(self.link.send(self.now_s))
            due = [self.link.check_s(self.now_s), *(at_s for at_s, _, _ in self._under_way[:1])]
            self.now_s = max(self.now_s + 1e-6, min(*due, until_s) if len(due) > 1 else min(due[0], until_s))

    def _send(self, probe: Probe) -> None:
        self.sent_s.append(self.now_s)
        departs_s = self.now_s + self.queue_s(self.now_s)
        turn_s, serial_s = 0.002, 2 * 8 * FRAME_BYTES / RATE_BPS
        home_s = departs_s + 2 * self.tau_s(departs_s) + turn_s + serial_s
        if self.answers(self.now_s):
            us = [round(1e6 * (1000 + t)) for t in (departs_s, home_s)]
            seen = replace(probe, departed_us=us[0], returned_us=us[1], turn_us=round(1e6 * turn_s))
            heapq.heappush(self._under_way, (home_s, probe.nonce, seen))


def link() -> LinkProbe:
    numbers = random.Random(1)
    return LinkProbe(lambda: numbers.getrandbits(29))


@given(st.integers(1, 2**32 - 1), st.integers(0, 2**48 - 1), st.integers(0, 2**48 - 1), st.integers(0, 2**32 - 1))
def test_a_frame_is_what_was_put_into_it(nonce: int, departed: int, returned: int, turn: int) -> None:
    probe = Probe(nonce, departed_us=departed, returned_us=returned, turn_us=turn)
    assert len(probe.emit()) == FRAME_BYTES
    assert Probe.parse(probe.emit()) == probe


def test_other_frames_are_no_probes() -> None:
    frame = bytearray(Probe(7).emit())
    assert Probe.parse(bytes(frame[:37])) is None
    for place in (12, 15):
        other = frame.copy()
        other[place] ^= 1
        assert Probe.parse(bytes(other)) is None


def test_tau_is_free_of_both_queues_and_of_its_own_serialisation() -> None:
    numbers = random.Random(4)
    true = TrueLink(link(), lambda _: 0.002, queue_s=lambda _: numbers.uniform(0.0, 0.3))
    true.run(10.0)
    two_tau_s = true.link.two_tau_s(10.0)
    assert two_tau_s is not None
    assert two_tau_s.value == pytest.approx(0.004, abs=3e-6)
    assert two_tau_s.age_s < 0.6
    assert 45 <= len(true.sent_s) <= 55, "five a second"
    assert not true.shifts


@pytest.mark.parametrize(("before_s", "after_s"), [(0.002, 0.1), (0.1, 0.002), (0.030, 0.045), (0.045, 0.030)])
@pytest.mark.parametrize("at_s", [20.0, 20.07, 20.15])
def test_a_change_of_delay_is_sure_within_a_second(before_s: float, after_s: float, at_s: float) -> None:
    true = TrueLink(link(), lambda t: before_s if t < at_s else after_s, queue_s=lambda _: 0.1)
    true.run(30.0)
    ((noticed_s, shift),) = true.shifts
    assert noticed_s - at_s < 1.0
    assert (shift.before, shift.after) == pytest.approx((before_s, after_s), abs=5e-6)
    assert at_s < shift.since_s <= noticed_s
    assert len(true.sent_s) < 5 * 30 + 15, "quick probes only while it was not sure"


@pytest.mark.parametrize("seed", range(5))
def test_jitter_and_late_threads_are_no_change(seed: int) -> None:
    numbers = random.Random(seed)

    def tau_s(_: float) -> float:
        late = numbers.uniform(0, 0.02) if numbers.random() < 0.02 else 0.0
        return 0.003 + numbers.uniform(-0.002, 0.002) + late

    true = TrueLink(link(), tau_s)
    true.run(120.0)
    assert len(true.shifts) <= 1
    assert len(true.sent_s) < 5 * 120 * 1.6


def test_where_nobody_answers_probes_become_rare_and_come_back_with_an_answer() -> None:
    true = TrueLink(link(), lambda _: 0.002, answers=lambda t: t >= 60.0)
    true.run(60.0)
    assert len(true.sent_s) < 20
    assert true.sent_s[-1] - true.sent_s[-2] == pytest.approx(5.0)
    assert true.link.two_tau_s(60.0) is None
    true.run(80.0)
    assert true.link.two_tau_s(80.0) is not None
    assert len(true.sent_s) > 60


def test_an_outage_makes_no_storm() -> None:
    true = TrueLink(link(), lambda _: 0.002, answers=lambda t: not 20.0 <= t < 50.0)
    true.run(20.0)
    before = len(true.sent_s)
    true.run(50.0)
    assert len(true.sent_s) - before < 70
    assert true.link.two_tau_s(50.0) is None, "what is older than the window says nothing"
    true.run(60.0)
    assert true.link.two_tau_s(60.0) is not None
    assert not true.shifts


def test_times_that_bit_errors_made_do_not_count() -> None:
    one = link()
    for number in range(10):
        probe = one.send(number * 1.0)
        one.on_home(
            number + 0.01, replace(probe, departed_us=5_000_000, returned_us=5_004_000, turn_us=1_000), RATE_BPS
        )
    before = one.two_tau_s(10.0)
    for flipped in ({"departed_us": 4_000_000}, {"turn_us": 1 << 31}, {"departed_us": 0}, {"returned_us": 1 << 40}):
        times = {"departed_us": 5_000_000, "returned_us": 5_004_000, "turn_us": 1_000} | flipped
        one.on_home(10.0, replace(one.send(9.99), **times), RATE_BPS)
    assert before is not None
    assert before.count == 10
    assert one.two_tau_s(10.0) == before
    assert one.on_home(10.0, Probe(99), RATE_BPS) is None, "a nonce that we never sent"


# ---- with a port's reports and ACKs -------------------------------------------------------------------------------------


def probe_of(meter: PortMeter, now_s: float, two_tau_s: float, rate_bps: float = RATE_BPS) -> None:
    probe = meter.link.send(now_s - two_tau_s)
    away_us = round(1e6 * (two_tau_s + 2 * 8 * FRAME_BYTES / rate_bps))
    meter.on_probe(now_s, replace(probe, departed_us=1_000_000, returned_us=1_000_000 + away_us))


def report(rate_bps: float = RATE_BPS) -> PortReport:
    packets = 122
    return PortReport(200_000, round(8e6 * packets * 1014 / rate_bps), packets * 1014, packets, 2, 3, 3000)


def play(
    meter: PortMeter,
    begin_s: float,
    end_s: float,
    two_tau_s: float,
    t_res_s: float | None,
    rate_bps: float = RATE_BPS,
) -> None:
    """Reports and probes five times a second; two flows' ACKs ten times, where there are any."""
    for tick in range(round((end_s - begin_s) * 10)):
        now_s = begin_s + tick / 10
        if t_res_s is not None:
            for flow in (1, 2):
                meter.on_t_res(now_s, TResSample(flow, 1014, round(1e6 * (t_res_s + 8 * 1014 / rate_bps))))
        if tick % 2:
            meter.on_report(now_s, report(rate_bps))
            probe_of(meter, now_s, two_tau_s, rate_bps)


def test_t_ack_is_what_the_acks_take_longer_than_the_link() -> None:
    meter = PortMeter(MeasureOptions())
    play(meter, 0.0, 10.0, 0.004, 0.007)
    got = meter.measurement(10.0)
    assert got.tau_s is not None
    assert got.t_ack_s is not None
    assert got.t_res_s is not None
    assert got.tau_s.value == pytest.approx(0.002, abs=1e-5)
    assert got.t_ack_s.value == pytest.approx(0.003, abs=1e-5)
    assert got.t_res_s.value == pytest.approx(0.007, abs=1e-5)
    assert got.t_res_source == "probes"
    data = got.to_json()
    assert data["tau_s"]["count"] >= 40
    assert data["tau_s"]["uncertainty"] < 1e-5
    assert data["t_ack_s"]["age_s"] < 0.5


def test_after_a_change_of_delay_the_probes_stand_for_acks_that_are_still_to_come() -> None:
    changes: list[LinkChange] = []
    meter = PortMeter(MeasureOptions(), report=changes.append)
    play(meter, 0.0, 10.0, 0.004, 0.007)
    play(meter, 10.0, 11.0, 0.2, None)
    (change,) = changes
    assert change.why == "τ was 2 ms and is 100 ms: 4 observations in a row say so"
    assert change.to_json() == pytest.approx({"what": "delay", "before_s": 0.002, "after_s": 0.1, "count": 4}, abs=1e-5)
    got = meter.measurement(11.0)
    assert got.t_res_s is not None
    assert got.t_res_s.value == pytest.approx(0.203, abs=1e-5)
    assert got.t_res_s.age_s < 0.5


def test_after_a_change_of_rate_the_acks_stand_for_a_t_ack_that_is_still_to_come() -> None:
    """T_ACK of the old rate stood for it, for the 30 s after which ACKs that are all late count as a longer path."""
    meter = PortMeter(MeasureOptions())
    play(meter, 0.0, 10.0, 0.004, 0.007)
    assert meter.measurement(10.0).t_res_source == "probes"
    play(meter, 10.0, 11.0, 0.004, 0.01, RATE_BPS / 5)
    got = meter.measurement(11.0)
    assert got.t_res_s is not None
    assert (got.t_res_source, got.t_res_s.value) == ("acks", pytest.approx(0.01, abs=1e-5))


def test_a_busy_link_without_tcp_has_t_res_of_its_probes() -> None:
    meter = PortMeter(MeasureOptions())
    play(meter, 0.0, 2.0, 0.004, None)
    assert meter.measurement(2.0).t_res_s is None, "ACKs may still come"
    play(meter, 2.0, 5.0, 0.004, None)
    got = meter.measurement(5.0)
    assert got.t_res_s is not None
    assert (got.t_res_source, got.t_ack_s) == ("probes_alone", None)
    assert got.t_res_s.value == pytest.approx(0.004, abs=1e-5)


def test_without_probes_the_acks_decide_as_ever() -> None:
    meter = PortMeter(MeasureOptions())
    for tick in range(100):
        meter.on_t_res(tick / 10, TResSample(1, 1014, 8_622))
        meter.on_report(tick / 10, report())
    got = meter.measurement(10.0)
    assert got.t_res_s is not None
    assert got.t_res_s.value == pytest.approx(0.007, abs=1e-5)
    assert (got.t_res_source, got.tau_s, got.t_ack_s) == ("acks", None, None)


def test_delayed_ack_timers_do_not_move_t_res_where_probes_answer() -> None:
    meter = PortMeter(MeasureOptions())
    play(meter, 0.0, 10.0, 0.004, 0.007)
    seen: list[float] = []
    for second in range(10, 25):
        play(meter, second, second + 1.0, 0.004, 0.047)
        estimate = meter.measurement(second + 1.0).t_res_s
        assert estimate is not None
        seen.append(estimate.value)
    assert seen == pytest.approx([0.007] * 15, abs=1e-5)


def test_a_longer_path_behind_the_link_counts_when_no_ack_was_as_before_for_long() -> None:
    """The probes see their own link only; ACKs come from beyond it."""
    changes: list[LinkChange] = []
    meter = PortMeter(MeasureOptions(), report=changes.append)
    play(meter, 0.0, 20.0, 0.004, 0.007)
    meter.measurement(20.0)
    seen: dict[int, float] = {}
    longest_run = 0
    for second in range(21, 121):
        play(meter, second - 1.0, second, 0.004, 0.047)
        estimate = meter.measurement(second).t_res_s
        assert estimate is not None
        seen[second] = estimate.value
        longest_run = max(longest_run, len(meter._run))  # pyright: ignore[reportPrivateUsage]
    assert [seen[second] for second in (30, 45)] == pytest.approx([0.007, 0.007], abs=1e-5)
    assert [seen[second] for second in (55, 80, 120)] == pytest.approx([0.047] * 3, abs=1e-5)
    assert longest_run <= 700, "what is remembered of it is bounded"
    (change,) = changes
    assert (change.what, change.before, change.after) == ("path", *(pytest.approx(s, abs=1e-5) for s in (0.007, 0.047)))


@pytest.mark.parametrize("stall_s", [0.02, 0.1, 0.3])
def test_a_machine_that_stands_still_is_no_change(stall_s: float) -> None:
    """Everything that is under way when it stalls is late by what is left of the stall, and comes at its end."""

    def tau_s(departs_s: float) -> float:
        end_s = 20.0 + stall_s
        left_s = max(0.0, end_s - (departs_s + 0.004)) if 19.9 < departs_s < end_s else 0.0
        return 0.002 + left_s / 2

    true = TrueLink(link(), tau_s, queue_s=lambda _: 0.0)
    true.run(40.0)
    assert not true.shifts
