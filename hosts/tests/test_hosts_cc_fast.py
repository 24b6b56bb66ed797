# SPDX-License-Identifier: Apache-2.0
"""Tahoe and FastTCP's windows in C: slow start from one packet, no window that limits, growth past ssthresh; and the guard beside them."""

from __future__ import annotations

import ctypes

import pytest
from cc_library import CWR, INFINITE_SSTHRESH, LOSS, OPEN, RECOVERY, Guard, Tahoe, Tcp, compile_library, make_tcp

NSS_CWND = 32768


@pytest.fixture(scope="module")
def cc(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_library(tmp_path_factory.mktemp("cc"))


def byref(value: ctypes.Structure) -> object:
    return ctypes.byref(value)


# --- Tahoe ------------------------------------------------------------------------------------------------------------


def lose_one(cc: ctypes.CDLL, cwnd: int = 20) -> tuple[Tahoe, Tcp]:
    """The ACK that starts the recovery of a full window: three duplicates have come."""
    st, tcp = Tahoe(), make_tcp(cwnd)
    cc.t_tahoe_init(byref(st), byref(tcp))
    tcp.snd_ssthresh = cc.t_reno_ssthresh(byref(tcp))
    tcp.ca_state, tcp.high_seq, tcp.in_flight = RECOVERY, cwnd, cwnd - 4
    cc.t_tahoe_on_ack(byref(st), byref(tcp))
    return st, tcp


def ack(cc: ctypes.CDLL, st: Tahoe, tcp: Tcp, una: int, in_flight: int, retrans_out: int = 0) -> int:
    tcp.snd_una, tcp.in_flight, tcp.retrans_out = una, in_flight, retrans_out
    cc.t_tahoe_on_ack(byref(st), byref(tcp))
    return tcp.snd_cwnd


def test_tahoe_lets_the_retransmission_out_and_then_nothing(cc: ctypes.CDLL) -> None:
    st, tcp = lose_one(cc)
    assert (tcp.snd_cwnd, tcp.snd_ssthresh) == (17, 10)
    assert [ack(cc, st, tcp, 0, in_flight, 1) for in_flight in (16, 15, 2, 1)] == [1, 1, 1, 1]


def test_tahoe_whose_retransmission_did_not_leave_tries_again(cc: ctypes.CDLL) -> None:
    st, tcp = lose_one(cc)
    assert ack(cc, st, tcp, 0, 15, 0) == 16


def test_tahoes_slow_start_begins_with_two_and_ends_at_ssthresh(cc: ctypes.CDLL) -> None:
    st, tcp = lose_one(cc)
    assert ack(cc, st, tcp, 20, 0) == 2  # the full ACK; the kernel stays in Recovery until one above it
    tcp.ca_state = OPEN
    assert [ack(cc, st, tcp, una, 2) for una in range(21, 29)] == [3, 4, 5, 6, 7, 8, 9, 10]
    assert ack(cc, st, tcp, 29, 9) == 10
    assert tcp.snd_cwnd_cnt == 1, "avoidance from here"


def test_tahoe_repairs_the_next_hole_at_each_partial_ack(cc: ctypes.CDLL) -> None:
    st, tcp = lose_one(cc)
    assert ack(cc, st, tcp, 2, 7) == 8  # one more than is in flight: the hole
    assert ack(cc, st, tcp, 2, 8, 1) == 1
    assert ack(cc, st, tcp, 4, 6) == 7
    assert ack(cc, st, tcp, 20, 0) == 4, "three ACKs of new data since it was at 1"


def test_a_duplicate_of_the_full_ack_opens_nothing(cc: ctypes.CDLL) -> None:
    st, tcp = lose_one(cc)
    ack(cc, st, tcp, 20, 0)
    assert ack(cc, st, tcp, 20, 2) == 2


def test_tahoes_recovery_that_ends_unseen_still_starts_low(cc: ctypes.CDLL) -> None:
    st, tcp = lose_one(cc)
    tcp.ca_state = OPEN
    assert ack(cc, st, tcp, 21, 0) == 2
    assert st.repair == 0


def test_tahoes_timeout_forgets_the_repair(cc: ctypes.CDLL) -> None:
    st, tcp = lose_one(cc)
    tcp.snd_cwnd, tcp.ca_state = 1, LOSS
    cc.t_tahoe_set_state(byref(st), byref(tcp), LOSS)
    assert ack(cc, st, tcp, 1, 0) == 2


def test_tahoe_after_a_drop_on_its_own_interface_goes_to_ssthresh(cc: ctypes.CDLL) -> None:
    st, tcp = Tahoe(), make_tcp(cwnd=30, ssthresh=15)
    cc.t_tahoe_init(byref(st), byref(tcp))
    tcp.ca_state = CWR
    assert ack(cc, st, tcp, 1, 20) == 15


# --- NSS and NCA --------------------------------------------------------------------------------------------------------


def test_nothing_brings_the_window_of_nss_down(cc: ctypes.CDLL) -> None:
    for cwnd, ssthresh in ((10, INFINITE_SSTHRESH), (1, 5), (NSS_CWND, 2)):
        tcp = make_tcp(cwnd, ssthresh)
        cc.t_nss_open(byref(tcp))
        assert (tcp.snd_cwnd, tcp.snd_ssthresh) == (NSS_CWND, NSS_CWND)
        assert cc.t_nss_ssthresh(byref(tcp)) == cc.t_nss_undo_cwnd(byref(tcp)) == NSS_CWND


def test_the_window_of_nss_keeps_below_the_clamp(cc: ctypes.CDLL) -> None:
    tcp = make_tcp(10)
    tcp.snd_cwnd_clamp = 100
    cc.t_nss_open(byref(tcp))
    assert tcp.snd_cwnd == 100 == cc.t_nss_undo_cwnd(byref(tcp))


def test_the_guard_takes_the_window_of_nss_for_sane(cc: ctypes.CDLL) -> None:
    tcp, guard = make_tcp(NSS_CWND, NSS_CWND), Guard()
    cc.t_guard_check(byref(guard), byref(tcp))
    assert (tcp.snd_cwnd, tcp.snd_ssthresh, guard.repairs) == (NSS_CWND, NSS_CWND, 0)


def test_linux_can_size_its_send_buffer_by_the_window_of_nss() -> None:
    """tcp_sndbuf_expand(): 2 * cwnd * bytes of a packet in memory, in an int; 32 KB is more than a jumbo frame takes."""
    assert 2 * NSS_CWND * 32_000 < 2**31


@pytest.mark.parametrize(("cwnd", "ssthresh"), [(10, INFINITE_SSTHRESH), (10, 10), (50, 10)])
def test_nca_grows_by_one_an_ack_wherever_ssthresh_is(cc: ctypes.CDLL, cwnd: int, ssthresh: int) -> None:
    tcp = make_tcp(cwnd, ssthresh)
    for acked in (1, 2, 30):
        cc.t_nca_cong_avoid(byref(tcp), acked)
    assert (tcp.snd_cwnd, tcp.snd_ssthresh) == (cwnd + 3, ssthresh)


def test_nca_does_not_grow_while_the_application_is_the_limit_nor_on_duplicates(cc: ctypes.CDLL) -> None:
    tcp = make_tcp(10, 5)
    cc.t_nca_cong_avoid(byref(tcp), 0)
    tcp.cwnd_limited = 0
    cc.t_nca_cong_avoid(byref(tcp), 1)
    assert tcp.snd_cwnd == 10
