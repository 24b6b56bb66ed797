# SPDX-License-Identifier: Apache-2.0
"""What sp_pifo.p4, aifo.p4 and packs.p4 should decide: the papers' algorithms as they are printed, packet by packet, and an ideal PIFO.

An oracle is a queue: `arrive(rank)` says whether the packet is admitted, `leave()` gives the rank of the next one, `inverted(rank)` whether a
smaller one waits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from fractions import Fraction


class Queue(ABC):
    """What waits at a port."""

    @abstractmethod
    def arrive(self, rank: int) -> bool:
        """A packet comes; whether it is admitted."""

    @abstractmethod
    def leave(self) -> int | None:
        """The next packet's rank; None: nothing waits."""

    @abstractmethod
    def waiting(self) -> list[int]:
        """The ranks that wait."""

    def inverted(self, rank: int) -> bool:
        """Whether a packet of this rank, which just left, left before a smaller one."""
        return any(one < rank for one in self.waiting())


class Strict(Queue):
    """Strict-priority queues with room for `limit` packets each; 0 is served first."""

    def __init__(self, queues: int, limit: int) -> None:
        self.queues: list[deque[int]] = [deque() for _ in range(queues)]
        self.limit = limit

    def leave(self) -> int | None:
        return next((queue.popleft() for queue in self.queues if queue), None)

    def waiting(self) -> list[int]:
        return [rank for queue in self.queues for rank in queue]


class SpPifo(Strict):
    """Algorithm 1 of SP-PIFO (NSDI 2020): `queues` strict-priority queues with room for `limit` packets each; 0 is served first."""

    def __init__(self, queues: int, limit: int) -> None:
        super().__init__(queues, limit)
        self.bounds = [0] * queues

    def arrive(self, rank: int) -> bool:
        fits = [index for index, bound in enumerate(self.bounds) if rank >= bound]
        index = fits[-1] if fits else 0  # the bottom-up scan ends at the first queue at the latest
        if rank >= self.bounds[index]:
            self.bounds[index] = rank
        else:
            cost = self.bounds[0] - rank
            self.bounds = [bound - cost for bound in self.bounds]
        if len(self.queues[index]) == self.limit:
            return False
        self.queues[index].append(rank)
        return True


class Window:
    """So many ranks, of each `sample`th packet."""

    def __init__(self, size: int, sample: int) -> None:
        self.ranks: deque[int] = deque(maxlen=size)
        self.sample, self.skipped = sample, 0

    def quantile(self, rank: int) -> Fraction:
        """The share of smaller ranks, before this one comes in."""
        found = Fraction(sum(one < rank for one in self.ranks), max(len(self.ranks), 1))
        self.skipped += 1
        if self.skipped == self.sample or not self.ranks:
            self.ranks.append(rank)
            self.skipped = 0
        return found


class Packs(Strict):
    """Algorithm 1 of PACKS (NSDI 2025): burst parameter k, a window of so many ranks, of each `sample`th packet."""

    def __init__(self, queues: int, limit: int, k: Fraction, window: int, sample: int = 1) -> None:
        super().__init__(queues, limit)
        self.k = k
        self.window = Window(window, sample)
        self.by_rank = 0
        """Packets that were refused for their rank, and not because all queues were full."""

    def arrive(self, rank: int) -> bool:
        quantile = self.window.quantile(rank)
        free = 0
        for queue in self.queues:
            free += self.limit - len(queue)
            if len(queue) < self.limit and quantile <= Fraction(free, self.limit * len(self.queues)) / (1 - self.k):
                queue.append(rank)
                return True
        self.by_rank += free > 0
        return False


class Aifo(Queue):
    """Algorithm 1 of AIFO (SIGCOMM 2021): capacity C, burst parameter k, a window of so many ranks, of each `sample`th packet."""

    def __init__(self, capacity: int, k: Fraction, window: int, sample: int = 1) -> None:
        self.queue: deque[int] = deque()
        self.capacity, self.k = capacity, k
        self.window = Window(window, sample)
        self.by_rank = 0
        """Packets that were refused for their rank, and not because the queue was full."""

    def arrive(self, rank: int) -> bool:
        length = len(self.queue)
        quantile = self.window.quantile(rank)
        free = Fraction(self.capacity - length, self.capacity)
        urgent = length <= self.k * self.capacity or quantile <= free / (1 - self.k)
        if length == self.capacity:
            return False
        self.by_rank += not urgent
        if urgent:
            self.queue.append(rank)
        return urgent

    def leave(self) -> int | None:
        return self.queue.popleft() if self.queue else None

    def waiting(self) -> list[int]:
        return list(self.queue)
