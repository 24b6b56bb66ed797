# SPDX-License-Identifier: Apache-2.0
"""Eq. (2) in gfr.p4 against exact arithmetic, in virtual time: both forms, six decades of rate, regular and bursty."""

from __future__ import annotations

import random
from collections.abc import Sequence

import gfr_oracle
import pytest
from gfr_sim import GfrWorld
from sim_world import NS_PER_S, Cbr

VC = 5
PORT = 1
PAYLOAD_BYTES = 1000
RELATIVE_BOUND = 3e-4  # include/gfr/rate.p4
ABSOLUTE_BOUND_BPS = 1.0
PIECES_BOUND = 5e-4
DECADES_BPS = [10**exponent for exponent in range(4, 11)]


def arrivals(flows: Sequence[Cbr]) -> list[tuple[float, int]]:
    """(time in s, bits on the line) of every frame, in order."""
    bits = {flow: gfr_oracle.line_bits(flow.frame_bytes) for flow in flows}
    return sorted((at / NS_PER_S, bits[flow]) for flow in flows for at in flow.times_ns())


def rate_in_switch(flows: Sequence[Cbr], rate_form: int = 0, alpha: int = 0, period_us: int = 64) -> tuple[float, int]:
    """(r_i in bit/s, frames accepted) after all that the flows send."""
    world = GfrWorld(flows)
    world.proposed(rate_form=rate_form, alpha=alpha, period_us=period_us)
    world.add_vc(VC, PORT)
    world.run_until(max(flow.stop_ns for flow in flows) + 1000)
    verdicts = world.verdicts(VC)
    assert set(verdicts) == {(0, gfr_oracle.Verdict.CASE_4)}
    return world.register("vc_rate", VC) / 256, sum(verdicts.values())


def regular(rate_bps: int) -> Cbr:
    """At least six frames; long enough to leave the start behind where that takes at most 20,000 frames."""
    gap_ns = PAYLOAD_BYTES * 8 * NS_PER_S // rate_bps
    start = 100_000_123
    return Cbr(PORT, rate_bps, PAYLOAD_BYTES, start, start + max(6 * gap_ns, min(3 * NS_PER_S, 20_000 * gap_ns)))


@pytest.mark.parametrize("rate_bps", DECADES_BPS)
def test_weighted_by_time_is_exact_over_six_decades(rate_bps: int) -> None:
    flow = regular(rate_bps)
    sent = arrivals([flow])
    rate, accepted = rate_in_switch([flow])
    assert accepted == len(sent)
    assert rate == pytest.approx(gfr_oracle.rate_by_time(sent), rel=RELATIVE_BOUND, abs=ABSOLUTE_BOUND_BPS)


@pytest.mark.parametrize("rate_bps", [10**4, 10**5, 10**6, 10**7])
def test_steady_rate_is_what_is_on_the_line(rate_bps: int) -> None:
    """After 3 s of one rate (e^-6 is left of the start) r_i is that rate: the pieces' error cancels."""
    flow = regular(rate_bps)
    on_the_line = rate_bps * gfr_oracle.line_bits(flow.frame_bytes) / (PAYLOAD_BYTES * 8)
    rate, _ = rate_in_switch([flow])
    start = 0.0025 if flow.stop_ns - flow.start_ns >= 3 * NS_PER_S else 0.15
    assert rate == pytest.approx(on_the_line, rel=start)


def bursts(rate_bps: int, on_ns: int, period_ns: int, count: int) -> list[Cbr]:
    return [
        Cbr(PORT, rate_bps, PAYLOAD_BYTES, 50_000_321 + n * period_ns, 50_000_321 + n * period_ns + on_ns)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("rate_bps", "on_ns", "period_ns", "count"),
    [
        (10**10, 20_000, 1_000_000, 300),  # 25 frames, 0.8 us apart, each ms
        (10**9, 1_000_000, 100_000_000, 30),  # 1 ms of 1 Gbit/s, ten times a second
        (5 * 10**7, 30_000_000, 700_000_000, 6),  # silences longer than K
        (10**6, 100_000_000, 20 * NS_PER_S, 3),  # silences of 20 s
    ],
)
def test_weighted_by_time_is_exact_in_bursts(rate_bps: int, on_ns: int, period_ns: int, count: int) -> None:
    flows = bursts(rate_bps, on_ns, period_ns, count)
    rate, _ = rate_in_switch(flows)
    assert rate == pytest.approx(gfr_oracle.rate_by_time(arrivals(flows)), rel=RELATIVE_BOUND, abs=ABSOLUTE_BOUND_BPS)


def test_silence_longer_than_the_tables_counts_as_134_s() -> None:
    flows = bursts(10**6, 20_000_000, 200 * NS_PER_S, 2)
    rate, _ = rate_in_switch(flows)
    most = gfr_oracle.line_bits(flows[0].frame_bytes) * (1 / 134.2 - 1 / 200)
    exact = gfr_oracle.rate_by_time(arrivals(flows))
    assert exact < rate < exact * (1 + RELATIVE_BOUND) + most + ABSOLUTE_BOUND_BPS


