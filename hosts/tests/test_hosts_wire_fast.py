# SPDX-License-Identifier: Apache-2.0
"""FastTCP's cases on the wire: first flights, NSS after losses and timeouts, the time after which MRTO retransmits.

sender --[20 Mbit/s, a long queue, 20 ms]-- receiver (an ACK a segment; it offers 40 segments)
"""

from __future__ import annotations

import os
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path

import pytest
from fairlane_hosts.variants import find_variant
from packet_bed import PacketBed, Script, Span, Trace
from wire_runs import BYTES, MSS, RTO_MIN_S, Runs, on_time, registered

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and BPF programs: needs root"),
]

WINDOW_SEGMENTS = 40
RTT_S = 0.04
LOST = 20  # within the first flight of NSS
CASES = {
    "none": Script(),
    "one": Script(drop=[LOST]),
    "three": Script(drop=[LOST, LOST + 2, LOST + 4]),
    "timeout": Script(outages=[Span(for_s=0.1, from_data=LOST)]),
}


@pytest.fixture(scope="module")
def runs() -> Generator[Runs]:
    with PacketBed(rate_bps=20_000_000, delay_s=RTT_S / 2, queue_packets=1000) as bed:
        yield Runs(bed, CASES, window_bytes=WINDOW_SEGMENTS * MSS + 100)


@pytest.mark.parametrize("variant", ["org", "nca", "fst1", "mrto", "nca-mrto", "tahoe", "reno", "newreno", "sack"])
def test_the_first_flight_is_two_segments(variant: str, runs: Runs) -> None:
    assert [s.number for s in runs(variant, "none").first_flight] == [1, 2]


@pytest.mark.parametrize("variant", ["nss", "nss-mrto"])
def test_the_first_flight_of_nss_is_the_whole_advertised_window(variant: str, runs: Runs) -> None:
    trace = runs(variant, "none")
    offered = trace.segments[1].window_bytes  # in the SYN-ACK
    assert offered >= (WINDOW_SEGMENTS - 2) * MSS
    assert offered - MSS < sum(s.length for s in trace.first_flight) <= offered
    assert not trace.retransmissions


@pytest.mark.parametrize("variant", ["nss", "nss-mrto"])
@pytest.mark.parametrize("case", ["one", "three", "timeout"])
def test_after_its_repair_nss_is_limited_by_the_window_alone(variant: str, case: str, runs: Runs) -> None:
    assert filled(runs(variant, case)) >= 0.75


@pytest.mark.parametrize("case", ["one", "timeout"])
def test_after_its_repair_newreno_is_not(case: str, runs: Runs) -> None:
    assert filled(runs("newreno", case)) <= 0.5


def filled(trace: Trace) -> float:
    """Share of the ACKs after the repair upon which everything was out within 5 ms that the offered window lets out."""
    last = trace.retransmissions[-1]
    high = max(s.end for s in trace.data if s.t_s <= last.t_s)
    after = [a for a in trace.got() if a.ack >= high and a.ack < BYTES]
    full = 0
    for ack in after:
        right = min(ack.ack + ack.window_bytes, BYTES)
        sent = max(s.end for s in trace.data if s.t_s <= ack.at_sender_s + 0.005)
        full += sent > right - MSS
    assert len(after) >= 5
    return full / len(after)


def test_after_a_timeout_nss_sends_all_that_was_lost_at_the_first_ack(runs: Runs) -> None:
    trace = runs("nss", "timeout")
    head, following = trace.retransmissions[:2]
    answer = next(a for a in trace.got() if a.ack >= head.end)
    second = next(a for a in trace.got() if a.at_sender_s > answer.at_sender_s)
    lost = [s for s in trace.drops if s.direction == "data"]
    again = {s.number for s in trace.retransmissions if s.t_s < second.at_sender_s}
    assert following.t_s > answer.at_sender_s, "the head alone first"
    assert {s.number for s in lost} <= again
    assert len(lost) >= 10


def test_nca_grows_past_ssthresh_until_the_window_is_full(runs: Runs) -> None:
    """From half a window of 40: NCA needs an ACK for each packet more, NewReno a round trip."""
    nca, newreno = runs("nca", "one"), runs("newreno", "one")
    for trace in (nca, newreno):
        assert [(s.number, s.repeated) for s in trace.retransmissions] == [(LOST, 1)]
    assert acks_until_full(nca) <= 50
    assert acks_until_full(newreno) > 1.5 * acks_until_full(nca)


