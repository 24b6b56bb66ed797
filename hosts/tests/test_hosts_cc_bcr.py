# SPDX-License-Identifier: Apache-2.0
"""Westwood, E-RTO, BCR and BCR+ in C: the estimate, its freezing by a timeout, the hold, and the window after a spurious timeout."""

from __future__ import annotations

import ctypes
from ctypes import c_uint32, c_uint64

import pytest
from cc_library import EVENT_LOSS, LOSS, NO_RTT, OPEN, RECOVERY, TX_START, compile_library, make_tcp

MS = 1_000_000
MSS = 1000
NONE, RESTORED, TRAIN, ROUND = range(4)


class Westwood(ctypes.Structure):
    """struct westwood."""

    _fields_ = [
        ("sample_ns", c_uint64),
        *(
            (n, c_uint32)
            for n in ("sample_delivered", "bw_cur", "bw_est", "rtt_us", "rtt_base_us", "frozen", "thaw_seq")
        ),
    ]
    bw_est: int
    rtt_base_us: int
    frozen: int


class Erto(ctypes.Structure):
    """struct erto."""

    _fields_ = [(n, c_uint32) for n in ("snd_una", "open", "hold")]


class BcrPlus(ctypes.Structure):
    """struct bcr_plus."""

    _fields_ = [
        ("bw", Westwood),
        ("erto", Erto),
        *((n, c_uint32) for n in ("phase", "old_cwnd", "old_target", "train_packets", "round_seq", "round_rtt_us")),
    ]
    bw: Westwood
    phase: int


@pytest.fixture(scope="module")
def cc(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = compile_library(tmp_path_factory.mktemp("cc"))
    assert (library.size_of_westwood(), library.size_of_bcr_plus()) == (ctypes.sizeof(Westwood), ctypes.sizeof(BcrPlus))
    library.t_westwood_pkts_acked.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, c_uint64]
    library.t_bcr_plus_pkts_acked.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, c_uint64]
    return library


