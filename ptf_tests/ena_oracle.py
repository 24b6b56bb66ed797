# SPDX-License-Identifier: Apache-2.0
"""What ena.p4 should know and say of one flow: the rules of docs/schemes.md in a list, without rings and searches."""

from __future__ import annotations

from dataclasses import dataclass, field

NAMES = 32
LOOKS = 8
"""So many names an ACK can look at, lowest first: what is to be forgotten goes, the next is the ACK's."""
MODULO = 1 << 32
HALF = 1 << 31


@dataclass
class Flow:
    """A flow whose receiver has said `ack`; numbers count from anywhere, modulo 2^32."""

    ack: int
    window_bytes: int
    names: list[int] = field(default_factory=list[int])
    """Ascending from `ack`, those that the newest ACK covers among them until they are forgotten."""
    closed: set[int] = field(default_factory=set[int])

    def _order(self, seq: int) -> int:
        return (seq - self.ack + HALF) % MODULO

    def corrupted(self, seq: int) -> bool:
        """A corrupted segment came: whether it is answered."""
        if (seq - self.ack) % MODULO >= self.window_bytes:
            return False
        self.closed.discard(seq)
        if seq not in self.names:
            del self.names[NAMES - 1 :]
            self.names = sorted([*self.names, seq], key=self._order)
        return True

    def good(self, seq: int) -> None:
        """A good segment came."""
        if seq in self.names:
            self.closed.add(seq)

    def record_ack(self, ack: int) -> int | None:
        """Record an ACK of the receiver that passes. Returns the name that it gets."""
        if (ack - self.ack) % MODULO < HALF:
            self.ack = ack
        for _ in range(LOOKS):
            if not self.names:
                return None
            if self._order(self.names[0]) >= HALF and self.names[0] not in self.closed:
                return self.names[0]
            self.closed.discard(self.names.pop(0))
        return None
