# SPDX-License-Identifier: Apache-2.0
"""FQ-CoDel as RFC 8290 section 4 words it: lists of new and old queues, credits, the fattest queue's head; CoDel of each queue is `codel_oracle`'s."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from codel_oracle import Codel, Waiting


@dataclass
class FqCodel:
    """The queues of a port. Times are in us."""

    queues: list[Codel]
    quantum: int = 1_514
    limit: int = 10_240
    "Packets in all queues together."
    new: deque[int] = field(default_factory=deque[int])
    old: deque[int] = field(default_factory=deque[int])
    credits: dict[int, int] = field(default_factory=dict[int, int])

    def enqueue(self, queue: int, packet: Waiting) -> Waiting | None:
        """Section 4.1; the packet that is dropped from a head."""
        self.queues[queue].queue.append(packet)
        if queue not in self.new and queue not in self.old:
            self.new.append(queue)
            self.credits[queue] = self.quantum
        if sum(len(one.queue) for one in self.queues) <= self.limit:
            return None
        return max(self.queues, key=lambda one: one.waiting_bytes).queue.popleft()

    def dequeue(self, now: int) -> Waiting | None:
        """Section 4.2."""
        while here := self.new or self.old:
            queue = here[0]
            if self.credits[queue] <= 0:  # "already dequeued at least a quantum of bytes"
                self.credits[queue] += self.quantum
                self.old.append(here.popleft())
                continue
            packet = self.queues[queue].deque(now)
            if packet is not None:
                self.credits[queue] -= packet.length
                return packet
            here.popleft()
            if here is self.new:
                self.old.append(queue)
        return None
