# SPDX-License-Identifier: Apache-2.0
"""Equations (5) to (9) of the Qthresh paper: how many packets of one flow may wait in the queue.

Symbols: BW drain rate of the busy queue in bit/s, L_D mean packet length in bytes, T_D time to send one packet,
T_res time from a data packet's departure (its last bit) to the return of its ACK, N_C number of connections.

Convention: a threshold counts packets that **wait**. The packet on the line does not count, and a packet is
refused when the counter, with the arriving packet counted in, exceeds the threshold: so at most Qthresh
packets of a flow wait.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

DEFAULT_K = 1.95
"""The constant of proportionality of (9), which the paper never gives; its own values are 0.6 to 2.4 times W_best.

With measured T_res (all delay behind the queue, access links included) the paper's four links get 5, 5, 6 and 8
packets. Over fixed thresholds of 3 to 8, real Reno and Vegas senders share best at 3 or 5 to 6, 5 to 6, 6, and
6 to 8 packets (docs/results/threshold.md has the curve); 1.95 is in the middle of the range of k that meets all four, so no
rounding boundary is nearer than 7 % of T_res.
"""

QTHRESH_MIN_PACKETS = 2
"""Below two waiting packets a flow loses throughput on every link that was measured."""

QTHRESH_MAX_PACKETS = 65_535
"""The width of the threshold in the data plane. In practice the port's capacity is the smaller bound."""


def round_half_up(value: float) -> int:
    """To the nearest whole packet, halves upwards (Python's own `round` goes to even, which would not be monotonic)."""
    return math.floor(value + 0.5)


def bounded_capacity(capacity_packets: int, weight: float) -> int:
    """The largest threshold whose product with `weight` still fits the port's queue (0: not known); at least the minimum."""
    limit = capacity_packets if capacity_packets > 0 else QTHRESH_MAX_PACKETS
    return max(QTHRESH_MIN_PACKETS, min(int(limit / max(weight, 1.0)), QTHRESH_MAX_PACKETS))


@dataclass(frozen=True)
class QthreshPlan:
    """What (5) to (9) say about one egress port; times in seconds, windows and thresholds in packets.

    Rate and packet length must be above 0, the number of connections at least 1, the capacity at least 2.
    """

    rate_bps: float
    "BW."
    t_res_s: float
    "T_res, from the departure of the last bit."
    packet_bytes: float
    "L_D."
    connections: float
    "N_C."
    k: float = DEFAULT_K
    weight: float = 1.0
    "w_i."
    capacity_packets: int = QTHRESH_MAX_PACKETS
    "Upper bound of the threshold."

    @property
    def t_d_s(self) -> float:
        """(5) T_D = 8·L_D / BW."""
        return 8.0 * self.packet_bytes / self.rate_bps

    @property
    def path_packets(self) -> float:
        """T_res·BW / (8·L_D) = T_res / T_D: packets that the path contains, the common part of (7) and (8)."""
        return self.t_res_s / self.t_d_s

    @property
    def w_best_packets(self) -> float:
        """(8) W_best = T_res·BW/(8·L_D·N_C) + 2, not rounded."""
        return self.path_packets / self.connections + 2.0

    @property
    def qthresh_exact_packets(self) -> float:
        """(9) Qthresh_i = w_i · k · W_best within [2, capacity], not rounded."""
        wanted = self.k * self.weight * self.w_best_packets
        return min(max(wanted, float(QTHRESH_MIN_PACKETS)), float(self.capacity_packets))

    @property
    def qthresh_packets(self) -> int:
        """(9) in whole packets: what the switch gets."""
        return round_half_up(self.qthresh_exact_packets)
