# SPDX-License-Identifier: Apache-2.0
"""SP-PIFO against the paper's algorithm: which queue a packet goes to, what is refused, in what order packets leave."""

from __future__ import annotations

import random
import time

from base import SERVICE_S, SLOW_PORT
from rank_base import RankTest
from rank_oracle import SpPifo

FROM_FIELD, FROM_DSCP = 0, 1


class SpPifoTest(RankTest):
    """`QUEUES` queues with room for `LIMIT` packets each at the slow port."""

    QUEUES = 8
    LIMIT = 10

    def setUp(self) -> None:
        super().setUp()
        arguments = {"rank_from": FROM_FIELD, "queues": self.QUEUES, "queue_packets": self.LIMIT}
        self.insert("sp_pifo_port", {"egress_port": SLOW_PORT}, "set_sp_pifo", **arguments)
        self.oracle = SpPifo(self.QUEUES, self.LIMIT)

    def needs_strict_priority(self) -> None:
        """Skips the test where queues do not share the line's rate."""
        self.needs_embedded("each of its queues has a rate of its own")


class PushUp(SpPifoTest):
    """A queue takes a rank that is not below its bound, and its bound becomes that rank: four packets leave by rank."""

    def runTest(self) -> None:
        self.needs_strict_priority()
        self.send_ranks([0, 50, 20, 10, 5], self.oracle)
        self.check_order(self.oracle)
        assert self.inversions.total() == 0
        self.check_counters()


class PushDown(SpPifoTest):
    """A rank below all bounds goes to the first queue, and all bounds go down by what it is below the first."""

    QUEUES = 2

    def runTest(self) -> None:
        self.needs_strict_priority()
        # Bounds: 0,30; 20,30; push-down by 15: 5,15; so 17 goes behind 30 in the last queue.
        self.send_ranks([0, 30, 20, 5, 17], self.oracle)
        assert self.oracle.bounds == [5, 17]
        self.check_order(self.oracle)
        assert +self.inversions == {20: 1, 30: 1}
        self.check_counters()


class FullQueue(SpPifoTest):
    """What finds its queue full is refused, though others have room."""

    LIMIT = 2

    def runTest(self) -> None:
        self.needs_strict_priority()
        self.send_ranks([9, 9, 9, 9, 3], self.oracle)
        assert self.lost == {9: 1}
        self.check_order(self.oracle)
        self.check_counters()


class FifoOfOneQueue(SpPifoTest):
    """One queue is a FIFO: the order of arrival, and refusals when it is full."""

    QUEUES = 1
    LIMIT = 5

    def runTest(self) -> None:
        self.send_ranks([5, 9, 1, 8, 2, 7, 3, 6], self.oracle)
        assert self.lost == {3: 1, 6: 1}
        self.check_order(self.oracle)
        self.check_counters()


class RandomRanks(SpPifoTest):
    """Random ranks in rounds, the bounds of each round those that the one before left: the oracle's order, drops and inversions."""

    ROUNDS = 8
    BURST = 60
    SEED = 1
    LIMIT = 6

    def runTest(self) -> None:
        self.needs_strict_priority()
        self.random_rounds(self.oracle, self.ROUNDS, self.BURST, self.SEED)
        assert self.lost
        assert self.inversions
        self.check_counters()


class RandomRanksThreeQueues(RandomRanks):
    """The same with a number of queues that is no power of two."""

    QUEUES = 3
    LIMIT = 15
    SEED = 2


class Refusals(SpPifoTest):
    """Random ranks with little room: each rank's refusals are the oracle's, also where each queue has a rate of its own."""

    LIMIT = 2
    SEED = 3

    def runTest(self) -> None:
        numbers = random.Random(self.SEED)
        gone = 0 if self.is_embedded else self.open_queues()
        self.send_ranks([numbers.randrange(100) for _ in range(40)], self.oracle)
        assert self.lost.total() > 10
        self.assertEqual(self.counter("refused", SLOW_PORT)[0], self.lost.total())
        self.drain(self.came.total() + gone - self.lost.total())

    def open_queues(self) -> int:
        """A packet in each queue leaves at once, and keeps the queue waiting for SERVICE_S; how many."""
        self._window_end = time.monotonic() + SERVICE_S
        for rank in range(10 * self.QUEUES, 0, -10):
            self.oracle.arrive(rank)
            self.oracle.leave()
            self.send(self.ranked(rank))
            self.assertTrue(self.receive_any(SLOW_PORT, timeout_s=1.0))
        self._already_out = self.QUEUES
        self.count_sent(self.QUEUES)
        return self.QUEUES


class MoreQueues(RandomRanks):
    """32 queues, where the port has them: the last bound is found."""

    QUEUES = 32
    LIMIT = 2
    SEED = 4

    def setUp(self) -> None:
        super().setUp()
        if self.is_embedded:
            self.ask({"op": "set_port", "port": SLOW_PORT, "queues": 32})
