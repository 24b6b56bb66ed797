# SPDX-License-Identifier: Apache-2.0
"""DCTCP's estimate, its answers to marks and to losses, and its receiver's echo, by RFC 8257."""

from __future__ import annotations

import ctypes

import pytest
from cc_library import CWR, EVENT_LOSS, OPEN, RECOVERY, make_tcp
from cc_sender import Sender, compile_sender

ECN_NO_CE, ECN_IS_CE = 4, 5


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_sender("dctcp", tmp_path_factory.mktemp("cc"))


@pytest.fixture
def sender(library: ctypes.CDLL) -> Sender:
    return Sender(library, "dctcp", make_tcp(100, 50))


def window(sender: Sender, packets: int, marked: int) -> None:
    """A window's packets are acknowledged, some of them with ECE."""
    sender.tcp.snd_nxt += packets * 1000
    sender.tcp.snd_una = sender.tcp.snd_nxt
    sender.tcp.delivered += packets
    sender.tcp.delivered_ce += marked
    sender.pkts_acked()


def test_it_asks_for_ecn(sender: Sender) -> None:
    assert sender.ops.needs_ecn == 1


def test_the_first_mark_halves(sender: Sender) -> None:
    assert sender.ssthresh() == 50  # alpha is 1 (§4.2)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_alpha_comes_to_the_share_of_marked_packets(sender: Sender, share: float) -> None:
    alpha = 1.0
    for _ in range(200):
        window(sender, 100, round(100 * share))
        alpha += (share - alpha) / 16
    assert alpha == pytest.approx(share, abs=0.001)
    assert sender.ssthresh() == pytest.approx(100 * (1 - share / 2), abs=1)


def test_alpha_moves_by_a_sixteenth_once_a_window(sender: Sender) -> None:
    window(sender, 100, 0)
    assert sender.ssthresh() == 100 - int(100 * (15 / 16) / 2)
    sender.tcp.snd_nxt += 100_000
    sender.pkts_acked()  # the next window begins, with 100 packets on their way
    before = bytes(sender.state)[:4]
    sender.tcp.snd_una += 50_000
    sender.tcp.delivered += 50
    sender.tcp.delivered_ce += 50
    sender.pkts_acked()
    assert bytes(sender.state)[:4] == before


def test_a_loss_halves_whatever_alpha_is(sender: Sender) -> None:
    for _ in range(200):
        window(sender, 100, 0)
    assert sender.ssthresh() == 100
    sender.tcp.ca_state, sender.tcp.snd_ssthresh = OPEN, 100
    sender.set_state(RECOVERY)
    assert sender.tcp.snd_ssthresh == 50
    sender.tcp.snd_ssthresh = 100
    sender.cwnd_event(EVENT_LOSS)
    assert sender.tcp.snd_ssthresh == 50
    sender.tcp.snd_ssthresh = 100
    sender.set_state(CWR)
    assert sender.tcp.snd_ssthresh == 100


def test_the_receiver_s_acks_tell_of_their_own_packets(sender: Sender) -> None:
    tcp = sender.tcp
    answers = list[tuple[int, int, int]]()
    for rcv_nxt, event in ((1000, ECN_NO_CE), (2000, ECN_IS_CE), (3000, ECN_IS_CE), (4000, ECN_NO_CE)):
        tcp.rcv_nxt, tcp.ack_now, tcp.ack_before = rcv_nxt, 0, 0
        sender.cwnd_event(event)
        answers.append((tcp.ecn_echo, tcp.ack_now, tcp.ack_before))
    assert answers == [(0, 0, 0), (1, 1, 1000), (1, 0, 0), (0, 1, 3000)]
