# SPDX-License-Identifier: Apache-2.0
"""DualPI2 as RFC 9332 Appendix A writes it, with what it adds for overload (A.2), but for the scheduler. Times in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

TH_LEN = 1


@dataclass
class DualPi2:
    """The RFC's variables; `count` is q.count of each queue, by whether it is the L4S queue."""

    target: float = 0.015
    rtt_max: float = 0.1
    k: float = 2.0
    min_th: float = 0.0008
    range: float = 0.0004
    p: float = 0.0
    prevq: float = 0.0
    count: dict[bool, float] = field(default_factory=lambda: {True: 0.0, False: 0.0})

    @property
    def t_update(self) -> float:
        return min(self.target, self.rtt_max / 3)

    @property
    def overload(self) -> bool:
        """p_CL is at p_Lmax."""
        return self.k * self.p >= 1

    def update(self, curq: float) -> None:
        """One Tupdate is over: dualpi2_update()."""
        alpha, beta = 0.1 * self.t_update / self.rtt_max**2, 0.3 / self.rtt_max
        self.p += alpha * (curq - self.target) + beta * (curq - self.prevq)
        self.p = min(max(self.p, 0.0), 1.0)
        self.prevq = curq

    def laqm(self, qdelay: float) -> float:
        """The native probability of the L4S queue."""
        return min(max((qdelay - self.min_th) / self.range, 0.0), 1.0)

    def likelihood(self, l4s: bool, qdelay: float, behind: int) -> float:
        """What recur() is asked for the packet that dualpi2_dequeue() took out, which waited `qdelay`; `behind` packets wait on."""
        if not l4s or self.overload:
            return self.p**2
        return max(self.laqm(qdelay) if behind > TH_LEN else 0.0, self.k * self.p)

    def recur(self, l4s: bool, likelihood: float) -> bool:
        """Whether the packet is chosen."""
        self.count[l4s] += likelihood
        if self.count[l4s] > 1:
            self.count[l4s] -= 1
            return True
        return False