def acks_until_full(trace: Trace) -> float:
    """ACKs of new data from the end of the recovery until 38 segments are out; infinite when they never are."""
    repair = trace.retransmissions[0]
    high = max(s.end for s in trace.data if s.t_s < repair.t_s)
    start_s = next(a.at_sender_s for a in trace.got() if a.ack >= high)
    later = [flight for t_s, flight in trace.flights(MSS) if t_s > start_s]
    full = [index for index, flight in enumerate(later) if flight >= WINDOW_SEGMENTS - 2]
    return full[0] if full else float("inf")


@pytest.mark.parametrize(
    ("variant", "file_bytes", "round_trips"),
    [
        ("org", 9216, 3),
        ("nss", 9216, 1),
        ("nss", 10_240, 2),
        ("nss-mrto", 9216, 1),
        ("nca", 9216, 3),
        ("fst1", 9216, 3),
    ],
)
def test_the_papers_files_and_its_window_of_seven_segments(
    variant: str, file_bytes: int, round_trips: int, runs: Runs
) -> None:
    """9 KB are 7 segments of 1448 bytes and leave at once without slow start; 10 KB are 8, and wait for an ACK (paper's Fig. 3)."""
    runs.bed.use(variant)
    trace = runs.bed.transfer(file_bytes, mss=1448, window_bytes=7 * 1448)
    assert trace.segments[1].window_bytes == 7 * 1448
    assert not trace.retransmissions or variant.endswith("mrto")
    sent = [segment.t_s for segment in trace.data if not segment.repeated]
    assert 1 + sum(after - before > RTT_S / 2 for before, after in pairwise(sent)) >= round_trips
    assert sum(s.length for s in trace.first_flight) == {1: file_bytes, 2: 7 * 1448, 3: 2 * 1448}[round_trips]


# --- MRTO ---------------------------------------------------------------------------------------------------------------


def waited(runs: Runs, variant: str, cc: str = "") -> tuple[float, float]:
    """(time, smoothed RTT) in s: from where the timer was set to the retransmission of the last segment of a transfer.

    Nothing follows it but the FIN: no three duplicate ACKs, so the timer. It is set by the last ACK that moved snd_una.
    `variant` is the host's, as it was left when it is empty; `cc` the socket's.
    """
    bed, last = runs.bed, 60
    if variant:
        bed.use(variant)
    script = Script(drop=[last])
    trace = on_time(
        lambda: bed.transfer(last * MSS, mss=MSS, window_bytes=10 * MSS, sample_ms=5, script=script, cc=cc),
        RTO_MIN_S / 6,
    )
    repair, lost = trace.sent(last, 1), trace.sent(last)
    moved = next(a for a in trace.got() if a.ack == lost.seq)
    srtt_us = [int(str(r["srtt_us"])) for r in trace.samples][0:-1][-1]
    return repair.t_s - max(moved.at_sender_s, lost.t_s), srtt_us / 1e6


@pytest.mark.parametrize("variant", ["mrto", "nss-mrto", "nca-mrto"])
def test_mrto_retransmits_close_to_the_rtt(variant: str, runs: Runs) -> None:
    waited_s, srtt_s = waited(runs, variant)
    assert srtt_s * 0.9 <= waited_s <= srtt_s + RTO_MIN_S / 2, "SRTT, a jiffy, and the RTTVAR of a busy machine"


def test_org_waits_200_ms_more(runs: Runs) -> None:
    waited_s, srtt_s = waited(runs, "org")
    assert waited_s >= srtt_s * 0.9 + RTO_MIN_S


def test_going_back_from_mrto_restores_the_minimum(runs: Runs) -> None:
    runs.bed.use("mrto")
    runs.bed.use("org")
    assert waited(runs, "org")[0] >= RTO_MIN_S


def test_the_program_gives_one_socket_its_mrto_on_any_kernel(runs: Runs, tmp_path: Path) -> None:
    """As on a kernel without tcp_rto_min_us: the host's minimum is 200 ms, and only the socket of fl_mrto goes below."""
    bed = runs.bed
    bed.use("org")
    bed.attach(bed.sender, "mrto")
    waited_s, srtt_s = waited(runs, "", cc=find_variant("mrto").congestion_control)
    assert bed.counters(bed.sender)["mrto_sockets"] >= 1
    assert srtt_s * 0.9 <= waited_s <= srtt_s + RTO_MIN_S / 2
    assert waited(runs, "", cc=find_variant("newreno").congestion_control)[0] >= RTO_MIN_S, "another one of that host"
    with registered("nomrto", tmp_path) as cc:
        assert waited(runs, "", cc=cc)[0] >= RTO_MIN_S, "a name that ends in mrto"
    bed.detach(bed.sender)
