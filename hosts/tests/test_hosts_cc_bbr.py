# SPDX-License-Identifier: Apache-2.0
"""BBR's model and its states, over a path of one bottleneck that the test plays, round trip by round trip."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable

import pytest
from cc_library import LOSS, OPEN, RECOVERY, TX_START, make_tcp
from cc_sender import UNPACED, Sender, compile_sender

MSS = 1000
RTT_US = 50_000
BW_PACKETS = 1000
"""A second: a BDP of 50 packets."""
BDP = BW_PACKETS * RTT_US // 1_000_000


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_sender("bbr", tmp_path_factory.mktemp("cc"))


class Path:
    """A queue at 1000 packets a second with 50 ms around it; the sender paces, its window limits."""

    def __init__(self, library: ctypes.CDLL, handshake_us: int = RTT_US) -> None:
        tcp = make_tcp(10)
        tcp.mss_bytes, tcp.now_ns, tcp.srtt_us, tcp.pacing_rate = MSS, 1_000_000_000, handshake_us, UNPACED
        self.sender = Sender(library, "bbr", tcp)
        self.queue = list[tuple[int, int, int, int]]()
        "When the ACK comes, when it was sent, `delivered` then and since when; µs."
        self.delivered_us = self.line_us = self.next_us = 1_000_000

    def run(self, seconds: float, each: Callable[[], None] = lambda: None) -> None:
        tcp, end_us = self.sender.tcp, self.now_us + round(seconds * 1e6)
        while self.now_us < end_us:
            may_send = len(self.queue) < tcp.snd_cwnd
            send_us = max(self.next_us, self.now_us)
            if may_send and (not self.queue or send_us <= self.queue[0][0]):
                self.send(send_us)
            else:
                self.acknowledge()
                each()

    @property
    def now_us(self) -> int:
        return int(self.sender.tcp.now_ns // 1000)

    def send(self, at_us: int) -> None:
        tcp = self.sender.tcp
        if not self.queue:
            self.delivered_us = at_us
        self.line_us = max(self.line_us, at_us) + 1_000_000 // BW_PACKETS
        self.queue.append((self.line_us + RTT_US - 1_000_000 // BW_PACKETS, at_us, tcp.delivered, self.delivered_us))
        self.next_us = at_us + MSS * 1_000_000 // tcp.pacing_rate
        tcp.now_ns = at_us * 1000

    def acknowledge(self) -> None:
        tcp, rate = self.sender.tcp, self.sender.tcp.rate
        rate.prior_in_flight = len(self.queue)
        at_us, sent_us, delivered, since_us = self.queue.pop(0)
        self.delivered_us = at_us
        tcp.now_ns = at_us * 1000
        tcp.delivered += 1
        tcp.in_flight = len(self.queue)
        tcp.rtt_us = at_us - sent_us
        rate.delivered, rate.prior_delivered = tcp.delivered - delivered, delivered
        rate.interval_us = at_us - since_us
        rate.acked_sacked = 1
        self.sender.cong_control()


@pytest.fixture
def path(library: ctypes.CDLL) -> Path:
    return Path(library)


def test_it_starts_at_the_window_over_the_rtt_times_the_gain(path: Path) -> None:
    assert path.sender.tcp.pacing_rate == pytest.approx(10 * MSS / 0.05 * 2.885 * 0.99, rel=0.01)
    assert path.sender.tcp.snd_ssthresh == 0x7FFFFFFF


def test_it_finds_the_bandwidth_and_holds_two_bdp(path: Path) -> None:
    path.run(3)
    windows = list[int]()
    rates = list[float]()

    def note() -> None:
        windows.append(path.sender.tcp.snd_cwnd)
        rates.append(path.sender.tcp.pacing_rate / MSS / BW_PACKETS / 0.99)

    path.run(4, note)
    gains = {round(20 * rate) / 20 for rate in rates}
    assert gains == {0.75, 1.0, 1.25}, "5/4 and 3/4 around the bandwidth"
    quanta = 3 * 2
    assert 2 * BDP + quanta <= min(windows)
    assert max(windows) <= 2 * BDP + quanta + 2 + 8, "two more while it probes, and what comes in clumps"


def test_the_handshakes_rtt_is_its_first_smallest(library: ctypes.CDLL) -> None:
    """The draft's BBRInit() and Linux's bbr_init()."""
    path = Path(library, RTT_US // 2)
    path.run(3)
    windows = list[int]()
    path.run(4, lambda: windows.append(path.sender.tcp.snd_cwnd))
    assert max(windows) <= BDP + 3 * 2 + 2 + 8, "two BDP of 25 ms"


def test_the_queue_of_start_up_is_drained(path: Path) -> None:
    path.run(3)
    lengths = list[int]()
    path.run(4, lambda: lengths.append(len(path.queue)))
    assert BDP <= sum(lengths) / len(lengths) <= 1.25 * BDP


def test_it_looks_for_the_rtt_anew_after_ten_seconds(path: Path) -> None:
    seen = list[tuple[float, int]]()
    path.run(24, lambda: seen.append((path.now_us / 1e6, path.sender.tcp.snd_cwnd)))
    low = [t for t, cwnd in seen if cwnd == 4]
    begins = [t for earlier, t in itertools.pairwise([0.0, *low]) if t - earlier > 1]
    assert len(begins) == 2
    assert begins[1] - begins[0] == pytest.approx(10.4, abs=0.5)
    stays = [t for t in low if t < begins[0] + 1]
    assert stays[-1] - stays[0] == pytest.approx(0.2 + 2 * RTT_US / 1e6, abs=0.11)
    assert seen[-1][1] >= 2 * BDP


def test_probe_rtt_gives_the_window_of_the_last_recovery_back_where_it_was_larger(path: Path) -> None:
    """Linux's bbr_save_cwnd() and the draft's BBRSaveCwnd() come when the mode is PROBE_RTT already."""
    path.run(3)
    path.sender.ssthresh()
    seen = list[int]()

    def note() -> None:
        seen.append(path.sender.tcp.snd_cwnd)
        if path.now_us > 10_950_000 and 4 not in seen:
            path.sender.tcp.snd_cwnd = min(seen[-1], 20)

    path.run(9, note)
    assert seen[-seen[::-1].index(4) :][0] >= 2 * BDP, "at once"


def test_a_recovery_conserves_packets_and_ends_with_the_old_window(path: Path) -> None:
    path.run(3)
    sender, before = path.sender, path.sender.tcp.snd_cwnd
    assert sender.ssthresh() == sender.tcp.snd_ssthresh, "losses are no sign of congestion"
    sender.tcp.rate.losses, sender.tcp.ca_state = 3, RECOVERY
    path.acknowledge()
    assert sender.tcp.snd_cwnd == sender.tcp.in_flight + 1
    sender.tcp.rate.losses, sender.tcp.ca_state = 0, OPEN
    path.acknowledge()
    assert sender.tcp.snd_cwnd >= before


def test_after_a_timeout_the_window_of_one_packet_grows_back(path: Path) -> None:
    path.run(3)
    sender, before = path.sender, path.sender.tcp.snd_cwnd
    sender.ssthresh()
    sender.set_state(LOSS)
    sender.tcp.ca_state, sender.tcp.snd_cwnd = LOSS, 1
    path.queue.clear()
    path.run(0.3)
    sender.tcp.ca_state = OPEN
    path.acknowledge()
    assert sender.tcp.snd_cwnd >= before


def test_the_application_s_rate_is_no_bandwidth(path: Path) -> None:
    path.run(3)
    rate = path.sender.tcp.pacing_rate
    path.sender.tcp.rate.app_limited = 1
    for _ in range(2000):
        path.send(path.now_us + 10_000)
        path.acknowledge()
    assert path.sender.tcp.pacing_rate > 0.74 * rate


def test_after_idle_it_goes_on_at_the_bandwidth(path: Path) -> None:
    path.run(3)
    path.sender.tcp.app_limited = 1
    path.sender.tcp.now_ns += 2_000_000_000
    path.sender.cwnd_event(TX_START)
    assert path.sender.tcp.pacing_rate == pytest.approx(0.99 * BW_PACKETS * MSS, rel=0.03)


@pytest.mark.parametrize(("rate", "burst"), [(100_000, 1), (200_000, 2), (12_500_000, 12), (10**10, 65)])
def test_a_burst_is_a_millisecond_s(path: Path, rate: int, burst: int) -> None:
    path.sender.tcp.pacing_rate = rate
    assert path.sender.burst() == burst
