# SPDX-License-Identifier: Apache-2.0
"""AFD as Pan, Breslau, Prabhakar and Shenker write it (CCR 2003), where each arrival comes into the shadow buffer; rates are bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Afd:
    """The paper's variables."""

    q_target: float
    alpha: float
    beta: float
    ceiling: float
    "Where M_fair begins and ends."
    b: int = 512
    m_fair: float = field(init=False)
    q_old: float = 0.0
    m: Counter[int] = field(default_factory=Counter[int])
    "M_i, by flow."
    shadow: Counter[tuple[int, int]] = field(default_factory=Counter[tuple[int, int]])
    "How many packets of a flow and a length the shadow buffer has; (0, 0) is an empty place."

    def __post_init__(self) -> None:
        self.m_fair = self.ceiling
        self.shadow[0, 0] = self.b

    def arrive(self, flow: int, length: int, old: tuple[int, int]) -> None:
        """A packet of a flow came, and took the place of another one. Raises ValueError where the shadow buffer has no such packet."""
        if not self.shadow[old]:
            raise ValueError(f"no packet {old} in the shadow buffer")
        self.shadow[old] -= 1
        self.shadow[flow, length] += 1
        self.m[old[0]] -= old[1]
        self.m[flow] += length

    def update(self, q: float) -> None:
        """An interval is over, and so many bytes wait."""
        self.m_fair += self.alpha * (self.q_old - self.q_target) - self.beta * (q - self.q_target)
        self.m_fair = min(max(self.m_fair, 0.0), self.ceiling)
        self.q_old = q

    def chance(self, flow: int) -> float:
        """The probability with which a packet of a flow is dropped, D_i."""
        return max(0.0, 1 - self.m_fair / self.m[flow]) if self.m[flow] else 0.0