class Sender:
    """A sender with BCR+, its clock, and what the kernel does around the calls; sequence numbers in packets of MSS bytes."""

    def __init__(self, cc: ctypes.CDLL, cwnd: int = 20) -> None:
        self.cc, self.st, self.tcp, self.now_ns = cc, BcrPlus(), make_tcp(cwnd, ssthresh=cwnd), 0
        cc.t_bcr_plus_init(ctypes.byref(self.st), ctypes.byref(self.tcp))
        self.tcp.snd_nxt = cwnd * MSS
        self.tcp.in_flight = cwnd

    def ack(self, packets: int, after_ns: int, rtt_us: int = -1, *, fill: bool = True) -> None:
        """An ACK for `packets` more, `after_ns` later; then the window grows and is filled."""
        self.now_ns += after_ns
        self.tcp.snd_una += packets * MSS
        self.tcp.delivered += packets
        self.tcp.in_flight = (self.tcp.snd_nxt - self.tcp.snd_una) // MSS
        self.cc.t_bcr_plus_pkts_acked(ctypes.byref(self.st), ctypes.byref(self.tcp), rtt_us, self.now_ns)
        if self.tcp.ca_state == OPEN or packets:
            self.cc.t_bcr_plus_cong_avoid(ctypes.byref(self.st), ctypes.byref(self.tcp), packets)
        if fill:
            self.fill()

    def fill(self) -> None:
        while (self.tcp.snd_nxt - self.tcp.snd_una) // MSS < self.tcp.snd_cwnd:
            self.tcp.snd_nxt += MSS

    def acks(self, count: int, gap_ns: int, rtt_us: int) -> None:
        for _ in range(count):
            self.ack(1, gap_ns, rtt_us)

    def set_state(self, state: int) -> None:
        self.cc.t_bcr_plus_set_state(ctypes.byref(self.st), ctypes.byref(self.tcp), state)
        self.tcp.ca_state = state

    def timeout(self) -> None:
        """The kernel's tcp_enter_loss, and E-RTO's new segment."""
        if self.tcp.ca_state != LOSS:
            self.tcp.prior_cwnd = self.tcp.snd_cwnd
            self.tcp.snd_ssthresh = max(self.tcp.snd_cwnd // 2, 2)
        self.tcp.snd_cwnd, self.tcp.snd_cwnd_cnt = 1, 0
        self.set_state(LOSS)
        self.tcp.high_seq = self.tcp.snd_nxt
        self.tcp.snd_nxt += MSS

    def undo(self) -> None:
        """The kernel's tcp_undo_cwnd_reduction by F-RTO."""
        prior_ssthresh = 1000
        self.tcp.snd_cwnd = self.cc.t_bcr_plus_undo_cwnd(ctypes.byref(self.st), ctypes.byref(self.tcp))
        self.tcp.snd_ssthresh = max(self.tcp.snd_ssthresh, prior_ssthresh)
        self.set_state(OPEN)

    def spike(self, release_ns: int = 5_000 * MS) -> None:
        """Two timeouts, then everything that was held arrives at once; two ACKs, then the undo, then the rest."""
        self.timeout()
        self.timeout()
        self.ack(1, release_ns, fill=False)
        assert self.tcp.snd_cwnd == 1  # the hold
        self.now_ns += 10_000
        self.tcp.snd_una += MSS
        self.tcp.delivered += 1
        self.cc.t_bcr_plus_pkts_acked(ctypes.byref(self.st), ctypes.byref(self.tcp), 5_000_000, self.now_ns)
        self.undo()
        end = self.tcp.snd_nxt
        while self.tcp.snd_una < end:  # the burst
            self.ack(1, 10_000, 5_000_000)


def test_the_estimate_is_packets_over_a_round_trip_and_follows_with_alpha_a_fifth(cc: ctypes.CDLL) -> None:
    st, tcp = Westwood(), make_tcp(20)
    cc.t_westwood_init(ctypes.byref(st), ctypes.byref(tcp))
    assert (cc.t_westwood_bdp(ctypes.byref(st)), st.rtt_base_us) == (0, NO_RTT)

    def run(count: int, gap_ns: int, now_ns: int) -> int:
        samples = 0
        for _ in range(count):
            now_ns += gap_ns
            tcp.delivered += 1
            samples += cc.t_westwood_pkts_acked(ctypes.byref(st), ctypes.byref(tcp), 50_000, now_ns)
        assert samples == (count - (1 if now_ns <= count * gap_ns else 0)) * gap_ns // (50 * MS)
        return now_ns

    now_ns = run(21, 5 * MS, 0)  # 200 packets/s, two samples of 50 ms after the first ACK
    assert st.bw_est == 200 * 256
    assert cc.t_westwood_bdp(ctypes.byref(st)) == 10  # 200/s * 50 ms
    run(10, 10 * MS, now_ns)  # 100 packets/s: one sample each 50 ms
    first = (200 + 4 * 100) / 5
    assert st.bw_est == int((first * 256 + 4 * 100 * 256) / 5)


def test_westwoods_answer_to_a_loss_is_its_estimate_and_never_more_than_the_window(cc: ctypes.CDLL) -> None:
    st, tcp = Westwood(bw_est=200 * 256, rtt_base_us=50_000), make_tcp(30)
    assert cc.t_westwood_ssthresh(ctypes.byref(st), ctypes.byref(tcp)) == 10
    tcp.snd_cwnd = 8
    assert cc.t_westwood_ssthresh(ctypes.byref(st), ctypes.byref(tcp)) == 8
    cc.t_westwood_cwnd_event(ctypes.byref(st), ctypes.byref(tcp), EVENT_LOSS)
    assert tcp.snd_ssthresh == 10  # a timeout: cwnd goes to 1, slow start up to the estimate
    no_estimate = Westwood(rtt_base_us=NO_RTT)
    assert cc.t_westwood_ssthresh(ctypes.byref(no_estimate), ctypes.byref(tcp)) == 4


def test_an_idle_time_is_no_sample(cc: ctypes.CDLL) -> None:
    st, tcp = Westwood(), make_tcp(20)
    cc.t_westwood_init(ctypes.byref(st), ctypes.byref(tcp))
    for now_ms in (10, 70):
        tcp.delivered += 12
        cc.t_westwood_pkts_acked(ctypes.byref(st), ctypes.byref(tcp), 50_000, now_ms * MS)
    before = st.bw_est
    cc.t_westwood_cwnd_event(ctypes.byref(st), ctypes.byref(tcp), TX_START)
    tcp.delivered += 1
    assert not cc.t_westwood_pkts_acked(ctypes.byref(st), ctypes.byref(tcp), 50_000, 9_000 * MS)
    assert st.bw_est == before


def test_a_recovery_that_fills_one_hole_a_round_trip_says_nothing_of_the_bandwidth(cc: ctypes.CDLL) -> None:
    st, tcp = Westwood(), make_tcp(20)
    cc.t_westwood_init(ctypes.byref(st), ctypes.byref(tcp))

    def ack(now_ms: int, packets: int) -> None:
        tcp.delivered += packets
        cc.t_westwood_pkts_acked(ctypes.byref(st), ctypes.byref(tcp), 50_000, now_ms * MS)

    ack(50, 10)
    ack(100, 10)  # 200 packets/s
    tcp.ca_state = RECOVERY
    for now_ms in range(150, 1000, 50):
        ack(now_ms, 1)
    assert st.bw_est == 200 * 256
    ack(1000, 20)  # faster: that counts
    assert st.bw_est == (200 + 4 * 400) * 256 // 5
    cc.t_westwood_set_state(ctypes.byref(st), ctypes.byref(tcp), OPEN)
    tcp.ca_state = OPEN
    before = st.bw_est
    ack(1050, 1)  # begins a sample: nothing of the recovery is in it
    assert st.bw_est == before


def settled(cc: ctypes.CDLL, gap_ns: int = 5 * MS, cwnd: int = 20) -> Sender:
    """After two seconds at one packet a gap with an RTT of 60 ms."""
    sender = Sender(cc, cwnd)
    sender.tcp.cwnd_limited = 0  # the window stays
    sender.acks(2_000 * MS // gap_ns, gap_ns, 60_000)
    return sender


def test_a_spike_leaves_the_estimate_as_it_was_and_bcr_plus_restores_to_it(cc: ctypes.CDLL) -> None:
    sender = settled(cc)
    assert sender.st.bw.bw_est == 200 * 256
    sender.spike()
    assert (sender.tcp.snd_cwnd, sender.tcp.snd_ssthresh) == (12, 12)  # 200/s * 60 ms, not the old 20
    assert (sender.st.bw.bw_est, sender.st.bw.frozen, sender.st.phase) == (200 * 256, 1, RESTORED)


def test_a_window_below_the_estimate_is_restored_as_it_was(cc: ctypes.CDLL) -> None:
    sender = settled(cc)
    sender.tcp.snd_cwnd = 7
    sender.spike()
    assert (sender.tcp.snd_cwnd, sender.tcp.snd_ssthresh) == (7, 12)


def test_on_a_slower_network_the_window_comes_down_without_a_loss(cc: ctypes.CDLL) -> None:
    sender = settled(cc)
    sender.spike()
    sender.acks(12, 20 * MS, 70_000)  # 50 packets/s
    assert sender.st.phase == ROUND
    assert (sender.tcp.snd_cwnd, sender.tcp.snd_ssthresh) == (4, 3)  # 50/s * 60 ms, and half as much again
    sender.acks(20, 20 * MS, 70_000)
    assert sender.st.phase == NONE
    assert sender.st.bw.rtt_base_us == 70_000  # of the new path
    assert sender.tcp.snd_cwnd <= 2 * 4


def test_on_a_faster_network_the_window_goes_to_it(cc: ctypes.CDLL) -> None:
    sender = settled(cc, gap_ns=20 * MS, cwnd=10)
    sender.spike()
    assert sender.tcp.snd_cwnd == 3  # 50/s * 60 ms
    sender.tcp.cwnd_limited = 1
    sender.ack(1, 60 * MS, 60_000)
    assert sender.st.phase == TRAIN
    sender.acks(3, 3 * MS, 60_000)  # 333 packets/s
    assert (sender.tcp.snd_ssthresh, sender.st.phase) == (20, ROUND)
    assert 10 <= sender.tcp.snd_cwnd < 20  # the old window at once, from there slow start
    for _ in range(2):
        sender.ack(1, 50 * MS, 60_000)
        sender.acks(sender.tcp.snd_cwnd, 3 * MS, 60_000)
    assert 18 <= sender.tcp.snd_cwnd <= 22
    assert sender.st.phase == NONE


def test_a_train_whose_acks_came_in_a_clump_is_corrected_a_round_trip_later(cc: ctypes.CDLL) -> None:
    sender = settled(cc, gap_ns=20 * MS, cwnd=40)
    sender.spike()
    sender.ack(1, 60 * MS, 60_000)
    sender.acks(3, 1000, 60_000)  # a million packets a second
    assert sender.st.phase == ROUND
    assert sender.tcp.snd_cwnd == 40  # never above the old window at once
    sender.acks(60, 5 * MS, 60_000)  # it delivers 200 a second
    assert sender.st.phase == NONE
    assert sender.tcp.snd_ssthresh <= 2 * 12
    assert sender.tcp.snd_cwnd <= 2 * 12


def test_the_first_ack_after_a_timeout_opens_nothing_and_a_retransmission_ends_the_hold(cc: ctypes.CDLL) -> None:
    sender = settled(cc)
    sender.timeout()
    sender.tcp.cwnd_limited = 1
    sender.ack(1, 100 * MS, fill=False)
    assert sender.tcp.snd_cwnd == 1
    sender.timeout()
    sender.ack(0, 100 * MS, fill=False)  # a duplicate ACK: the loss is real
    sender.tcp.retrans_out = 0  # the head was retransmitted and arrived
    sender.ack(1, 100 * MS, fill=False)
    assert sender.tcp.snd_cwnd == 2


def test_without_an_estimate_the_old_window_comes_back(cc: ctypes.CDLL) -> None:
    sender = Sender(cc, cwnd=10)
    sender.timeout()
    sender.ack(1, 1000 * MS, fill=False)
    sender.undo()
    assert (sender.tcp.snd_cwnd, sender.st.phase) == (10, NONE)


def test_a_recovery_that_is_undone_goes_back_to_the_old_window(cc: ctypes.CDLL) -> None:
    sender = settled(cc)
    sender.tcp.prior_cwnd, sender.tcp.snd_cwnd = 20, 10
    sender.set_state(RECOVERY)
    assert cc.t_bcr_plus_undo_cwnd(ctypes.byref(sender.st), ctypes.byref(sender.tcp)) == 20


def test_a_loss_ends_the_following(cc: ctypes.CDLL) -> None:
    sender = settled(cc)
    sender.spike()
    sender.set_state(RECOVERY)
    sender.ack(1, 20 * MS, 70_000)
    assert sender.st.phase == NONE


class Bcr(ctypes.Structure):
    """struct bcr."""

    _fields_ = [
        ("erto", Erto),
        ("ack_ns", c_uint64),
        *((n, c_uint32) for n in ("delivered", "bw_est", "rtt_base_us", "restored")),
    ]
    bw_est: int


def test_bcr_as_written_restores_to_the_estimate_of_that_moment(cc: ctypes.CDLL) -> None:
    assert cc.size_of_bcr() == ctypes.sizeof(Bcr)
    cc.t_bcr_pkts_acked.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, c_uint64]
    st, tcp, now_ns, rate = Bcr(), make_tcp(20, ssthresh=20), 1 * MS, 0.0
    cc.t_bcr_init(ctypes.byref(st), ctypes.byref(tcp))

    def ack(after_ns: int, rtt_us: int) -> None:
        nonlocal now_ns, rate
        now_ns += after_ns
        tcp.delivered += 1
        tcp.snd_una += MSS
        cc.t_bcr_pkts_acked(ctypes.byref(st), ctypes.byref(tcp), rtt_us, now_ns)

    ack(0, 60_000)
    for gap_ms in (5, 5, 10):  # a sample each ACK
        ack(gap_ms * MS, 60_000)
        rate = rate / 5 + 4 * (1000 / gap_ms) / 5 if rate else 1000 / gap_ms
    assert st.bw_est == pytest.approx(rate * 256, abs=1)
    tcp.prior_cwnd, tcp.ca_state = 20, LOSS
    ack(5000 * MS, -1)  # the spike, and the two ACKs that judge it 3 ms apart
    ack(3 * MS, -1)
    rate = (rate / 5 + 4 * 0.2 / 5) / 5 + 4 * (1000 / 3) / 5
    window = round(rate * 0.06)
    assert cc.t_bcr_undo_cwnd(ctypes.byref(st), ctypes.byref(tcp)) == window == 16
    tcp.snd_ssthresh = 1000
    cc.t_bcr_set_state(ctypes.byref(st), ctypes.byref(tcp), OPEN)
    assert tcp.snd_ssthresh == window
    tcp.prior_cwnd = 7  # below: as it was
    assert cc.t_bcr_undo_cwnd(ctypes.byref(st), ctypes.byref(tcp)) == 7
