# SPDX-License-Identifier: Apache-2.0
"""RED as Floyd and Jacobson 1993 write it (Figure 2), with gentle (Floyd 2000): the average, and each packet's chance."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Red:
    """The paper's variables; s in us."""

    min_th: float = 5
    max_th: float = 15
    max_p: float = 0.1
    w_q: float = 1 / 512
    s: float = 1_000
    gentle: bool = True
    avg: float = 0.0
    count: int = -1

    def arrival(self, q: int, idle_us: float) -> float:
        """A packet meets q waiting packets, or none since idle_us: its chance p_a to be marked or dropped. `chosen` says what became of it."""
        if q:
            self.avg += self.w_q * (q - self.avg)
        else:
            self.avg *= (1 - self.w_q) ** (idle_us / self.s)
        if self.avg < self.min_th:
            self.count = -1
            return 0.0
        if self.avg < self.max_th:
            p_b = self.max_p * (self.avg - self.min_th) / (self.max_th - self.min_th)
        elif self.gentle:
            p_b = self.max_p + (1 - self.max_p) * (self.avg - self.max_th) / self.max_th
        else:
            p_b = 1.0
        if p_b >= 1:
            return 1.0
        self.count += 1
        if self.count == 0:  # the paper's first packet above min_th
            return 0.0
        # Method 2 (section 7): uniform in 1 .. 1/p_b
        rest = 1 - (self.count - 1) * p_b
        return min(1.0, p_b / rest) if rest > 0 else 1.0

    def record_choice(self, forced: bool) -> None:
        """Record that the packet was marked or dropped."""
        self.count = -1 if forced else 0
