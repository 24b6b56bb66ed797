# SPDX-License-Identifier: Apache-2.0
"""BIC's search for the window of the last loss, round trip by round trip."""

from __future__ import annotations

import ctypes
from itertools import pairwise

import pytest
from cc_library import make_tcp
from cc_sender import Sender, compile_sender

LOSS = 4


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_sender("bic_linux", tmp_path_factory.mktemp("cc"))


def after_a_loss(library: ctypes.CDLL, cwnd: int) -> Sender:
    """A sender that lost at `cwnd` packets and stands at its ssthresh."""
    sender = Sender(library, "bic_linux", make_tcp(cwnd, cwnd))
    lose(sender)
    return sender


def lose(sender: Sender) -> None:
    sender.tcp.snd_ssthresh = sender.ssthresh()
    sender.tcp.snd_cwnd = sender.tcp.snd_ssthresh
    sender.tcp.snd_cwnd_cnt = 0


def round_trips(sender: Sender, count: int) -> list[int]:
    """The window after each of `count` round trips of one ACK a packet."""
    seen: list[int] = []
    for _ in range(count):
        for _ in range(sender.tcp.snd_cwnd):
            sender.cong_avoid(1)
        seen.append(sender.tcp.snd_cwnd)
    return seen


@pytest.mark.parametrize(("cwnd", "left"), [(1000, 799), (100, 79), (15, 11), (14, 7), (3, 2)])
def test_a_loss_leaves_eight_tenths_and_half_of_a_small_window(library: ctypes.CDLL, cwnd: int, left: int) -> None:
    assert after_a_loss(library, cwnd).tcp.snd_ssthresh == left


def test_it_goes_a_quarter_of_the_way_and_16_packets_at_most(library: ctypes.CDLL) -> None:
    far = after_a_loss(library, 1000)  # 201 packets to go
    assert round_trips(far, 1)[0] == pytest.approx(799 + 16, abs=1)
    near = after_a_loss(library, 200)  # 41 to go: 10 a round trip, and fewer on the way
    assert round_trips(near, 1)[0] == pytest.approx(159 + 9, abs=1)


def test_it_is_level_near_the_window_of_the_loss_and_leaves_it_faster_and_faster(library: ctypes.CDLL) -> None:
    sender = after_a_loss(library, 400)
    windows = round_trips(sender, 120)
    steps = [after - before for before, after in pairwise(windows)]
    level = [step for window, step in zip(windows, steps, strict=False) if 393 < window < 404]
    assert max(level) <= 1
    assert sum(level) / len(level) == pytest.approx(0.2, abs=0.1)  # 4/20 of a packet
    assert max(steps[-10:]) in {16, 17}, "far beyond it grows by 16 a round trip"


def test_a_second_loss_below_the_first_asks_for_less(library: ctypes.CDLL) -> None:
    sender = after_a_loss(library, 1000)
    lose(sender)  # at 799, below 1000: W_max is 0.9 of 799, not 799
    windows = round_trips(sender, 60)
    level = max(set(windows), key=windows.count)
    assert 711 <= level <= 723, "most round trips are near 0.9 of 799"


def test_a_timeout_forgets_the_path(library: ctypes.CDLL) -> None:
    sender = after_a_loss(library, 1000)
    sender.set_state(LOSS)
    before = sender.tcp.snd_cwnd
    assert round_trips(sender, 1)[0] - before >= before // 20, "a packet for 20 ACKs at least, as before the first loss"


def test_up_to_14_packets_it_is_reno(library: ctypes.CDLL) -> None:
    sender = Sender(library, "bic_linux", make_tcp(10, 5))
    assert round_trips(sender, 4) == [11, 12, 13, 14]
