# SPDX-License-Identifier: Apache-2.0
"""Reno in C: growth 1/cwnd an ACK, halving, the three phases of its fast recovery, and the guard."""

from __future__ import annotations

import ctypes

import pytest
from cc_library import INFINITE_SSTHRESH, LOSS, OPEN, RECOVERY, Guard, Reno, Tcp, compile_library, make_tcp

NORMAL, FAST, HELD = range(3)


@pytest.fixture(scope="module")
def cc(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_library(tmp_path_factory.mktemp("cc"))


def byref(value: ctypes.Structure) -> object:
    return ctypes.byref(value)


def test_slow_start_adds_one_packet_an_ack_however_much_it_covers(cc: ctypes.CDLL) -> None:
    tcp = make_tcp(cwnd=2)
    for acked in (1, 2, 30):
        cc.t_reno_cong_avoid(byref(tcp), acked)
    assert tcp.snd_cwnd == 5


def test_avoidance_adds_one_packet_after_cwnd_acks(cc: ctypes.CDLL) -> None:
    tcp = make_tcp(cwnd=10, ssthresh=10)
    for _ in range(9):
        cc.t_reno_cong_avoid(byref(tcp), 1)
    assert tcp.snd_cwnd == 10
    cc.t_reno_cong_avoid(byref(tcp), 1)
    assert (tcp.snd_cwnd, tcp.snd_cwnd_cnt) == (11, 0)


def test_linux_growth_counts_packets_and_stops_at_ssthresh(cc: ctypes.CDLL) -> None:
    tcp = make_tcp(cwnd=6, ssthresh=8)
    cc.t_reno_cong_avoid_packets(byref(tcp), 5)
    assert (tcp.snd_cwnd, tcp.snd_cwnd_cnt) == (8, 3)


@pytest.mark.parametrize("grow", ["t_reno_cong_avoid", "t_reno_cong_avoid_packets"])
def test_no_growth_when_the_application_is_the_limit(cc: ctypes.CDLL, grow: str) -> None:
    tcp = make_tcp(cwnd=4)
    tcp.cwnd_limited = 0
    getattr(cc, grow)(byref(tcp), 3)
    assert tcp.snd_cwnd == 4


@pytest.mark.parametrize(("cwnd", "expected"), [(20, 10), (21, 10), (3, 2), (1, 2)])
def test_a_loss_halves_the_window_down_to_two(cc: ctypes.CDLL, cwnd: int, expected: int) -> None:
    assert cc.t_reno_ssthresh(byref(make_tcp(cwnd))) == expected


def test_undo_restores_the_larger_window(cc: ctypes.CDLL) -> None:
    tcp = make_tcp(cwnd=5)
    tcp.prior_cwnd = 12
    assert cc.t_reno_undo_cwnd(byref(tcp)) == 12


def enter_recovery(cc: ctypes.CDLL, cwnd: int) -> tuple[Reno, Tcp]:
    """Three duplicate ACKs of a full window: what the kernel shows in the ACK that starts the recovery."""
    st, tcp = Reno(), make_tcp(cwnd)
    cc.t_reno_init(byref(st), byref(tcp))
    tcp.snd_ssthresh = cc.t_reno_ssthresh(byref(tcp))
    tcp.ca_state, tcp.high_seq = RECOVERY, cwnd
    tcp.in_flight = cwnd - 4  # three duplicates and the lost one
    cc.t_reno_on_ack(byref(st), byref(tcp))
    return st, tcp


def test_the_first_ack_of_a_recovery_leaves_room_for_the_retransmission(cc: ctypes.CDLL) -> None:
    st, tcp = enter_recovery(cc, 20)
    assert (st.phase, tcp.snd_ssthresh, tcp.snd_cwnd) == (FAST, 10, 17)
    tcp.in_flight, tcp.retrans_out = 16, 1
    cc.t_reno_on_ack(byref(st), byref(tcp))
    assert tcp.snd_cwnd == 10


def test_a_partial_ack_ends_renos_recovery_and_holds_the_next_retransmission(cc: ctypes.CDLL) -> None:
    st, tcp = enter_recovery(cc, 20)
    tcp.snd_una, tcp.in_flight, tcp.retrans_out = 5, 9, 0
    cc.t_reno_on_ack(byref(st), byref(tcp))
    assert (st.phase, tcp.snd_cwnd) == (HELD, 9)  # nothing may be sent: cwnd is what is in flight
    for _ in range(2):
        tcp.in_flight -= 1
        cc.t_reno_on_ack(byref(st), byref(tcp))
        assert tcp.snd_cwnd == tcp.in_flight
    cc.t_reno_on_ack(byref(st), byref(tcp))  # the third duplicate: a second halving
    assert (st.phase, tcp.snd_ssthresh, tcp.snd_cwnd) == (FAST, 5, 8)


def test_a_full_ack_ends_the_recovery_at_ssthresh(cc: ctypes.CDLL) -> None:
    st, tcp = enter_recovery(cc, 20)
    tcp.snd_una, tcp.in_flight = 20, 0
    cc.t_reno_on_ack(byref(st), byref(tcp))
    assert (st.phase, tcp.snd_cwnd, tcp.snd_ssthresh) == (NORMAL, 10, 10)


def test_recovery_that_ends_without_its_last_ack_seen_still_comes_down(cc: ctypes.CDLL) -> None:
    st, tcp = enter_recovery(cc, 20)
    tcp.ca_state, tcp.snd_una = OPEN, 21
    cc.t_reno_on_ack(byref(st), byref(tcp))
    assert (st.phase, tcp.snd_cwnd) == (NORMAL, 10)


def test_a_timeout_while_held_halves_again(cc: ctypes.CDLL) -> None:
    st, tcp = enter_recovery(cc, 20)
    tcp.snd_una, tcp.in_flight = 5, 9
    cc.t_reno_on_ack(byref(st), byref(tcp))
    tcp.snd_cwnd = 1
    cc.t_reno_set_state(byref(st), byref(tcp), LOSS)
    assert (st.phase, tcp.snd_ssthresh, tcp.snd_cwnd) == (NORMAL, 5, 1)
    tcp.ca_state = LOSS
    for una in (6, 7, 8):
        tcp.snd_una = una
        cc.t_reno_on_ack(byref(st), byref(tcp))
    assert tcp.snd_cwnd == 4  # slow start


@pytest.mark.parametrize("good", [INFINITE_SSTHRESH, 2, 10_000_000])
def test_the_guard_leaves_sane_values_alone(cc: ctypes.CDLL, good: int) -> None:
    guard, tcp = Guard(), make_tcp(cwnd=7, ssthresh=good)
    cc.t_guard_check(byref(guard), byref(tcp))
    assert (tcp.snd_cwnd, tcp.snd_ssthresh, guard.repairs) == (7, good, 0)


@pytest.mark.parametrize(
    ("last_good", "prior_cwnd", "expected"),
    [(12, 20, 10), (12, 3, 2), (12, 0, 12), (12, 600_000_000, 12), (INFINITE_SSTHRESH, 0, 2)],
)
def test_the_guard_puts_back_half_the_window_before_or_the_last_good_value(
    cc: ctypes.CDLL, last_good: int, prior_cwnd: int, expected: int
) -> None:
    guard, tcp = Guard(), make_tcp(cwnd=20, ssthresh=last_good)
    cc.t_guard_check(byref(guard), byref(tcp))
    tcp.prior_cwnd, tcp.snd_ssthresh, tcp.snd_cwnd = prior_cwnd, 2183148773, 600_000_000  # as measured
    cc.t_guard_check(byref(guard), byref(tcp))
    assert (tcp.snd_ssthresh, tcp.snd_cwnd, guard.repairs) == (expected, expected, 2)
