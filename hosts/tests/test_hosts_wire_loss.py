# SPDX-License-Identifier: Apache-2.0
"""What each window-based variant sends after a loss, a corrupted segment, three losses, and a timeout: on the wire.

sender --[10 Mbit/s, 100 packets, 10 ms]-- receiver (an ACK a segment, a window that never limits)
"""

from __future__ import annotations

import os
from collections.abc import Generator
from itertools import pairwise

import pytest
from packet_bed import PacketBed, Script, Segment, Span, Trace
from wire_runs import LOST, MSS, RTO_MIN_S, Runs

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and BPF programs: needs root"),
]

CASES = {
    "one": Script(drop=[LOST]),
    "corrupt": Script(corrupt=[LOST]),
    "three": Script(drop=[LOST, LOST + 2, LOST + 4]),
    "timeout": Script(outages=[Span(for_s=0.1, from_data=LOST)]),
}
HALVES = ["newreno", "org", "nca", "fst1", "vegas-linux"]


@pytest.fixture(scope="module")
def runs() -> Generator[Runs]:
    with PacketBed(rate_bps=10_000_000, delay_s=0.01, queue_packets=1000) as bed:
        bed.sysctl(bed.receiver, "tcp_rmem", "4096 1000000 4000000")
        yield Runs(bed, CASES)


def sent_again(trace: Trace) -> list[tuple[int, int]]:
    return [(s.number, s.repeated) for s in trace.retransmissions]


def dupacks_before(trace: Trace, segment: Segment) -> int:
    """Duplicate ACKs for the segment's first byte that had reached the sender when it went out."""
    return sum(1 for ack in trace.dupacks(segment.seq) if ack.at_sender_s < segment.t_s)


def recovered(trace: Trace) -> Segment:
    """The ACK that ended the first recovery: it covers all that had been sent when the first retransmission went out."""
    first = trace.retransmissions[0]
    high = max(s.end for s in trace.data if s.t_s < first.t_s)
    return next(ack for ack in trace.got() if ack.ack >= high)


def flights_after(trace: Trace, ack: Segment) -> list[int]:
    """Segments outstanding before each of the ACKs that followed."""
    return [flight for t_s, flight in trace.flights(MSS) if t_s > ack.at_sender_s]


def grows_with_each_ack(flights: list[int], start: int) -> bool:
    """start, start + 1, …: never above, and below only where ACKs came too close for the forwarder to tell."""
    above = any(flight > start + index for index, flight in enumerate(flights))
    return flights[0] == start and not above and flights[-1] - start >= 0.6 * (len(flights) - 1)


def flight_before(trace: Trace) -> int:
    """Segments outstanding when the first retransmission went out: cwnd, or less where a burst of ACKs had just opened it."""
    return trace.outstanding(trace.retransmissions[0].t_s - 1e-6) // MSS


def new_data(trace: Trace, from_s: float, to_s: float) -> list[Segment]:
    return [s for s in trace.data if not s.repeated and from_s < s.t_s < to_s]


# --- one loss ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["tahoe", "reno", "newreno", "sack", "vegas", "vegas-linux", "org", "nca", "nss"])
def test_one_loss_is_repaired_by_the_third_duplicate_ack(variant: str, runs: Runs) -> None:
    trace = runs(variant, "one")
    repair = trace.retransmissions[0]
    assert sent_again(trace) == [(LOST, 1)]
    assert repair.t_s - trace.sent(LOST).t_s < RTO_MIN_S, "not the timer"
    if variant != "sack":  # RACK may take one duplicate and a quarter of the RTT for enough
        assert dupacks_before(trace, repair) == 3


def test_fst1_repairs_at_the_first_duplicate_ack(runs: Runs) -> None:
    trace = runs("fst1", "one")
    assert sent_again(trace) == [(LOST, 1)]
    assert dupacks_before(trace, trace.retransmissions[0]) == 1


def test_tahoe_starts_again_from_one_packet(runs: Runs) -> None:
    trace = runs("tahoe", "one")
    end = recovered(trace)
    assert new_data(trace, trace.retransmissions[0].t_s, end.at_sender_s) == [], "nothing on duplicate ACKs"
    assert grows_with_each_ack(flights_after(trace, end)[:10], 2), "slow start: one more an ACK"
    assert flight_before(trace) >= 15


@pytest.mark.parametrize("variant", HALVES)
def test_newreno_and_its_kin_halve_the_window(variant: str, runs: Runs) -> None:
    trace = runs(variant, "one")
    assert 0.4 <= flights_after(trace, recovered(trace))[0] / flight_before(trace) <= 0.75


def test_reno_sends_on_while_it_recovers_and_halves(runs: Runs) -> None:
    trace = runs("reno", "one")
    end = recovered(trace)
    assert new_data(trace, trace.retransmissions[0].t_s, end.at_sender_s), "the window is inflated by duplicate ACKs"
    assert 0.4 <= flights_after(trace, end)[0] / flight_before(trace) <= 0.75


def test_vegas_gives_up_a_quarter(runs: Runs) -> None:
    trace = runs("vegas", "one")
    assert 0.6 <= flights_after(trace, recovered(trace))[0] / flight_before(trace) <= 0.95


