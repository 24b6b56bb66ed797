# SPDX-License-Identifier: Apache-2.0
"""AFQ as section 3 of its paper has it, with exact counts in the sketch's place. Sizes in bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass
class Afq:
    """`bids` are the flows' counts; round r waits in `queues[r % len(queues)]`: (name, size, round)."""

    bytes_per_round: int = 2048
    queue_count: int = 8
    current_round: int = 0
    bids: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    queues: list[deque[tuple[Hashable, int, int]]] = field(init=False)

    def __post_init__(self) -> None:
        self.queues = [deque() for _ in range(self.queue_count)]

    def enqueue(self, flow: Hashable, size: int, name: Hashable = None) -> bool:
        """A packet of a flow came; whether it may wait."""
        bid = max(self.bids.get(flow, 0), self.current_round * self.bytes_per_round) + size
        number = bid // self.bytes_per_round
        if number - self.current_round >= self.queue_count:
            return False
        self.bids[flow] = bid
        self.queues[number % self.queue_count].append((name, size, number))
        return True

    def dequeue(self) -> tuple[Hashable, int] | None:
        """(name, size) of the next packet; the round goes on while its queue is empty and others are not."""
        if not any(self.queues):
            return None
        while not self.queues[self.current_round % self.queue_count]:
            self.current_round += 1
        name, size, number = self.queues[self.current_round % self.queue_count].popleft()
        assert number == self.current_round
        return name, size
