# SPDX-License-Identifier: Apache-2.0
"""PACKS against the paper's algorithm: which queue a packet goes to, what is refused, in what order packets leave."""

from __future__ import annotations

from fractions import Fraction

from base import SLOW_PORT
from rank_base import REASON_PORT_FULL, REASON_RANK, RankTest
from rank_oracle import Packs

FROM_FIELD = 0
ONE = 1 << 16


class PacksTest(RankTest):
    """`QUEUES` queues with room for `LIMIT` packets each at the slow port."""

    QUEUES = 4
    LIMIT = 5
    K = Fraction(1, 8)
    WINDOW = 8
    SAMPLE = 1

    def setUp(self) -> None:
        super().setUp()
        self.needs_embedded("each of its queues has a rate of its own")
        window = {"k": int(self.K * ONE), "window": self.WINDOW, "sample": self.SAMPLE}
        arguments = {"rank_from": FROM_FIELD, "queues": self.QUEUES, "queue_packets": self.LIMIT, **window}
        self.insert("packs_port", {"egress_port": SLOW_PORT}, "set_packs", **arguments)
        self.oracle = Packs(self.QUEUES, self.LIMIT, self.K, self.WINDOW, self.SAMPLE)

    def check_reasons(self) -> None:
        """Counters of ranks and of reasons."""
        self.check_counters()
        self.assertEqual(self.drops(REASON_RANK)[0], self.oracle.by_rank)
        self.assertEqual(self.drops(REASON_PORT_FULL)[0], self.lost.total() - self.oracle.by_rank)


class FirstQueueWithRoom(PacksTest):
    """The smallest rank of the window fills one queue after the other, and is refused when all are full."""

    def runTest(self) -> None:
        self.send_ranks([50] * (self.QUEUES * self.LIMIT + 3), self.oracle)
        assert self.lost == {50: 2}
        self.check_order(self.oracle)
        self.check_reasons()


class QueueOfAQuantile(PacksTest):
    """A rank waits in the first queue whose share of the free room reaches its quantile; the largest one waits in the last."""

    K = Fraction(0)

    def runTest(self) -> None:
        # The first is on the line. 10 exceeds the window, and all queues are free; 20 and 30 do, when they are not. 5 exceeds one rank of four.
        self.send_ranks([0, 10, 20, 30, 5], self.oracle)
        assert [list(queue) for queue in self.oracle.queues] == [[5], [], [], [10]]
        assert self.lost == {20: 1, 30: 1}
        self.check_order(self.oracle)
        self.check_reasons()


class RandomRanks(PacksTest):
    """Random ranks in rounds; the window goes on from one to the next: the oracle's order, drops and inversions."""

    ROUNDS = 8
    BURST = 60
    SEED = 1

    def runTest(self) -> None:
        self.random_rounds(self.oracle, self.ROUNDS, self.BURST, self.SEED)
        assert self.oracle.by_rank > self.BURST // 2
        assert self.inversions
        self.check_reasons()


class MoreQueues(RandomRanks):
    """Eight queues; every third rank comes into a window of 32."""

    QUEUES = 8
    LIMIT = 3
    WINDOW = 32
    SAMPLE = 3
    SEED = 2
