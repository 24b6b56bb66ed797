# SPDX-License-Identifier: Apache-2.0
"""CUBIC by the equations of RFC 9438, in floating point, against the header's integers."""

from __future__ import annotations

import ctypes

import pytest
from cc_library import TX_START, make_tcp
from cc_sender import Sender, compile_sender

C, BETA = 0.4, 0.7
ALPHA = 3 * (1 - BETA) / (1 + BETA)
START_NS = 5_000_000_000


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_sender("cubic", tmp_path_factory.mktemp("cc"))


def cubic(library: ctypes.CDLL, cwnd: int, ssthresh: int, rtt_ms: int) -> Sender:
    tcp = make_tcp(cwnd, ssthresh)
    tcp.srtt_us, tcp.now_ns = rtt_ms * 1000, START_NS
    return Sender(library, "cubic", tcp)


def lose(sender: Sender) -> None:
    sender.tcp.prior_cwnd = sender.tcp.snd_cwnd
    sender.tcp.snd_ssthresh = sender.ssthresh()
    sender.tcp.snd_cwnd = sender.tcp.snd_ssthresh


def run(sender: Sender, seconds: float) -> list[tuple[float, int]]:
    """ACKs of one packet each, a window of them a round trip, from now on; (seconds since, cwnd) after each."""
    begin, seen = sender.tcp.now_ns, list[tuple[float, int]]()
    while sender.tcp.now_ns < begin + seconds * 1e9:
        seen.append(((sender.tcp.now_ns - begin) / 1e9, sender.tcp.snd_cwnd))
        sender.cong_avoid(1)
        sender.tcp.now_ns += sender.tcp.srtt_us * 1000 // sender.tcp.snd_cwnd
    return seen


def test_a_loss_leaves_seven_tenths(library: ctypes.CDLL) -> None:
    sender = cubic(library, 1000, 1000, 100)
    lose(sender)
    assert sender.tcp.snd_ssthresh == 700
    small = cubic(library, 2, 2, 100)
    assert small.ssthresh() == 2


@pytest.mark.parametrize(("window", "rtt_ms"), [(1000, 100), (5000, 50), (400, 300)])
def test_the_window_follows_the_cubic(library: ctypes.CDLL, window: int, rtt_ms: int) -> None:
    sender = cubic(library, window, window, rtt_ms)
    lose(sender)
    k = (window * (1 - BETA) / C) ** (1 / 3)
    for t, cwnd in run(sender, 1.5 * k):
        expected = C * (t - k) ** 3 + window  # eq. (1)
        lag = abs(C * (t + 2 * rtt_ms / 1000 - k) ** 3 + window - expected)
        assert abs(cwnd - max(expected, BETA * window)) <= lag + 0.01 * window


def test_at_k_it_is_back_at_the_window_of_the_loss(library: ctypes.CDLL) -> None:
    sender = cubic(library, 1000, 1000, 100)
    lose(sender)
    k = (1000 * (1 - BETA) / C) ** (1 / 3)
    assert run(sender, k)[-1][1] in range(995, 1001)


def test_where_reno_has_more_it_is_reno(library: ctypes.CDLL) -> None:
    sender = cubic(library, 20, 20, 10)  # K = 2.5 s; a Reno of alpha 0.53 has the window back in 0.11 s
    lose(sender)
    seen = run(sender, 0.1)
    rounds = 0.1 / 0.010
    assert seen[-1][1] == pytest.approx(14 + ALPHA * rounds, abs=1.01)
    later = run(sender, 0.1)[-1][1]
    assert later == pytest.approx(20 + 1.0 * (0.2 - 6 / ALPHA * 0.010) / 0.010, abs=1.5), (
        "alpha is 1 above the old window"
    )


def test_fast_convergence_gives_way(library: ctypes.CDLL) -> None:
    sender = cubic(library, 1000, 1000, 100)
    lose(sender)
    lose(sender)  # at 700, below the 1000 of the loss before: W_max = 700 (1 + 0.7) / 2 = 595
    run(sender, 0.1)
    k = ((595 - 490) / C) ** (1 / 3)
    assert run(sender, k - 0.1)[-1][1] == pytest.approx(595, abs=3)


def test_slow_start_counts_packets(library: ctypes.CDLL) -> None:
    sender = cubic(library, 10, 0x7FFFFFFF, 100)
    sender.cong_avoid(7)
    assert sender.tcp.snd_cwnd == 17


def test_time_in_which_the_application_is_the_limit_does_not_count(library: ctypes.CDLL) -> None:
    busy, slack = (cubic(library, 1000, 1000, 100) for _ in range(2))
    for sender in (busy, slack):
        lose(sender)
        run(sender, 1)
    slack.tcp.cwnd_limited = 0
    before = slack.tcp.snd_cwnd
    run(slack, 3)
    assert slack.tcp.snd_cwnd == before
    slack.tcp.cwnd_limited = 1
    slack.tcp.now_ns += 2_000_000_000
    slack.cwnd_event(TX_START)
    assert run(slack, 2)[-1][1] == pytest.approx(run(busy, 2)[-1][1], abs=3)


def test_an_undo_restores_the_epoch(library: ctypes.CDLL) -> None:
    sender = cubic(library, 1000, 1000, 100)
    lose(sender)
    run(sender, 2)
    before = bytes(sender.state)[:24]
    window = sender.tcp.snd_cwnd
    lose(sender)
    assert sender.undo_cwnd() == window
    assert bytes(sender.state)[:24] == before


def test_the_largest_times_and_windows_do_not_overflow(library: ctypes.CDLL) -> None:
    sender = cubic(library, 900_000, 900_000, 100)
    lose(sender)
    sender.cong_avoid(1)
    sender.tcp.now_ns += 10**16
    sender.cong_avoid(1)
    assert 630_175 <= sender.tcp.snd_cwnd <= 630_177  # 0.7 is 717 of 1024
