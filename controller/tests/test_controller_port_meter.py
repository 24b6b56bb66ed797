# SPDX-License-Identifier: Apache-2.0
"""BW, T_res, L_D and N_C out of reports and samples, against a link whose truth is known (virtual time, seeded)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from fairlane_controller.measure.port import (
    MAX_FLOWS,
    SAMPLES_PER_S,
    MeasureOptions,
    PortMeter,
    PortReport,
    TResSample,
)


@dataclass
class TrueLink:
    """What the data plane would say of a busy link: reports each 200 ms, a T_res sample each 50 ms and flow."""

    rate_bps: float
    t_res_s: float
    frame_bytes: int = 1014
    flows: int = 2
    includes_t_d: bool = True
    delayed_ack_share: float = 0.2
    seed: int = 1
    now_s: float = 0.0
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def run(self, meter: PortMeter, seconds: float) -> None:
        end = self.now_s + seconds
        tick = 0
        while self.now_s < end:
            self.now_s += 0.05
            tick += 1
            for flow in range(self.flows):
                meter.on_t_res(self.now_s, self.sample(flow))
            if tick % 4 == 0:
                meter.on_report(self.now_s, self.report())

    def sample(self, flow: int) -> TResSample:
        t_d_s = 8 * self.frame_bytes / self.rate_bps if self.includes_t_d else 0.0
        late = 0.040 if self.rng.random() < self.delayed_ack_share else self.rng.random() * 0.0002
        return TResSample(flow, self.frame_bytes, round((self.t_res_s + t_d_s + late) * 1e6))

    def report(self) -> PortReport:
        packets = max(1, int(0.2 * self.rate_bps / (8 * self.frame_bytes)))
        size = packets * self.frame_bytes
        return PortReport(200_000, round(8e6 * size / self.rate_bps), size, packets, self.flows, 3, 3000)


@pytest.mark.parametrize(("rate_bps", "t_res_s"), [(512e3, 0.0128), (1.5e6, 0.0068), (2e6, 0.0068), (5e6, 0.0068)])
@pytest.mark.parametrize("includes_t_d", [True, False])
def test_within_5_percent_of_the_truth(rate_bps: float, t_res_s: float, includes_t_d: bool) -> None:
    meter = PortMeter(MeasureOptions(sample_includes_t_d=includes_t_d))
    link = TrueLink(rate_bps, t_res_s, includes_t_d=includes_t_d)
    link.run(meter, 5.0)
    got = meter.measurement(link.now_s)
    assert got.bw_bps is not None
    assert got.t_res_s is not None
    assert got.l_d_bytes is not None
    assert got.n_c is not None
    assert got.bw_bps.value == pytest.approx(rate_bps, rel=0.001)
    assert got.t_res_s.value == pytest.approx(t_res_s, rel=0.05)
    assert got.l_d_bytes.value == pytest.approx(1014)
    assert got.n_c.value == 2
    assert got.t_res_s.count >= 100
    assert got.t_res_s.age_s < 0.1


def test_a_hand_over_shows_within_a_second() -> None:
    meter = PortMeter(MeasureOptions())
    link = TrueLink(5e6, 0.007)
    link.run(meter, 10.0)
    link.rate_bps, link.t_res_s = 1e6, 0.100
    link.run(meter, 1.0)
    got = meter.measurement(link.now_s)
    assert got.bw_bps is not None
    assert got.t_res_s is not None
    assert got.bw_bps.value == pytest.approx(1e6, rel=0.01)
    assert got.t_res_s.value == pytest.approx(0.100, rel=0.1)


def test_samples_before_the_first_report_are_kept_for_it() -> None:
    meter = PortMeter(MeasureOptions())
    link = TrueLink(2e6, 0.007, delayed_ack_share=0.0)
    for i in range(10):
        meter.on_t_res(i * 0.01, link.sample(0))
    assert meter.measurement(0.1).t_res_s is None
    meter.on_report(0.2, link.report())
    got = meter.measurement(0.2).t_res_s
    assert got is not None
    assert got.count == 10
    assert got.value == pytest.approx(0.007, rel=0.05)


def test_an_interval_in_which_nothing_waited_says_nothing_of_the_line() -> None:
    meter = PortMeter(MeasureOptions())
    meter.on_report(0.0, PortReport(200_000, 0, 0, 0, 1))
    got = meter.measurement(0.0)
    assert got.bw_bps is None
    assert got.l_d_bytes is None
    assert got.n_c is not None
    assert got.n_c.value == 1


def test_a_flow_that_some_intervals_miss_still_counts() -> None:
    meter = PortMeter(MeasureOptions())
    for i in range(25):
        meter.on_report(i * 0.2, PortReport(200_000, 190_000, 50_000, 50, 2 if i % 3 == 0 else 1))
    got = meter.measurement(5.0).n_c
    assert got is not None
    assert got.value == 2


def test_flows_with_different_paths_give_the_middle_one() -> None:
    meter = PortMeter(MeasureOptions(sample_includes_t_d=False))
    for i in range(20):
        for flow, t_res_us in ((1, 5_000), (2, 10_000), (3, 80_000)):
            meter.on_t_res(i * 0.05, TResSample(flow, 1000, t_res_us))
    got = meter.measurement(1.0).t_res_s
    assert got is not None
    assert got.value == pytest.approx(0.010)


def test_flows_held_apart_are_bounded() -> None:
    meter = PortMeter(MeasureOptions(sample_includes_t_d=False))
    for flow in range(1000):
        meter.on_t_res(0.001 * flow, TResSample(flow, 1000, 5000))
    got = meter.measurement(1.0).t_res_s
    assert got is not None
    assert got.count == MAX_FLOWS


def test_a_sample_below_its_own_serialisation_is_discarded() -> None:
    meter = PortMeter(MeasureOptions())
    link = TrueLink(2e6, 0.007)
    meter.on_report(0.0, link.report())
    meter.on_t_res(0.1, TResSample(1, 1014, 100))
    assert meter.measurement(0.1).t_res_s is None


def test_plain_data_has_no_infinity() -> None:
    meter = PortMeter(MeasureOptions(sample_includes_t_d=False))
    meter.on_t_res(0.0, TResSample(1, 1000, 5000))
    data = meter.measurement(0.5).to_json()
    assert data["t_res_s"] == {"value": pytest.approx(0.005), "count": 1, "age_s": 0.5, "uncertainty": None}
    assert data["bw_bps"] is None


def sample(meter: PortMeter, now_s: float, flow: int, t_res_ms: float) -> None:
    """A T_res of so many ms behind a line of 5 Mbit/s."""
    meter.on_t_res(now_s, TResSample(flow, 1014, round(t_res_ms * 1e3 + 8e6 * 1014 / 5e6)))


def settled(flows: int = 2) -> tuple[PortMeter, float]:
    """A meter that has seen 5 s of 5 Mbit/s and 6.9 ms; and the time."""
    meter, link = PortMeter(MeasureOptions()), TrueLink(5e6, 0.0069, flows=flows)
    link.run(meter, 5.0)
    return meter, link.now_s


def t_res_ms(meter: PortMeter, now_s: float) -> float | None:
    got = meter.measurement(now_s).t_res_s
    return None if got is None else 1e3 * got.value


def test_a_longer_path_shows_within_two_seconds_of_few_samples_of_different_flows() -> None:
    meter, start = settled()
    for at_s, flow in ((0.37, 0), (0.7, 1), (1.2, 0), (1.5, 1)):
        sample(meter, start + at_s, flow, 203.0)
    assert t_res_ms(meter, start + 1.5) == pytest.approx(203.0, rel=0.01)


def test_two_samples_are_enough_when_nothing_else_is_heard() -> None:
    meter, start = settled()
    for at_s, flow in ((0.4, 0), (0.7, 1)):
        sample(meter, start + at_s, flow, 203.0)
    assert t_res_ms(meter, start + 0.75) == pytest.approx(6.9, rel=0.1)
    assert t_res_ms(meter, start + 1.25) == pytest.approx(203.0, rel=0.01)


def test_of_many_flows_fewer_samples_say_as_much() -> None:
    few_flows = MeasureOptions().few_flows
    (few, _), (many, end_s) = settled(few_flows), settled(4 * few_flows)
    seen = [meter.measurement(end_s).t_res_s for meter in (few, many)]
    assert [got.value if got else None for got in seen] == pytest.approx([0.0069, 0.0069], rel=0.05)
    counts = [got.count if got else 0 for got in seen]
    assert counts[0] > 95 * few_flows  # all, but those before BW was known
    assert counts[1] <= 5 * SAMPLES_PER_S + 4 * few_flows  # and one more of each


def test_a_longer_path_of_many_flows_shows_within_four_seconds() -> None:
    meter, start = settled(256)
    for number in range(1024):  # each twice
        sample(meter, start + number / 256, number % 256, 203.0)
    assert t_res_ms(meter, start + 4.0) == pytest.approx(203.0, rel=0.01)


def test_a_burst_of_delayed_acks_is_no_longer_path() -> None:
    meter, start = settled()
    for number in range(5):
        sample(meter, start + 0.05 * number, number % 2, 46.9)
    sample(meter, start + 0.3, 0, 6.9)
    assert t_res_ms(meter, start + 1.5) == pytest.approx(6.9, rel=0.1)


def test_a_new_flow_that_knows_only_the_longer_path_does_not_hide_the_change() -> None:
    meter, start = settled(flows=1)
    for number in range(6):
        sample(meter, start + 0.3 + 0.25 * number, 7, 203.0)
    sample(meter, start + 1.0, 0, 203.0)
    assert t_res_ms(meter, start + 1.8) == pytest.approx(203.0, rel=0.01)


def test_a_faster_line_is_no_shorter_path() -> None:
    """T_res stays as it is while BW is in doubt: with the old BW too much would be taken off for T_D."""
    meter, slow = PortMeter(MeasureOptions()), TrueLink(1e6, 0.0069, delayed_ack_share=0.0)
    slow.run(meter, 5.0)
    fast = TrueLink(5e6, 0.0069, delayed_ack_share=0.0, now_s=slow.now_s)
    for _ in range(20):
        fast.run(meter, 0.2)
        assert t_res_ms(meter, fast.now_s) == pytest.approx(6.9, rel=0.05)
    bw = meter.measurement(fast.now_s).bw_bps
    assert bw is not None
    assert bw.value == pytest.approx(5e6, rel=0.01)
