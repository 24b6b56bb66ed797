# SPDX-License-Identifier: Apache-2.0
"""Equations (5) to (9) of the Qthresh paper: how many packets of one flow may wait in the queue.

Symbols: BW drain rate of the busy queue in bit/s, L_D mean packet length in bytes, T_D time to send one packet,
T_res time from a data packet's departure (its last bit) to the return of its ACK, N_C number of connections.

Convention: a threshold counts packets that **wait**. The packet on the line does not count, and a packet is
refused when the counter, with the arriving packet counted in, exceeds the threshold: so at most Qthresh
packets of a flow wait. A data plane that counts the packet in service as well needs one more
(`counts_in_service`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairlane import ErrorCode, FairlaneError, out_of_range

DEFAULT_K = 1.95
"""The constant of proportionality of (9), which the paper never gives; its own values are 0.6 to 2.4 times W_best.

With measured T_res (all delay behind the queue, access links included) the paper's four links get 5, 5, 6 and 8
packets. Over fixed thresholds of 3 to 8, real Reno and Vegas senders share best at 3 or 5 to 6, 5 to 6, 6, and
6 to 8 packets (docs/results/qthresh-table2.md has the curve); 1.95 is in the middle of the range of k that meets all four, so no
rounding boundary is nearer than 7 % of T_res.
"""

QTHRESH_MIN_PACKETS = 2
"""Below two waiting packets a flow loses throughput on every link that was measured."""

QTHRESH_MAX_PACKETS = 65_535
"""The width of the threshold in the data plane; the port's capacity is the bound that bites."""

WEIGHT_MIN, WEIGHT_MAX = 1 / 256, 255.0
"""Weights are fixed-point numbers with 8 fractional bits in the data plane."""


def _positive(what: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise FairlaneError(ErrorCode.OUT_OF_RANGE, f"{what} {value} is out of range: it must be greater than 0")


def _not_negative(what: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise FairlaneError(ErrorCode.OUT_OF_RANGE, f"{what} {value} is out of range: it must be 0 or more")


def transmission_time_s(rate_bps: float, packet_bytes: float) -> float:
    """(5) T_D = 8·L_D / BW, in seconds. Raises OUT_OF_RANGE unless both are greater than 0."""
    _positive("rate_bps", rate_bps)
    _positive("packet_bytes", packet_bytes)
    return 8.0 * packet_bytes / rate_bps


def response_time_s(delay_s: float, t_ack_s: float = 0.0) -> float:
    """(6) T_res ≈ 2τ + T_ACK, in seconds. `t_ack_s` holds *all* delay that is not 2τ: access links and receiver."""
    _not_negative("delay_s", delay_s)
    _not_negative("t_ack_s", t_ack_s)
    return 2.0 * delay_s + t_ack_s


def packets_in_flight(rate_bps: float, t_res_s: float, packet_bytes: float) -> float:
    """T_res·BW / (8·L_D) = T_res / T_D: packets that the path holds, the common part of (7), (8)."""
    _not_negative("t_res_s", t_res_s)
    return t_res_s / transmission_time_s(rate_bps, packet_bytes)


def smallest_window(rate_bps: float, t_res_s: float, packet_bytes: float) -> int:
    """(7) the smallest whole W with W > T_res·BW/(8·L_D) + 1: one flow alone keeps the link busy."""
    return math.floor(packets_in_flight(rate_bps, t_res_s, packet_bytes) + 1.0) + 1


def best_window(rate_bps: float, t_res_s: float, packet_bytes: float, connections: float) -> float:
    """(8) W_best = T_res·BW/(8·L_D·N_C) + 2, in packets, not rounded. `connections` is 1 or more."""
    if not (math.isfinite(connections) and connections >= 1):
        raise FairlaneError(ErrorCode.OUT_OF_RANGE, f"connections {connections} is out of range: it must be 1 or more")
    return packets_in_flight(rate_bps, t_res_s, packet_bytes) / connections + 2.0


def full_window(rate_bps: float, t_res_s: float, packet_bytes: float, connections: float) -> int:
    """ceil((T_res + T_D)/(N_C·T_D)): the exact smallest window with which N_C flows together fill the link.

    (8) is one to two packets more than this.
    """
    if not (math.isfinite(connections) and connections >= 1):
        raise FairlaneError(ErrorCode.OUT_OF_RANGE, f"connections {connections} is out of range: it must be 1 or more")
    exact = (packets_in_flight(rate_bps, t_res_s, packet_bytes) + 1.0) / connections
    return max(1, math.ceil(exact - 1e-9))


def threshold(
    w_best: float,
    *,
    k: float = DEFAULT_K,
    weight: float = 1.0,
    capacity_packets: int = QTHRESH_MAX_PACKETS,
    counts_in_service: bool = False,
) -> float:
    """(9) Qthresh_i = w_i · k · W_best within [2, capacity], in packets that wait, not rounded.

    With `counts_in_service` one more, for a data plane that counts the packet on the line.
    Raises OUT_OF_RANGE unless `w_best`, `k` and `weight` are greater than 0 and the capacity is at least 2.
    """
    _positive("w_best", w_best)
    _positive("k", k)
    _positive("weight", weight)
    if capacity_packets < QTHRESH_MIN_PACKETS:
        raise out_of_range("capacity", capacity_packets, QTHRESH_MIN_PACKETS, QTHRESH_MAX_PACKETS, "packets")
    bounded = min(max(k * weight * w_best, float(QTHRESH_MIN_PACKETS)), float(capacity_packets))
    return bounded + 1.0 if counts_in_service else bounded


def round_half_up(value: float) -> int:
    """To the nearest whole packet, halves upwards (Python's own `round` goes to even, which would not be monotonic)."""
    return math.floor(value + 0.5)


@dataclass(frozen=True)
class QthreshPlan:
    """Everything that (5) to (9) say about one egress port; times in seconds, windows and thresholds in packets."""

    rate_bps: float
    "BW."
    t_res_s: float
    "T_res, from the departure of the last bit."
    packet_bytes: float
    "L_D."
    connections: float
    "N_C."
    weight: float
    k: float
    t_d_s: float
    "(5)"
    smallest_window_packets: int
    "(7), for one flow alone."
    full_window_packets: int
    "The exact smallest full window of each of N_C flows."
    w_best_packets: float
    "(8)"
    qthresh_exact_packets: float
    "(9) before rounding."
    qthresh_packets: int
    "(9), what the switch gets."


def plan(
    rate_bps: float,
    t_res_s: float,
    packet_bytes: float,
    connections: float,
    *,
    k: float = DEFAULT_K,
    weight: float = 1.0,
    capacity_packets: int = QTHRESH_MAX_PACKETS,
    counts_in_service: bool = False,
) -> QthreshPlan:
    """(5) to (9) in one go; raises OUT_OF_RANGE as the single functions do."""
    w_best = best_window(rate_bps, t_res_s, packet_bytes, connections)
    exact = threshold(
        w_best, k=k, weight=weight, capacity_packets=capacity_packets, counts_in_service=counts_in_service
    )
    return QthreshPlan(
        rate_bps=rate_bps,
        t_res_s=t_res_s,
        packet_bytes=packet_bytes,
        connections=connections,
        weight=weight,
        k=k,
        t_d_s=transmission_time_s(rate_bps, packet_bytes),
        smallest_window_packets=smallest_window(rate_bps, t_res_s, packet_bytes),
        full_window_packets=full_window(rate_bps, t_res_s, packet_bytes, connections),
        w_best_packets=w_best,
        qthresh_exact_packets=exact,
        qthresh_packets=round_half_up(exact),
    )
