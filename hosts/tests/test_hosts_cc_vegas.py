# SPDX-License-Identifier: Apache-2.0
"""Vegas in C: what one round trip decides at, below and above alpha, beta and gamma; the paper's and Linux's."""

from __future__ import annotations

import ctypes

import pytest
from cc_library import (
    COMPLETE_CWR,
    EVENT_LOSS,
    INFINITE_SSTHRESH,
    NO_RTT,
    OPEN,
    RECOVERY,
    TX_START,
    Params,
    Tcp,
    Vegas,
    VegasLinux,
    compile_library,
    make_tcp,
)

BASE_US = 10_000
PAPER = Params(alpha=1, beta=3, gamma=1)
LINUX = Params(alpha=2, beta=4, gamma=1)


@pytest.fixture(scope="module")
def cc(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_library(tmp_path_factory.mktemp("cc"))


def byref(value: ctypes.Structure) -> object:
    return ctypes.byref(value)


def queued_rtt_us(cwnd: int, queued: float) -> int:
    """The RTT at which the paper's diff is `queued` packets: cwnd (rtt - base) / rtt = queued."""
    return round(BASE_US * cwnd / (cwnd - queued))


def vegas_at(cc: ctypes.CDLL, cwnd: int, ssthresh: int) -> tuple[Vegas, Tcp]:
    st, tcp = Vegas(), make_tcp(cwnd, ssthresh)
    cc.t_vegas_init(byref(st), byref(tcp))
    cc.t_vegas_pkts_acked(byref(st), BASE_US)
    st.rtt_count = 0
    st.sum_rtt_us = 0
    return st, tcp


def round_trip(cc: ctypes.CDLL, st: Vegas, tcp: Tcp, rtt_us: int) -> None:
    """One ACK a packet of the window; the first one ends the round trip before and decides."""
    window = tcp.snd_cwnd
    cc.t_vegas_pkts_acked(byref(st), rtt_us)
    tcp.snd_una, tcp.snd_nxt = tcp.snd_nxt + 1, tcp.snd_nxt + window
    cc.t_vegas_cong_avoid(byref(st), byref(tcp), 1, byref(PAPER))
    for _ in range(window - 1):
        cc.t_vegas_cong_avoid(byref(st), byref(tcp), 1, byref(PAPER))


@pytest.mark.parametrize(
    ("queued", "change"),
    [(0.0, 1), (0.4, 1), (0.6, 0), (1.0, 0), (2.0, 0), (3.0, 0), (3.4, 0), (3.6, -1), (9.0, -1)],
)
def test_avoidance_goes_by_the_packets_in_queues_to_the_nearest_one(
    cc: ctypes.CDLL, queued: float, change: int
) -> None:
    st, tcp = vegas_at(cc, cwnd=12, ssthresh=2)
    round_trip(cc, st, tcp, queued_rtt_us(12, queued))
    assert tcp.snd_cwnd == 12 + change


def test_diff_divides_by_the_rtt_not_by_base(cc: ctypes.CDLL) -> None:
    assert cc.t_vegas_diff(4, 40_000, 10_000) == 3  # by base it would be 12
    assert cc.t_vegas_diff(2, 290_637, 8_398) == 2
    assert cc.t_vegas_diff(4, 9_000, 10_000) == 0
    assert cc.t_vegas_diff(1 << 20, 4_000_000_000, 1) == 1 << 20  # no overflow


def test_the_window_never_goes_below_two(cc: ctypes.CDLL) -> None:
    st, tcp = vegas_at(cc, cwnd=5, ssthresh=2)
    for _ in range(10):
        round_trip(cc, st, tcp, BASE_US * 1000)
    # diff < cwnd always, so beta = 3 lets 3 packets stay
    assert tcp.snd_cwnd == 3
    st, tcp = vegas_at(cc, cwnd=2, ssthresh=2)
    for _ in range(10):
        round_trip(cc, st, tcp, BASE_US * 1000)
    assert tcp.snd_cwnd == 2


def test_slow_start_doubles_every_other_round_trip(cc: ctypes.CDLL) -> None:
    st, tcp = vegas_at(cc, cwnd=2, ssthresh=INFINITE_SSTHRESH)
    windows = list[int]()
    for _ in range(6):
        round_trip(cc, st, tcp, BASE_US)
        windows.append(tcp.snd_cwnd)
    assert windows == [2, 4, 4, 8, 8, 16]


def test_slow_start_ends_above_gamma_by_an_eighth(cc: ctypes.CDLL) -> None:
    st, tcp = vegas_at(cc, cwnd=16, ssthresh=INFINITE_SSTHRESH)
    round_trip(cc, st, tcp, queued_rtt_us(16, 5))  # this one does not look: every other round trip
    assert (tcp.snd_cwnd, tcp.snd_ssthresh) == (16, INFINITE_SSTHRESH)
    round_trip(cc, st, tcp, queued_rtt_us(16, 5))
    assert (tcp.snd_cwnd, tcp.snd_ssthresh) == (14, 2)


def test_base_is_the_smallest_rtt_and_survives_idle_time(cc: ctypes.CDLL) -> None:
    st, tcp = vegas_at(cc, cwnd=8, ssthresh=2)
    for rtt_us in (30_000, 9_000, -1, 0, 20_000):
        cc.t_vegas_pkts_acked(byref(st), rtt_us)
    assert (st.base_rtt_us, st.rtt_count) == (9_000, 3)
    cc.t_vegas_cwnd_event(byref(tcp), TX_START)
    assert st.base_rtt_us == 9_000


def test_the_mean_of_the_round_trip_decides_even_from_one_sample(cc: ctypes.CDLL) -> None:
    st, tcp = vegas_at(cc, cwnd=12, ssthresh=2)
    for rtt_us in (BASE_US, 2 * queued_rtt_us(12, 9) - BASE_US):  # the mean says 9 packets, the smallest none
        cc.t_vegas_pkts_acked(byref(st), rtt_us)
    tcp.snd_una, tcp.snd_nxt = 1, 12
    cc.t_vegas_cong_avoid(byref(st), byref(tcp), 1, byref(PAPER))
    assert tcp.snd_cwnd == 11


def test_a_round_trip_without_samples_decides_nothing(cc: ctypes.CDLL) -> None:
    st, tcp = vegas_at(cc, cwnd=12, ssthresh=2)
    st.increase = 0
    tcp.snd_una, tcp.snd_nxt = 1, 12
    cc.t_vegas_cong_avoid(byref(st), byref(tcp), 1, byref(PAPER))
    assert tcp.snd_cwnd == 12


@pytest.mark.parametrize(("cwnd", "after_dupacks", "after_timeout"), [(16, 12, 8), (5, 4, 2), (3, 3, 2), (2, 2, 2)])
def test_duplicate_acks_cost_a_quarter_a_timeout_half(
    cc: ctypes.CDLL, cwnd: int, after_dupacks: int, after_timeout: int
) -> None:
    _, tcp = vegas_at(cc, cwnd=cwnd, ssthresh=2)
    assert cc.t_vegas_ssthresh(byref(tcp)) == after_dupacks
    cc.t_vegas_cwnd_event(byref(tcp), EVENT_LOSS)
    assert tcp.snd_ssthresh == after_timeout


@pytest.mark.parametrize(("undone", "windows"), [(False, [11, 10, 9]), (True, [16, 14, 13])])
def test_after_a_recovery_there_is_no_slow_start(cc: ctypes.CDLL, undone: bool, windows: list[int]) -> None:
    """ns-2: "vegas ssthresh is used only during slow-start", 2 from the first loss on; one that was none changes nothing."""
    st, tcp = vegas_at(cc, cwnd=16, ssthresh=INFINITE_SSTHRESH)
    if not undone:
        tcp.snd_cwnd = tcp.snd_ssthresh = cc.t_vegas_ssthresh(byref(tcp))
    cc.t_vegas_cwnd_event(byref(tcp), COMPLETE_CWR)
    seen = list[int]()
    for _ in windows:
        round_trip(cc, st, tcp, queued_rtt_us(tcp.snd_cwnd, 5))
        seen.append(tcp.snd_cwnd)
    assert seen == windows


def test_samples_from_before_a_recovery_are_forgotten(cc: ctypes.CDLL) -> None:
    st, tcp = vegas_at(cc, cwnd=12, ssthresh=2)
    cc.t_vegas_pkts_acked(byref(st), 500_000)
    cc.t_vegas_set_state(byref(st), byref(tcp), RECOVERY)
    cc.t_vegas_set_state(byref(st), byref(tcp), OPEN)
    assert (st.rtt_count, st.base_rtt_us) == (0, BASE_US)


def linux_at(cc: ctypes.CDLL, cwnd: int, ssthresh: int, samples: list[int]) -> tuple[VegasLinux, Tcp]:
    st, tcp = VegasLinux(), make_tcp(cwnd, ssthresh)
    cc.t_vegas_linux_init(byref(st), byref(tcp))
    for rtt_us in samples:
        cc.t_vegas_linux_pkts_acked(byref(st), rtt_us)
    tcp.snd_una, tcp.snd_nxt = 1, cwnd
    return st, tcp


@pytest.mark.parametrize(("queued_over_base", "change"), [(0.0, 1), (1.9, 1), (2.1, 0), (4.9, 0), (5.1, -1)])
def test_linux_divides_by_base_and_truncates(cc: ctypes.CDLL, queued_over_base: float, change: int) -> None:
    rtt_us = round(BASE_US * (1 + queued_over_base / 10))
    st, tcp = linux_at(cc, 10, 2, [BASE_US])
    st.rtt_count, st.min_rtt_us = 0, NO_RTT
    for _ in range(3):
        cc.t_vegas_linux_pkts_acked(byref(st), rtt_us)
    cc.t_vegas_linux_cong_avoid(byref(st), byref(tcp), 1, byref(LINUX))
    assert tcp.snd_cwnd == 10 + change


def test_linux_grows_as_reno_at_two_samples(cc: ctypes.CDLL) -> None:
    st, tcp = linux_at(cc, 10, 2, [BASE_US, 10 * BASE_US])
    cc.t_vegas_linux_cong_avoid(byref(st), byref(tcp), 10, byref(LINUX))
    assert tcp.snd_cwnd == 11


def test_linux_leaves_slow_start_by_the_target_window(cc: ctypes.CDLL) -> None:
    st, tcp = linux_at(cc, 16, INFINITE_SSTHRESH, [BASE_US])
    st.rtt_count, st.min_rtt_us = 0, NO_RTT
    for _ in range(3):
        cc.t_vegas_linux_pkts_acked(byref(st), 2 * BASE_US)
    cc.t_vegas_linux_cong_avoid(byref(st), byref(tcp), 1, byref(LINUX))
    assert (tcp.snd_cwnd, tcp.snd_ssthresh) == (9, 8)


def test_linux_forgets_base_when_it_leaves_idle(cc: ctypes.CDLL) -> None:
    st, tcp = linux_at(cc, 10, 2, [BASE_US])
    cc.t_vegas_linux_cwnd_event(byref(st), byref(tcp), TX_START)
    assert st.base_rtt_us == NO_RTT


def test_linux_is_reno_outside_of_open(cc: ctypes.CDLL) -> None:
    st, tcp = linux_at(cc, 10, 2, [BASE_US] * 5)
    cc.t_vegas_linux_set_state(byref(st), byref(tcp), RECOVERY)
    cc.t_vegas_linux_cong_avoid(byref(st), byref(tcp), 10, byref(LINUX))
    assert (st.enabled, tcp.snd_cwnd) == (0, 11)
