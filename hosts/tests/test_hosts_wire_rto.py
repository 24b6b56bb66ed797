# SPDX-License-Identifier: Apache-2.0
"""Timeouts on the wire: what each sender sends after its timer fired for nothing, and what E-RTO sends after a real one.

One loss at segment 70 ends slow start; then 20 segments and more are outstanding where the path holds 13, so that a window
that comes back to the old one and one that comes back to BW_est * RTT_base can be told apart.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from statistics import median

import pytest
from packet_bed import PacketBed, Script, Segment, Span, Trace
from wire_runs import on_time, registered

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and BPF programs: needs root"),
]

MSS = 1000
HEAD_AT = 250  # the timeouts come here
PATH_PACKETS = 13  # 2 Mbit/s, 1054 bytes a frame, 54 ms
SPIKE_S = 0.5  # a timeout comes after about 0.3 s


@pytest.fixture(scope="module")
def bed() -> Generator[PacketBed]:
    with PacketBed(rate_bps=2_000_000, delay_s=0.025, queue_packets=100) as made:
        yield made


class Spike:
    """A transfer in which everything was held for `SPIKE_S` from segment `HEAD_AT` on."""

    def __init__(self, bed: PacketBed, variant: str, cc: str = "") -> None:
        script = Script(drop=[70], holds=[Span(for_s=SPIKE_S, from_data=HEAD_AT)])

        def transfer() -> Trace:
            bed.use(variant)  # with counters from 0
            return bed.transfer(330 * MSS, mss=MSS, script=script, cc=cc)

        self.trace = on_time(transfer)
        assert self.trace.complete
        from_s = self.trace.sent(HEAD_AT).t_s
        self.end_s = from_s + SPIKE_S
        self.old_window = median(self.flights(from_s - 0.1, from_s))
        self.head = max(s.ack for s in self.trace.got() if (s.delivered_s or 0) < self.end_s - 0.1)
        # Held ACKs of the time just before come at the end; sent by the timer is what comes when nothing else does.
        self.by_timer = self.trace.between(from_s + 0.2, self.end_s).data
        self.after = self.trace.between(self.end_s, 1e9).data

    def flights(self, from_s: float, to_s: float) -> list[int]:
        found = [flight for t_s, flight in self.trace.flights(MSS) if from_s <= t_s < to_s]
        assert found, self.trace.dump()
        return found

    @property
    def new_window(self) -> float:
        """Segments outstanding once the held ones are acknowledged (a round trip), for two round trips."""
        return median(self.flights(self.end_s + 0.06, self.end_s + 0.16))


@pytest.mark.parametrize("variant", ["newreno", "sack", "westwood"])
def test_a_spurious_timeout_without_detection_sends_the_window_again(bed: PacketBed, variant: str) -> None:
    spike = Spike(bed, variant)
    assert spike.by_timer
    assert {s.seq for s in spike.by_timer} == {spike.head}  # the head, and the head again
    assert all(s.repeated for s in spike.by_timer)
    assert sum(s.repeated > 0 for s in spike.after) >= 10, spike.trace.dump(spike.after)


def test_frto_retransmits_the_head_and_then_sends_new_data(bed: PacketBed) -> None:
    spike = Spike(bed, "frto")
    assert {s.seq for s in spike.by_timer} == {spike.head}
    assert not any(s.repeated > 0 for s in spike.after), spike.trace.dump(spike.after)
    assert spike.new_window >= spike.old_window - 2


def assert_new_data_only(spike: Spike) -> None:
    before = max(s.number for s in spike.trace.data if s.t_s < spike.by_timer[0].t_s)
    assert [s.number for s in spike.by_timer] == [before + 1 + k for k in range(len(spike.by_timer))]
    late = [s for s in spike.trace.retransmissions if s.number != 70]
    assert not late, spike.trace.dump(late)


def test_erto_sends_one_new_segment_a_timeout_nothing_twice_and_has_its_window_back(bed: PacketBed) -> None:
    spike = Spike(bed, "erto")
    assert 1 <= len(spike.by_timer) <= 3
    assert_new_data_only(spike)
    assert spike.new_window >= spike.old_window - 2
    assert bed.counters(bed.sender) == {"erto_probes": len(spike.by_timer), "erto_ordinary": 0}


def test_bcr_sends_nothing_twice_and_comes_back_to_what_the_path_holds(bed: PacketBed) -> None:
    spike = Spike(bed, "bcr+")
    assert_new_data_only(spike)
    assert spike.old_window >= PATH_PACKETS + 6
    assert PATH_PACKETS - 5 <= spike.new_window <= PATH_PACKETS + 4


def test_a_socket_of_another_sender_on_the_same_host_is_left_alone(bed: PacketBed) -> None:
    spike = Spike(bed, "erto", cc="newreno")
    assert {s.seq for s in spike.by_timer} == {spike.head}
    assert bed.counters(bed.sender) == {"erto_probes": 0, "erto_ordinary": 0}


def test_a_name_with_bcr_in_it_does_not_make_a_sender_of_bcr(bed: PacketBed, tmp_path: Path) -> None:
    """A sender is known by what it registered: a user's NewReno called `mybcr` keeps ordinary timeouts beside the program."""
    with registered("mybcr", tmp_path) as cc:
        spike = Spike(bed, "erto", cc=cc)
    assert {s.seq for s in spike.by_timer} == {spike.head}
    assert bed.counters(bed.sender) == {"erto_probes": 0, "erto_ordinary": 0}


