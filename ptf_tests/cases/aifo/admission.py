# SPDX-License-Identifier: Apache-2.0
"""AIFO against the paper's algorithm: what is admitted, by what waits and by the ranks of the window."""

from __future__ import annotations

from fractions import Fraction

from base import SLOW_PORT
from rank_base import REASON_PORT_FULL, REASON_RANK, RankTest
from rank_oracle import Aifo

FROM_FIELD = 0
ONE = 1 << 16


class AifoTest(RankTest):
    """The slow port admits by rank."""

    CAPACITY = 20
    K = Fraction(1, 8)
    WINDOW = 8
    SAMPLE = 1

    def setUp(self) -> None:
        super().setUp()
        arguments = {
            "capacity_packets": self.CAPACITY,
            "k": int(self.K * ONE),
            "window": self.WINDOW,
            "sample": self.SAMPLE,
        }
        self.insert("aifo_port", {"egress_port": SLOW_PORT}, "set_aifo", rank_from=FROM_FIELD, **arguments)
        self.oracle = Aifo(self.CAPACITY, self.K, self.WINDOW, self.SAMPLE)

    def check_reasons(self) -> None:
        """Counters of ranks and of reasons."""
        self.check_counters()
        self.assertEqual(self.drops(REASON_RANK)[0], self.oracle.by_rank)
        self.assertEqual(self.drops(REASON_PORT_FULL)[0], self.lost.total() - self.oracle.by_rank)


class Headroom(AifoTest):
    """Up to k C waiting packets, any rank is admitted."""

    K = Fraction(1, 4)

    def runTest(self) -> None:
        # The first is on the wire. Each is larger than the whole window: its quantile is 1. c is 0 to 5, then 6.
        self.send_ranks([0, 1, 2, 3, 4, 5, 6], self.oracle)
        assert not self.lost
        self.send_ranks([7], self.oracle)
        assert self.lost == {7: 1}
        self.check_order(self.oracle)
        self.check_reasons()


class Smallest(AifoTest):
    """The smallest rank of the window is admitted until the queue is full, and refused then."""

    def runTest(self) -> None:
        self.send_ranks([50] * (self.CAPACITY + 3), self.oracle)
        assert self.lost == {50: 2}
        self.check_order(self.oracle)
        self.check_reasons()


class RandomRanks(AifoTest):
    """Random ranks in rounds; the window goes on from one to the next."""

    ROUNDS = 6
    BURST = 50
    SEED = 1

    def runTest(self) -> None:
        self.random_rounds(self.oracle, self.ROUNDS, self.BURST, self.SEED)
        assert self.oracle.by_rank > self.BURST // 2
        self.check_reasons()


class Sampled(RandomRanks):
    """Every third packet's rank comes into a window of 20."""

    WINDOW = 20
    SAMPLE = 3
    SEED = 2


class LargestWindow(RandomRanks):
    """A window of 32, and no headroom."""

    WINDOW = 32
    K = Fraction(0)
    SEED = 3
