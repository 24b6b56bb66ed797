# SPDX-License-Identifier: Apache-2.0
"""Hybla's window: what Reno's would be with a round trip of 25 ms."""

from __future__ import annotations

import ctypes

import pytest
from cc_library import make_tcp
from cc_sender import Sender, compile_sender

OPEN, RECOVERY = 0, 3


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_sender("hybla", tmp_path_factory.mktemp("cc"))


def sender_at(library: ctypes.CDLL, srtt_ms: float, cwnd: int, ssthresh: int) -> Sender:
    tcp = make_tcp(10, ssthresh)
    tcp.srtt_us = round(srtt_ms * 1000)
    sender = Sender(library, "hybla", tcp)
    sender.tcp.snd_cwnd = cwnd
    return sender


@pytest.mark.parametrize(("srtt_ms", "first"), [(1, 1), (25, 1), (49, 1), (50, 2), (600, 24)])
def test_the_first_window_is_rho(library: ctypes.CDLL, srtt_ms: float, first: int) -> None:
    tcp = make_tcp(10, 10_000)
    tcp.srtt_us = round(srtt_ms * 1000)
    assert Sender(library, "hybla", tcp).tcp.snd_cwnd == first


@pytest.mark.parametrize(("srtt_ms", "after"), [(25, 11), (50, 13), (75, 17), (100, 25)])
def test_an_ack_of_slow_start_adds_two_to_the_rho_less_one(library: ctypes.CDLL, srtt_ms: float, after: int) -> None:
    sender = sender_at(library, srtt_ms, 10, 10_000)
    sender.cong_avoid(2)
    assert sender.tcp.snd_cwnd == after


def test_rho_has_eighths_in_slow_start(library: ctypes.CDLL) -> None:
    for eighths in range(8, 41):
        sender = sender_at(library, eighths * 25 / 8 + 0.01, 10, 60_000)
        for _ in range(128):
            sender.cong_avoid(1)
        assert (sender.tcp.snd_cwnd - 10) / 128 == pytest.approx(2 ** (eighths / 8) - 1, rel=0.01)


def test_slow_start_ends_at_ssthresh_and_no_window_is_above_the_limit(library: ctypes.CDLL) -> None:
    sender = sender_at(library, 600, 10, 100)
    sender.cong_avoid(1)
    assert sender.tcp.snd_cwnd == 100
    sender.tcp.snd_ssthresh = 0x7FFFFFFF
    sender.cong_avoid(1)
    assert sender.tcp.snd_cwnd == 65_535


@pytest.mark.parametrize(
    ("srtt_ms", "cwnd", "more"), [(10, 100, 1), (25, 500, 1), (50, 500, 4), (100, 500, 16), (600, 5_000, 576)]
)
def test_a_round_trip_of_avoidance_adds_the_square_of_rho(
    library: ctypes.CDLL, srtt_ms: float, cwnd: int, more: int
) -> None:
    sender = sender_at(library, srtt_ms, cwnd, 10)
    for _ in range(cwnd):
        sender.cong_avoid(1)
    assert sender.tcp.snd_cwnd - cwnd == pytest.approx(more, rel=0.1, abs=2), "whole parts an ACK, as Linux has it"


def test_rho_follows_the_smallest_srtt_alone(library: ctypes.CDLL) -> None:
    sender = sender_at(library, 100, 1, 10_000)
    sender.tcp.srtt_us = 600_000
    sender.cong_avoid(1)
    assert sender.tcp.snd_cwnd == 1 + 15
    sender.tcp.srtt_us = 50_000
    sender.cong_avoid(1)
    assert sender.tcp.snd_cwnd == 16 + 3
    unknown = sender_at(library, 0, 1, 10_000)
    unknown.tcp.srtt_us = 100_000
    unknown.cong_avoid(1)
    assert unknown.tcp.snd_cwnd == 1 + 15, "learned later: the handshake gave none"


def test_it_is_reno_while_packets_are_missing_or_the_application_is_the_limit(library: ctypes.CDLL) -> None:
    sender = sender_at(library, 100, 10, 10_000)
    sender.set_state(RECOVERY)
    sender.cong_avoid(2)
    assert (sender.tcp.snd_cwnd, sender.ssthresh()) == (12, 6)
    sender.set_state(OPEN)
    sender.tcp.cwnd_limited = 0
    sender.cong_avoid(2)
    assert sender.tcp.snd_cwnd == 12
