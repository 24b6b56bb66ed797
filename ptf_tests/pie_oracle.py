# SPDX-License-Identifier: Apache-2.0
"""PIE as RFC 8033 sections 4.1 to 4.4 write it (delay by timestamps), with sections 5.1 (ECN) and 5.5 (cap). Times in seconds."""

from __future__ import annotations

from dataclasses import dataclass

ALPHA, BETA = 0.125, 1.25
MEAN_PKTSIZE = 1024
TUNING = ((0.000001, 2048), (0.00001, 512), (0.0001, 128), (0.001, 32), (0.01, 8), (0.1, 2))


@dataclass
class Pie:
    """The RFC's variables without their underscores."""

    qdelay_ref: float = 0.015
    t_update: float = 0.015
    max_burst: float = 0.15
    drop_prob: float = 0.0
    qdelay_old: float = 0.0
    burst_allowance: float = 0.15

    def update(self, current_qdelay: float) -> None:
        """One T_UPDATE is over."""
        p = ALPHA * (current_qdelay - self.qdelay_ref) + BETA * (current_qdelay - self.qdelay_old)
        divisor = next((divisor for below, divisor in TUNING if self.drop_prob < below), 1)
        p = min(p, 0.02) if divisor == 1 else p / divisor
        self.drop_prob += p
        if current_qdelay == 0 and self.qdelay_old == 0:
            self.drop_prob *= 1 - 1 / 64
        self.drop_prob = min(max(self.drop_prob, 0.0), 1.0)
        self.burst_allowance = max(0.0, self.burst_allowance - self.t_update)
        half = self.qdelay_ref / 2
        if self.drop_prob == 0 and current_qdelay < half and self.qdelay_old < half:
            self.burst_allowance = self.max_burst
        self.qdelay_old = current_qdelay

    def chance(self, waiting_bytes: int) -> float:
        """The probability with which an arriving packet is dropped."""
        if self.burst_allowance > 1e-9 or waiting_bytes <= 2 * MEAN_PKTSIZE:
            return 0.0
        if self.qdelay_old < self.qdelay_ref / 2 and self.drop_prob < 0.2:
            return 0.0
        return self.drop_prob