def test_bursts_do_not_raise_the_mean() -> None:
    """The reason for the form: 25 frames back to back each millisecond read as their mean (algorithms of the GFR paper)."""
    flows = bursts(10**10, 20_000, 1_000_000, 2500)
    mean = 25 * gfr_oracle.line_bits(flows[0].frame_bytes) / 1e-3
    rate, _ = rate_in_switch(flows)
    assert rate == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_weighted_by_time_is_exact_at_random(seed: int) -> None:
    numbers = random.Random(seed)
    flows: list[Cbr] = []
    for _ in range(12):
        rate_bps = round(10 ** numbers.uniform(4, 9.5))
        payload = numbers.choice((18, 64, 300, 960, 1472))
        start = numbers.randrange(2 * NS_PER_S)
        longest = min(NS_PER_S, 4000 * payload * 8 * NS_PER_S // rate_bps)
        flows.append(Cbr(PORT, rate_bps, payload, start, start + numbers.randrange(1, longest + 1)))
    rate, _ = rate_in_switch(flows)
    assert rate == pytest.approx(gfr_oracle.rate_by_time(arrivals(flows)), rel=RELATIVE_BOUND, abs=ABSOLUTE_BOUND_BPS)


@pytest.mark.parametrize("alpha", [0, 128, 230, 256])
@pytest.mark.parametrize("rate_bps", DECADES_BPS)
def test_fixed_alpha_over_six_decades(rate_bps: int, alpha: int) -> None:
    """T is known to 1 us; what comes within 64 us counts as one frame."""
    flow = regular(rate_bps)
    sent = arrivals([flow])
    rate, accepted = rate_in_switch([flow], rate_form=1, alpha=alpha)
    assert accepted == len(sent)
    gap_us = max(64.0, PAYLOAD_BYTES * 8e6 / rate_bps)
    bound = PIECES_BOUND + 1 / gap_us
    assert rate == pytest.approx(gfr_oracle.rate_by_alpha(sent, alpha / 256), rel=bound, abs=ABSOLUTE_BOUND_BPS)


def test_fixed_alpha_sees_bursts_as_faster_than_they_are() -> None:
    """Why it is not the default: 1 ms of 1 Gbit/s ten times a second (11.7 Mbit/s) reads as ten times that and more."""
    flows = bursts(10**9, 1_000_000, 100_000_000, 30)
    mean = 125 * gfr_oracle.line_bits(flows[0].frame_bytes) / 0.1
    rate, _ = rate_in_switch(flows, rate_form=1, alpha=128)
    assert rate > 10 * mean


@pytest.mark.parametrize("period_us", [10_000, 100_000])
def test_a_period_reads_bursts_as_their_mean(period_us: int) -> None:
    """The other reading of T, "scheduling period": 25 frames back to back each 1.03 ms, so that no period ends where a burst begins."""
    flows = bursts(10**10, 20_000, 1_030_000, 15 * period_us // 1000)
    sent = arrivals(flows)
    rate, _ = rate_in_switch(flows, rate_form=1, alpha=128, period_us=period_us)
    exact = gfr_oracle.rate_by_alpha(sent, 0.5, period_us / 1e6)
    assert rate == pytest.approx(exact, rel=PIECES_BOUND + 1 / period_us, abs=ABSOLUTE_BOUND_BPS)
    assert rate == pytest.approx(25 * gfr_oracle.line_bits(flows[0].frame_bytes) / 1.03e-3, rel=1e-3)


def test_a_period_of_many_cells() -> None:
    """10 Gbit/s: 275,000 cells in 10 ms."""
    flow = regular(10**10)
    exact = gfr_oracle.rate_by_alpha(arrivals([flow]), 0.5, 0.01)
    rate, _ = rate_in_switch([flow], rate_form=1, alpha=128, period_us=10_000)
    assert exact > 5e9
    assert rate == pytest.approx(exact, rel=PIECES_BOUND + 1e-4)


def test_a_period_below_64_us_is_64_us() -> None:
    flow = regular(10**9)
    assert rate_in_switch([flow], rate_form=1, alpha=128, period_us=0) == rate_in_switch([flow], rate_form=1, alpha=128)


def test_a_refused_frame_changes_nothing() -> None:
    flow = regular(10**6)
    world = GfrWorld([flow], sink_rate_bps=1)
    world.proposed(qmax=100)
    world.add_vc(VC, PORT)
    world.run_until(flow.start_ns + NS_PER_S)
    rate, last = world.register("vc_rate", VC), world.register("vc_last", VC)
    accepted = world.verdicts(VC)[0, gfr_oracle.Verdict.CASE_4]
    assert accepted == 1 + 100 // gfr_oracle.cells(flow.frame_bytes)  # one is on the line
    assert last == flow.start_ns // 1000 + (accepted - 1) * 8000
    world.run_until(flow.start_ns + 2 * NS_PER_S)
    assert world.verdicts(VC)[0, gfr_oracle.Verdict.QMAX] > 200
    assert (world.register("vc_rate", VC), world.register("vc_last", VC)) == (rate, last)


def test_at_arrival_a_refused_frame_counts_too() -> None:
    """Section 3.2: r_i of all that arrives, whatever becomes of it."""
    flow = regular(10**6)
    world = GfrWorld([flow], sink_rate_bps=1)
    world.proposed(qmax=100, at_arrival=1)
    world.add_vc(VC, PORT)
    world.run_until(flow.stop_ns + 1000)
    assert world.verdicts(VC)[0, gfr_oracle.Verdict.QMAX] > 200
    rate = world.register("vc_rate", VC) / 256
    assert rate == pytest.approx(gfr_oracle.rate_by_time(arrivals([flow])), rel=RELATIVE_BOUND, abs=ABSOLUTE_BOUND_BPS)
