# SPDX-License-Identifier: Apache-2.0
"""What gfr.p4 should decide: the papers' equations in integers and fractions, not the program's fixed point.

Symbols are those of Kim & Lee: QT cells in the buffer, Q_i cells of the VC, both without the frame; c its cells;
L = LBO, H = HBO.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction

LINE_BITS_PER_CELL = 424
PAYLOAD_BYTES_PER_CELL = 48
ETHERNET_HEADER_BYTES = 14
AAL5_TRAILER_BYTES = 8
K_S = 0.5
"""Time constant of the time-weighted form of eq. (2)."""
BURST_S = 64e-6
"""The paper's form, its least period: T between arrivals but for what comes closer than this."""


class Verdict(IntEnum):
    """What becomes of a frame; the low 4 bits of an index of the counter `vc_verdicts`."""

    QMAX = 0
    CASE_1 = 1
    CASE_2 = 2
    CASE_3 = 3
    CASE_4 = 4
    CASE_5 = 5
    CASE_6 = 6
    BELOW_LBO = 7
    BELOW_HBO = 8
    HBO = 9
    THRESHOLD = 10
    CHANCE = 11
    PCR = 12
    MFS = 13
    BETWEEN = 14

    @property
    def accepted(self) -> bool:
        return self in (Verdict.CASE_4, Verdict.BELOW_LBO, Verdict.BELOW_HBO, Verdict.BETWEEN)


def cells(frame_bytes: int) -> int:
    """The IP packet and the AAL5 trailer in 48-byte cells, at least one."""
    return max(1, math.ceil(Fraction(frame_bytes - ETHERNET_HEADER_BYTES + AAL5_TRAILER_BYTES, PAYLOAD_BYTES_PER_CELL)))


@dataclass(frozen=True)
class Port:
    """The buffer of an egress port; hbo without meaning where a scheme has none."""

    qmax: int
    lbo: int = 0
    hbo: int = 0


@dataclass(frozen=True)
class Moment:
    """What a frame of `c` cells with mark `clp` meets."""

    qt: int
    qi: int
    c: int
    clp: int

    def fits(self, port: Port) -> bool:
        return self.qt + self.c <= port.qmax


def exceeds_threshold(port: Port, moment: Moment, n: int) -> bool:
    """Eq. (1): Q_i > Th = min(max(QT, LBO), HBO) / N."""
    return moment.qi > Fraction(min(max(moment.qt, port.lbo), port.hbo), n)


def proposed(port: Port, moment: Moment, n: int, fast: bool) -> Verdict:
    """The decision table; `fast` is r_i > w_i."""
    if not moment.fits(port):
        return Verdict.QMAX
    marked, above_share = moment.clp == 1, exceeds_threshold(port, moment, n)
    if moment.qt >= port.hbo:
        return Verdict.CASE_3 if marked else Verdict.CASE_6
    if moment.qt >= port.lbo:
        if marked:
            return Verdict.CASE_2 if above_share else Verdict.BELOW_HBO
        return Verdict.CASE_5 if above_share and fast else Verdict.BELOW_HBO
    if marked:
        return Verdict.CASE_1 if above_share and fast else Verdict.BELOW_LBO
    return Verdict.CASE_4


def _accepted(moment: Moment, between: bool) -> Verdict:
    if between:
        return Verdict.BETWEEN
    return Verdict.BELOW_LBO if moment.clp == 1 else Verdict.CASE_4


def drop_tail(port: Port, moment: Moment) -> Verdict:
    return Verdict.BETWEEN if moment.fits(port) else Verdict.QMAX


def double_epd(port: Port, moment: Moment) -> Verdict:
    """CLP 1 dropped when QT > LBO, all when QT > HBO."""
    if not moment.fits(port):
        return Verdict.QMAX
    if moment.qt > port.hbo:
        return Verdict.HBO
    if moment.clp == 1 and moment.qt > port.lbo:
        return Verdict.THRESHOLD
    return _accepted(moment, moment.qt > port.lbo)


