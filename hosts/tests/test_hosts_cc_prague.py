# SPDX-License-Identifier: Apache-2.0
"""Prague's window: its estimate, its answers to marks and losses, growth that does not go by the RTT, pacing."""

from __future__ import annotations

import ctypes

import pytest
from cc_library import EVENT_LOSS, OPEN, RECOVERY, make_tcp
from cc_sender import Sender, compile_sender

MS = 1_000_000
RTT_VIRT_MS = 25


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_sender("prague", tmp_path_factory.mktemp("cc"))


def make(library: ctypes.CDLL, cwnd: int = 100, ssthresh: int = 50, srtt_ms: int = 50) -> Sender:
    """A sender in congestion avoidance; a second has passed."""
    tcp = make_tcp(cwnd, ssthresh)
    tcp.now_ns, tcp.srtt_us, tcp.cwnd_limited = 1_000 * MS, srtt_ms * 1_000, 1
    return Sender(library, "prague", tcp)


def ack(sender: Sender, packets: int, marked: int = 0, after_ms: float = 0.0) -> None:
    """One ACK for so many packets, some of them marked; all that was sent is acknowledged, and as much is sent again."""
    tcp = sender.tcp
    tcp.now_ns += round(after_ms * MS)
    tcp.snd_una = tcp.snd_nxt
    tcp.delivered += packets
    tcp.delivered_ce += marked
    sender.cong_control()
    tcp.snd_nxt += packets * 1_000


def test_it_asks_for_ecn_and_paces(library: ctypes.CDLL) -> None:
    sender = make(library)
    assert (sender.ops.needs_ecn, sender.burst()) == (1, 1)
    ack(sender, 1)
    assert sender.tcp.pacing_rate == 100 * sender.tcp.mss_bytes * 1_000_000 // 50_000
    start = make(library, cwnd=10, ssthresh=1_000)
    ack(start, 1)
    assert start.tcp.pacing_rate == 2 * 11 * start.tcp.mss_bytes * 1_000_000 // 50_000


def test_the_first_mark_halves_and_alpha_waits_for_it(library: ctypes.CDLL) -> None:
    sender = make(library)
    for _ in range(20):
        ack(sender, 0, after_ms=50)
    ack(sender, 1, marked=1, after_ms=50)
    # alpha was 1, less a sixteenth: updated at the same ACK, with all of its packets marked
    assert sender.tcp.snd_cwnd == sender.tcp.snd_ssthresh == 50


@pytest.mark.parametrize("share", [0.01, 0.25, 1.0])
def test_alpha_comes_to_the_share_of_marked_packets(library: ctypes.CDLL, share: float) -> None:
    sender = make(library, cwnd=10_000)
    for _ in range(200):
        ack(sender, 1_000, marked=round(1_000 * share), after_ms=50)
        sender.tcp.snd_cwnd = 10_000
    ack(sender, 1_000, marked=round(1_000 * share), after_ms=50)
    grown = (1_000 - round(1_000 * share)) / 10_000
    assert sender.tcp.snd_cwnd == pytest.approx(10_000 * (1 - share / 2) + grown, rel=0.001)


@pytest.mark.parametrize(("srtt_ms", "reductions"), [(5, 40), (25, 40), (100, 10)])
def test_marks_reduce_once_in_a_virtual_round_trip(library: ctypes.CDLL, srtt_ms: int, reductions: int) -> None:
    sender, seen = make(library, cwnd=100_000, srtt_ms=srtt_ms), 0
    for _ in range(1_000 // srtt_ms):
        before = sender.tcp.snd_cwnd
        ack(sender, 1, marked=1, after_ms=srtt_ms)
        seen += sender.tcp.snd_cwnd < before
        sender.tcp.snd_cwnd = 100_000
    assert seen == reductions


@pytest.mark.parametrize(("srtt_ms", "packets_a_second"), [(5, 8), (10, 16), (25, 40), (50, 20), (100, 10)])
def test_growth_is_that_of_25_ms(library: ctypes.CDLL, srtt_ms: int, packets_a_second: int) -> None:
    """In 25 ms a rate grows by a packet a 25 ms: a window by SRTT/25 ms of one."""
    sender = make(library, cwnd=1_000, srtt_ms=srtt_ms)
    for _ in range(1_000 // srtt_ms):
        ack(sender, sender.tcp.snd_cwnd, after_ms=srtt_ms)
    assert sender.tcp.snd_cwnd - 1_000 == pytest.approx(packets_a_second, abs=1)


def test_marked_packets_and_an_idle_application_add_nothing(library: ctypes.CDLL) -> None:
    sender = make(library, cwnd=100)
    ack(sender, 100, marked=100, after_ms=50)
    half = sender.tcp.snd_cwnd
    assert half == 50
    ack(sender, 100, marked=100, after_ms=1)
    sender.tcp.cwnd_limited = 0
    ack(sender, 1_000, after_ms=1)
    assert sender.tcp.snd_cwnd == half


def test_a_loss_halves_whatever_alpha_is_and_the_repair_has_room(library: ctypes.CDLL) -> None:
    sender = make(library)
    for _ in range(200):
        ack(sender, 100, marked=1, after_ms=50)
        sender.tcp.snd_cwnd = 100
    ack(sender, 0)
    tcp = sender.tcp
    assert sender.ssthresh() == tcp.snd_cwnd == 100
    sender.set_state(RECOVERY)
    assert (tcp.snd_cwnd, tcp.snd_ssthresh) == (50, 50)
    tcp.ca_state, tcp.in_flight, tcp.retrans_out = RECOVERY, 95, 0
    ack(sender, 1)
    assert tcp.snd_cwnd == 96
    tcp.retrans_out = 1
    ack(sender, 1)
    assert tcp.snd_cwnd == 50
    tcp.ca_state = OPEN
    ack(sender, 0)
    assert tcp.snd_cwnd == 50
    tcp.snd_cwnd = 100  # an undo
    ack(sender, 0)
    assert tcp.snd_cwnd == 100
    sender.cwnd_event(EVENT_LOSS)
    assert tcp.snd_ssthresh == 50
