# SPDX-License-Identifier: Apache-2.0
"""CoDel as RFC 8289 section 5 writes it: dodequeue(), deque(), control_law(), over a queue of (time it came, bytes, name). Times in us."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Waiting:
    """A packet in the queue."""

    came_us: int
    length: int
    name: int = 0
    ect: bool = False


@dataclass
class Codel:
    """The RFC's variables without their underscores; what it dropped and marked."""

    target: int = 5_000
    interval: int = 100_000
    maxpacket: int = 1_514
    queue: deque[Waiting] = field(default_factory=deque[Waiting])
    first_above_time: int = 0
    drop_next: int = 0
    count: int = 0
    lastcount: int = 0
    dropping: bool = False
    dropped: list[Waiting] = field(default_factory=list[Waiting])
    marked: list[Waiting] = field(default_factory=list[Waiting])

    @property
    def waiting_bytes(self) -> int:
        return sum(packet.length for packet in self.queue)

    def control_law(self, t: int) -> int:
        """Times are whole us: rounded down."""
        return t + math.isqrt(self.interval * self.interval * 2**48 // self.count) // 2**24

    def dodequeue(self, now: int) -> tuple[Waiting | None, bool]:
        """The next packet, and whether it may be dropped."""
        if not self.queue:
            self.first_above_time = 0
            return None, False
        packet = self.queue.popleft()
        if now - packet.came_us < self.target or self.waiting_bytes <= self.maxpacket:
            self.first_above_time = 0
        elif self.first_above_time == 0:
            self.first_above_time = now + self.interval
        elif now >= self.first_above_time:
            return packet, True
        return packet, False

    def deque(self, now: int) -> Waiting | None:
        """The packet that is sent now."""
        packet, ok_to_drop = self.dodequeue(now)
        if self.dropping:
            if not ok_to_drop:
                self.dropping = False
            while now >= self.drop_next and self.dropping:
                assert packet is not None
                self.count += 1
                if packet.ect:  # beyond the RFC: marked, and sent
                    self.marked.append(packet)
                    self.drop_next = self.control_law(self.drop_next)
                    break
                self.dropped.append(packet)
                packet, ok_to_drop = self.dodequeue(now)
                if not ok_to_drop:
                    self.dropping = False
                else:
                    self.drop_next = self.control_law(self.drop_next)
        elif ok_to_drop:
            assert packet is not None
            if packet.ect:
                self.marked.append(packet)
            else:
                self.dropped.append(packet)
                packet, _ = self.dodequeue(now)
            self.dropping = True
            delta = self.count - self.lastcount
            self.count = delta if delta > 1 and now - self.drop_next < 16 * self.interval else 1
            self.drop_next = self.control_law(now)
            self.lastcount = self.count
        return packet