def pervc_threshold(port: Port, moment: Moment, threshold: int) -> Verdict:
    """CLP 1 dropped when QT > LBO and Q_i > T_i, all when QT > HBO."""
    if not moment.fits(port):
        return Verdict.QMAX
    if moment.qt > port.hbo:
        return Verdict.HBO
    if moment.clp == 1 and moment.qt > port.lbo and moment.qi > threshold:
        return Verdict.THRESHOLD
    return _accepted(moment, moment.qt > port.lbo)


def wfba_sides(port: Port, moment: Moment, share: Fraction, z: Fraction) -> tuple[Fraction, Fraction]:
    """(Q_i W / (QT w_i), Z (1 + (QMAX - QT) / (QT - LBO))) for QT > LBO; `share` is w_i/W."""
    left = Fraction(moment.qi) / (moment.qt * share)
    return left, z * (1 + Fraction(port.qmax - moment.qt, moment.qt - port.lbo))


def wfba(port: Port, moment: Moment, share: Fraction, z: Fraction) -> Verdict:
    """CLP 1 dropped when QT > LBO and Q_i W / (QT w_i) > Z (1 + (QMAX - QT) / (QT - LBO))."""
    if not moment.fits(port):
        return Verdict.QMAX
    if moment.clp == 1 and moment.qt > port.lbo:
        left, right = wfba_sides(port, moment, share, z)
        if left > right:
            return Verdict.THRESHOLD
    return _accepted(moment, moment.qt > port.lbo)


def dfba_chance(port: Port, moment: Moment, share: Fraction, z: Fraction, alpha: Fraction) -> Fraction:
    """The probability with which a CLP 0 frame is dropped between L and H: 0 for a VC within its share; at most 1."""
    excess = moment.qi - moment.qt * share
    if excess <= 0:
        return Fraction(0)
    of_share = excess / (moment.qt * (1 - share))
    of_buffer = Fraction(moment.qt - port.lbo, port.hbo - port.lbo)
    return min(Fraction(1), z * (alpha * of_share + (1 - alpha) * of_buffer))


def dfba(port: Port, moment: Moment, unlucky: bool) -> Verdict:
    """98-0405: accept below L, between L and H drop CLP 1 and what is `unlucky`, above H drop all."""
    if not moment.fits(port):
        return Verdict.QMAX
    if moment.qt > port.hbo:
        return Verdict.HBO
    if moment.qt >= port.lbo:
        if moment.clp == 1:
            return Verdict.THRESHOLD
        if unlucky:
            return Verdict.CHANCE
    return _accepted(moment, moment.qt >= port.lbo)


# ---- eq. (2) -----------------------------------------------------------------------------------------------------


def line_bits(frame_bytes: int) -> int:
    """l of eq. (2)."""
    return cells(frame_bytes) * LINE_BITS_PER_CELL


def rate_by_time(arrivals: Iterable[tuple[float, int]], rate_bps: float = 0.0, last_s: float = 0.0) -> float:
    """r_i after frames of (time in s, bits on the line): r <- e^(-dt/K) r + (1 - e^(-dt/K)) l/dt."""
    for now_s, bits in arrivals:
        dt = now_s - last_s
        gain = -math.expm1(-dt / K_S) / dt if dt > 0 else 1 / K_S
        rate_bps = math.exp(-dt / K_S) * rate_bps + bits * gain
        last_s = now_s
    return rate_bps


def rate_by_alpha(
    arrivals: Iterable[tuple[float, int]],
    alpha: float,
    period_s: float = BURST_S,
    rate_bps: float = 0.0,
    last_s: float = 0.0,
) -> float:
    """r_i after the same by the paper's r <- (1 - alpha) l/T + alpha r; what comes within a period after the last frame
    that counted counts with the next."""
    waiting = 0
    for now_s, bits in arrivals:
        waiting += bits
        if now_s - last_s >= period_s:
            rate_bps = (1 - alpha) * waiting / (now_s - last_s) + alpha * rate_bps
            last_s, waiting = now_s, 0
    return rate_bps