def run_outage(bed: PacketBed, outage_s: float) -> tuple[Trace, Segment, list[Segment]]:
    """E-RTO; data from `HEAD_AT` on is lost for a time, ACKs are not.

    The transfer, the first segment lost, and what was sent once the last ACK for what came before it had been answered.
    """
    script = Script(drop=[70], data_outages=[Span(for_s=outage_s, from_data=HEAD_AT)])

    def transfer() -> Trace:
        bed.use("erto")  # with counters from 0
        return bed.transfer(320 * MSS, mss=MSS, script=script)

    trace = on_time(transfer)
    assert trace.complete
    head = trace.sent(HEAD_AT)
    last_s = next(a.delivered_s or 0.0 for a in trace.got() if a.ack == head.seq)
    return trace, head, [s for s in trace.data if s.t_s > last_s + 0.03]


def test_erto_after_a_real_loss_new_data_then_a_duplicate_ack_then_the_head(bed: PacketBed) -> None:
    trace, head, sent = run_outage(bed, 0.3)
    probe, first = sent[0], sent[1]
    assert (probe.repeated, probe.dropped) == (0, "")  # new
    dupacks = [a for a in trace.got() if a.t_s > probe.t_s and (a.delivered_s or 0) <= first.t_s]
    assert [a.ack for a in dupacks] == [head.seq]
    assert (first.seq, first.repeated) == (head.seq, 1)
    lost = {s.number for s in trace.drops if s.number != 70}
    assert lost == {s.number for s in sent if s.repeated}


def test_erto_when_the_new_segment_is_lost_too_the_next_timeout_sends_another(bed: PacketBed) -> None:
    trace, head, sent = run_outage(bed, 0.8)
    assert sent[0].repeated == 0
    assert sent[0].dropped
    assert (sent[1].number, sent[1].repeated, sent[1].dropped) == (sent[0].number + 1, 0, ""), trace.dump(sent[:4])
    assert (sent[2].seq, sent[2].repeated) == (head.seq, 1)


def test_erto_the_fourth_timeout_in_a_row_is_an_ordinary_one(bed: PacketBed) -> None:
    bed.route("rto_min", "40ms")
    try:
        trace, head, sent = run_outage(bed, 2.4)
    finally:
        bed.route()
    assert [s.repeated for s in sent[:4]] == [0, 0, 0, 1], trace.dump(sent[:6])
    assert [s.number - sent[0].number for s in sent[:3]] == [0, 1, 2]
    assert sent[3].seq == head.seq
    assert bed.counters(bed.sender)["erto_probes"] == 3
    assert bed.counters(bed.sender)["erto_ordinary"] >= 1


def test_erto_without_unsent_data_is_an_ordinary_timeout(bed: PacketBed) -> None:
    bed.use("erto")
    trace = bed.transfer(30 * MSS, mss=MSS, script=Script(data_outages=[Span(for_s=0.1, from_data=28)]))
    assert trace.complete
    last = trace.sent(30)
    late = [s for s in trace.data if s.t_s > last.t_s]
    assert (late[0].seq, late[0].repeated) == (trace.sent(28).seq, 1)
    assert bed.counters(bed.sender) == {"erto_probes": 0, "erto_ordinary": 1}
