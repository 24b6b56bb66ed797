# SPDX-License-Identifier: Apache-2.0
"""RED as Floyd and Jacobson 1993 write it (Figure 2), with gentle (Floyd 2000): the average, and each packet's chance; and FRED."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


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

    def average(self, q: int, idle_us: float) -> None:
        """A packet meets q waiting packets, or none since idle_us."""
        if q:
            self.avg += self.w_q * (q - self.avg)
        else:
            self.avg *= (1 - self.w_q) ** (idle_us / self.s)

    def arrival(self, q: int, idle_us: float) -> float:
        """As `average`; its chance p_a to be marked or dropped. `record_choice` hears what became of it."""
        self.average(q, idle_us)
        if self.avg < self.min_th:
            self.count = -1
            return 0.0
        if self.avg < self.max_th:
            p_b = self.max_p * (self.avg - self.min_th) / (self.max_th - self.min_th)
        elif self.gentle:
            p_b = self.max_p + (1 - self.max_p) * (self.avg - self.max_th) / self.max_th
        else:
            p_b = 1.0
        return self.chance(p_b)

    def chance(self, p_b: float) -> float:
        """A packet above min_th: p_a."""
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


@dataclass
class Fred(Red):
    """FRED (Lin and Morris, SIGCOMM 1997) with its support of many flows."""

    min_th: float = 25
    max_th: float = 50
    max_p: float = 0.02
    min_q: int = 4
    strikes: Counter[int] = field(default_factory=Counter[int])
    drawn: bool = False
    "The last packet was a matter of chance; `record_choice` hears of it when it was dropped."

    def decide(self, flow: int, waiting: Counter[int], idle_us: float) -> float:
        """A packet of a flow comes: its chance to be dropped, with what waits of each flow, or how long nothing has."""
        if not +waiting:
            self.average(0, idle_us)
        self.drawn = False
        own = waiting[flow]
        if not own:
            self.strikes[flow] = 0
        fair = max(1.0, self.avg / max(1, len(+waiting)))
        max_q = 2 if self.avg >= self.max_th else self.min_th
        if own >= max_q or (own >= fair and self.strikes[flow] > 1):
            self.strikes[flow] += 1
            return 1.0
        if self.avg < self.min_th:
            self.count = -1
        elif self.avg < self.max_th:
            self.count += 1
            if own >= max(self.min_q, fair):
                self.drawn = True
                p_b = self.max_p * (self.avg - self.min_th) / (self.max_th - self.min_th)
                rest = 1 - self.count * p_b
                return min(1.0, p_b / rest) if rest > 0 else 1.0
        return 0.0

    def sample(self, q: int) -> None:
        """A packet that met q others was taken in, or one left and q wait."""
        self.avg += self.w_q * (q - self.avg)
