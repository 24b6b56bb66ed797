# SPDX-License-Identifier: Apache-2.0
"""CUBIC by the equations of RFC 9438, in floating point, against the header's integers."""

from __future__ import annotations

import ctypes

import pytest
from cc_library import TX_START, make_tcp
from cc_sender import UNPACED, Sender, compile_sender

C, BETA = 0.4, 0.7
ALPHA = 3 * (1 - BETA) / (1 + BETA)
START_NS = 5_000_000_000
LOSS = 4


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


def test_after_a_timeout_the_window_of_the_loss_is_no_goal(library: ctypes.CDLL) -> None:
    """RFC 9438 §4.8: K is 0, W_max the window at which congestion avoidance begins."""
    sender = cubic(library, 1000, 1000, 100)
    lose(sender)
    sender.set_state(LOSS)
    assert run(sender, 6)[-1][1] == pytest.approx(700 + C * 6**3, abs=15)


def test_a_timeout_that_was_none_restores_the_epoch(library: ctypes.CDLL) -> None:
    sender = cubic(library, 1000, 1000, 100)
    lose(sender)
    run(sender, 2)
    before = bytes(sender.state)[:24]
    lose(sender)
    sender.set_state(LOSS)
    sender.undo_cwnd()
    assert bytes(sender.state)[:24] == before


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


# ---- as Linux's tcp_cubic behaves ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def linux(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_sender("cubic_linux", tmp_path_factory.mktemp("cc"))


def cubic_linux(linux: ctypes.CDLL, cwnd: int, ssthresh: int, rtt_ms: int, least_ms: int) -> Sender:
    """A sender that saw `least_ms` once; each of its ACKs has a sample of `rtt_ms` by now."""
    tcp = make_tcp(cwnd, ssthresh)
    tcp.srtt_us, tcp.now_ns = rtt_ms * 1000, START_NS
    tcp.snd_nxt, tcp.pacing_rate = 1_000_000, UNPACED
    sender = Sender(linux, "cubic_linux", tcp)
    sample(sender, least_ms)
    tcp.snd_una, tcp.snd_nxt = 1_000_001, 2_000_000  # the next round trip
    return sender


def sample(sender: Sender, rtt_ms: float) -> None:
    sender.tcp.rtt_us = round(rtt_ms * 1000)
    sender.pkts_acked()


def test_linux_aims_at_the_window_of_the_smallest_rtt_later(linux: ctypes.CDLL) -> None:
    """The RFC's sender aims further, at the window of the present RTT later: it takes more of a queue than the kernel's."""
    sender = cubic_linux(linux, 1000, 1000, rtt_ms=400, least_ms=40)
    lose(sender)
    k = (1000 * (1 - BETA) / C) ** (1 / 3)
    aimed = run(sender, 1)[-1][1]
    assert aimed == pytest.approx(C * (1 + 0.040 - 0.400 - k) ** 3 + 1000, abs=12)  # the window follows an RTT behind


def test_linux_is_renos_window_of_8_15_on_both_sides_of_the_old_window(linux: ctypes.CDLL) -> None:
    sender = cubic_linux(linux, 20, 20, rtt_ms=10, least_ms=10)
    lose(sender)
    assert run(sender, 0.6)[-1][1] == pytest.approx(14 + 8 / 15 * 60, abs=2)


def test_linux_adds_a_twentieth_a_round_trip_before_the_first_loss(linux: ctypes.CDLL) -> None:
    sender = cubic_linux(linux, 1000, 1000, rtt_ms=10, least_ms=10)
    assert run(sender, 0.010)[-1][1] == pytest.approx(1050, abs=1)


@pytest.mark.parametrize(("more_ms", "is_found"), [(4.9, False), (5.1, True)])
def test_hystart_ends_slow_start_where_a_round_trip_is_an_eighth_longer(
    linux: ctypes.CDLL, more_ms: float, is_found: bool
) -> None:
    sender = cubic_linux(linux, 100, 0x7FFFFFFF, rtt_ms=40, least_ms=40)
    for _ in range(20):
        sender.tcp.now_ns += 3_000_000  # no train
        sample(sender, 40 + more_ms)
    assert (sender.tcp.snd_ssthresh == 100) is is_found


def test_hystarts_round_trips_begin_with_flights_below_16_packets_too(linux: ctypes.CDLL) -> None:
    """Linux looks for the round's end before it looks at the window: the second flight of 10, 20, … packets is one train."""
    sender = cubic_linux(linux, 10, 0x7FFFFFFF, rtt_ms=40, least_ms=40)
    tcp, flight_at = sender.tcp, START_NS
    tcp.snd_una, tcp.snd_nxt = 1_000_001, 1_010_001  # ten packets of 1000 bytes
    for flight in (10, 20):
        tcp.now_ns = flight_at = flight_at + 40_000_000
        for _ in range(flight):
            tcp.snd_una += 1000
            sample(sender, 40)
            sender.cong_avoid(1)
            tcp.snd_nxt += 2000
            tcp.now_ns += 1_200_000
    assert tcp.snd_ssthresh == 20 + 18  # the first ACK behind (40 + 1) / 2 ms of the second flight


@pytest.mark.parametrize(("cwnd", "gap_us", "is_found"), [(100, 1500, True), (100, 2500, False), (15, 1500, False)])
def test_hystart_ends_slow_start_where_a_train_of_acks_is_half_an_rtt_long(
    linux: ctypes.CDLL, cwnd: int, gap_us: int, is_found: bool
) -> None:
    sender = cubic_linux(linux, cwnd, 0x7FFFFFFF, rtt_ms=40, least_ms=40)
    for _ in range(20):
        sender.tcp.now_ns += gap_us * 1000
        sample(sender, 40)
    assert (sender.tcp.snd_ssthresh == cwnd) is is_found


def test_linux_forgets_the_path_at_a_timeout(linux: ctypes.CDLL) -> None:
    sender = cubic_linux(linux, 1000, 1000, rtt_ms=10, least_ms=10)
    lose(sender)
    run(sender, 0.5)
    sender.set_state(LOSS)
    before = sender.tcp.snd_cwnd
    assert run(sender, 0.010)[-1][1] == pytest.approx(before * 1.05, rel=0.01), "as before the first loss"