@pytest.mark.parametrize(("variant", "growth"), [("newreno", 1), ("org", 1), ("nca", 10)])
def test_past_ssthresh_only_nca_grows_with_every_ack(variant: str, growth: int, runs: Runs) -> None:
    trace = runs(variant, "one")
    flights = flights_after(trace, recovered(trace))[:20]
    if growth == 1:
        assert max(flights) - flights[0] <= 2, "avoidance: less than one packet in twenty ACKs of a window of twenty"
    else:
        assert grows_with_each_ack(flights, flights[0]), "one packet an ACK, though past ssthresh"


@pytest.mark.parametrize("variant", ["tahoe", "reno", "newreno", "sack", "vegas", "nss"])
def test_a_corrupted_segment_is_a_lost_one(variant: str, runs: Runs) -> None:
    """None of these knows better (the ENA variants do): repaired once, and the window comes down as after a loss."""
    trace = runs(variant, "corrupt")
    assert [(s.number, s.repeated) for s in trace.corrupted] == [(LOST, 0)]
    assert sent_again(trace) == [(LOST, 1)]
    assert trace.retransmissions[0].t_s - trace.sent(LOST).t_s < RTO_MIN_S
    assert all(a.options.experiment is None for a in trace.acks)
    if variant in ("newreno", "reno", "vegas"):
        low, high = (0.6, 0.95) if variant == "vegas" else (0.4, 0.75)
        assert low <= flights_after(trace, recovered(trace))[0] / flight_before(trace) <= high
    if variant == "tahoe":
        assert flights_after(trace, recovered(trace))[0] == 2


# --- three losses in one window -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["tahoe", "newreno", "vegas", "org", "nca", "fst1", "nss"])
def test_three_losses_are_repaired_one_hole_a_partial_ack(variant: str, runs: Runs) -> None:
    trace = runs(variant, "three")
    assert sent_again(trace) == [(LOST, 1), (LOST + 2, 1), (LOST + 4, 1)]
    for before, after in pairwise(trace.retransmissions):
        (partial,) = [a for a in trace.got() if a.ack == after.seq][:1]
        assert before.t_s < partial.at_sender_s < after.t_s
        assert after.t_s - before.t_s < RTO_MIN_S


@pytest.mark.parametrize("variant", HALVES)
def test_three_losses_halve_newreno_once(variant: str, runs: Runs) -> None:
    trace = runs(variant, "three")
    assert 0.4 <= flights_after(trace, recovered(trace))[0] / flight_before(trace) <= 0.75


def test_three_losses_leave_tahoe_in_slow_start(runs: Runs) -> None:
    trace = runs("tahoe", "three")
    end = recovered(trace)
    assert new_data(trace, trace.retransmissions[0].t_s, end.at_sender_s) == []
    assert grows_with_each_ack(flights_after(trace, end)[:10], 4), "three ACKs of new data since it was at 1"


def test_reno_ends_its_recovery_at_the_partial_ack(runs: Runs) -> None:
    trace = runs("reno", "three")
    _, second, third = trace.retransmissions
    assert sent_again(trace) == [(LOST, 1), (LOST + 2, 1), (LOST + 4, 1)]
    assert dupacks_before(trace, second) == 3, "a second fast retransmit, not NewReno's at the partial ACK"
    assert dupacks_before(trace, third) >= 3 or third.t_s - second.t_s > RTO_MIN_S, "a third one, or the timer"


def test_sack_repairs_three_losses_in_one_round_trip(runs: Runs) -> None:
    trace = runs("sack", "three")
    first, second, third = trace.retransmissions
    assert sent_again(trace) == [(LOST, 1), (LOST + 2, 1), (LOST + 4, 1)]
    repaired = next(a for a in trace.got() if a.ack > first.seq)
    assert max(second.t_s, third.t_s) < repaired.at_sender_s


# --- a timeout ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["tahoe", "reno", "newreno", "vegas", "org", "nca", "fst1", "nss"])
def test_a_timeout_sends_the_head_alone(variant: str, runs: Runs) -> None:
    trace = runs(variant, "timeout")
    head, following = trace.retransmissions[:2]
    answered = next(a for a in trace.got() if a.ack >= head.end)
    assert head.t_s - max(s.t_s for s in trace.data if s.t_s < head.t_s) > 0.05, "the timer"
    assert head.t_s < answered.at_sender_s < following.t_s


@pytest.mark.parametrize("variant", ["tahoe", "reno", "newreno", "org", "nca", "fst1"])
def test_after_a_timeout_slow_start_goes_back(variant: str, runs: Runs) -> None:
    trace = runs(variant, "timeout")
    assert sizes_after_timeout(trace)[:3] == [2, 2, 2], "each ACK lets two go"
    again = [s.number for s in trace.retransmissions[1:]]
    assert again == sorted(again), "go-back-N: what was lost, in order"
    assert {s.number for s in trace.drops if s.direction == "data"} <= {LOST, *again}


def sizes_after_timeout(trace: Trace) -> list[int]:
    """Segments sent after each of the ACKs that followed the timeout, until the next ACK."""
    head = trace.retransmissions[0]
    acks = [a.at_sender_s for a in trace.got() if a.at_sender_s > head.t_s]
    return [sum(1 for s in trace.data if before < s.t_s < after) for before, after in pairwise(acks)]
