# SPDX-License-Identifier: Apache-2.0
"""Equations (1), (3) and (4) of the GFR paper (Kim and Lee 2004), ATM's units, and the integers that `p4src/gfr.p4` gets for them.

Symbols: QT cells in the buffer, Q_i cells of VC i, N active VCs, LBO and HBO the low and high buffer occupancy in cells,
C_GFR the port's rate, MCR_i, PCR_i, MBS_i, MFS_i a VC's minimum and peak rate, longest burst and longest frame, w_i what
VC i is to get. A frame is a packet, a cell 48 bytes of it.

Every rate is in bits on an `atm` line (53 bytes a cell), as C_GFR is; what a host calls goodput is less (`ideal_goodput_bps`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fairlane import ErrorCode, FairlaneError, out_of_range
from fairlane.switch import AAL5_TRAILER_BYTES, CELL_LINE_BYTES, CELL_PAYLOAD_BYTES, ETHERNET_HEADER_BYTES

CELL_LINE_BITS = 8 * CELL_LINE_BYTES

ONE_16 = 1 << 16
"""Fixed point of `share`, `inv_share` and `inv_rest`."""
ONE_8 = 1 << 8
"""Fixed point of `z` and `alpha`."""
MAX_32 = (1 << 32) - 1
MAX_40 = (1 << 40) - 1

PEAK_TOLERANCE_S = 0.010
"""How far ahead of PCR a VC may run (cell delay variation tolerance): the jitter of a link between software processes."""

WEIGHT_MAX = 1 << 31
"""The largest scheduler weight of a port; below 2.1 Gbit/s a weight is w_i in bit/s."""


# ---- cells ---------------------------------------------------------------------------------------------------------


def cells_of_frame(frame_bytes: int) -> int:
    """Cells of an Ethernet frame without FCS: max(1, ceil((frame_bytes - 14 + 8) / 48)), as AAL5 packs its payload."""
    return max(1, -(-(frame_bytes - ETHERNET_HEADER_BYTES + AAL5_TRAILER_BYTES) // CELL_PAYLOAD_BYTES))


def cells_of_packet(ip_bytes: int) -> int:
    """Cells of an IP packet of `ip_bytes`, header included."""
    return cells_of_frame(ip_bytes + ETHERNET_HEADER_BYTES)


def line_rate_bps(frame_bytes_per_s: float, frame_bytes: int) -> float:
    """What a stream of such frames takes on the line, in bit/s: the inverse of what a meter's rate is computed by."""
    return frame_bytes_per_s / frame_bytes * cells_of_frame(frame_bytes) * CELL_LINE_BITS


# ---- (1): the threshold --------------------------------------------------------------------------------------------


def threshold_cells(qt_cells: float, lbo_cells: int, hbo_cells: int, active: int) -> float:
    """(1) Th = min(max(QT, LBO), HBO) / N, in cells, the same for every VC. Raises OUT_OF_RANGE unless N is 1 or more."""
    if active < 1:
        raise FairlaneError(ErrorCode.OUT_OF_RANGE, f"active VCs {active} is out of range: it must be 1 or more")
    return min(max(qt_cells, lbo_cells), hbo_cells) / active


def over_threshold(q_cells: int, qt_cells: int, lbo_cells: int, hbo_cells: int, active: int) -> bool:
    """over_i: N·Q_i > min(max(QT, LBO), HBO), (1) without its division, exact in integers."""
    return active * q_cells > min(max(qt_cells, lbo_cells), hbo_cells)


# ---- (3): what each VC is to get -------------------------------------------------------------------------------------


def guaranteed_shares(
    mcr_bps: Sequence[float], capacity_bps: float, weights: Sequence[float] | None = None
) -> list[float]:
    """(3) w_i = MCR_i + (C_GFR - Σ MCR_j)/N over the N active VCs, in bit/s on the line; together they are C_GFR.

    `weights`, all 1 in the paper, divide the rest as MCR_i + weight_i·(C_GFR - Σ MCR_j)/Σ weight_j. Raises OUT_OF_RANGE
    when a rate is negative, a weight not above 0, or Σ MCR above the capacity (call admission).
    """
    if not mcr_bps:
        return []
    parts = list(weights) if weights is not None else [1.0] * len(mcr_bps)
    for rate in (capacity_bps, *mcr_bps):
        if not (math.isfinite(rate) and rate >= 0):
            raise FairlaneError(ErrorCode.OUT_OF_RANGE, f"rate {rate} bit/s is out of range: it must be 0 or more")
    for weight in parts:
        if not (math.isfinite(weight) and weight > 0):
            raise FairlaneError(ErrorCode.OUT_OF_RANGE, f"weight {weight} is out of range: it must be greater than 0")
    rest = capacity_bps - math.fsum(mcr_bps)
    if rest < -1e-6 * max(1.0, capacity_bps):
        raise out_of_range("the sum of all MCR", f"{math.fsum(mcr_bps):.0f}", 0, f"{capacity_bps:.0f}", "bit/s")
    total = math.fsum(parts)
    return [mcr + weight * max(0.0, rest) / total for mcr, weight in zip(mcr_bps, parts, strict=True)]


def ideal_goodput_bps(w_bps: float, mss_bytes: int, frame_cells: int) -> float:
    """f_i = w_i·MSS/(53·c): application bits/s of a VC that gets w_i of the line in frames of c cells, MSS bytes in each.

    The paper counts 960 bytes as exactly 20 cells; a real segment of 960 bytes is an IP packet of 1000 and 21 cells
    (`cells_of_packet`).
    """
    if frame_cells < 1:
        raise FairlaneError(ErrorCode.OUT_OF_RANGE, f"cells {frame_cells} is out of range: it must be 1 or more")
    return w_bps * mss_bytes / (CELL_LINE_BYTES * frame_cells)


def jain_index(rates: Sequence[float], ideals: Sequence[float] | None = None) -> float:
    """(4) Jain index (Σ x_i)²/(N·Σ x_i²) with x_i = rate_i/f_i; `ideals` None: all the same. 1 is fair, 1/N is one for all.

    0.0 when there is no rate at all or every one is 0. Raises OUT_OF_RANGE when an ideal is not above 0.
    """
    wanted = list(ideals) if ideals is not None else [1.0] * len(rates)
    for ideal in wanted:
        if not (math.isfinite(ideal) and ideal > 0):
            raise FairlaneError(ErrorCode.OUT_OF_RANGE, f"ideal rate {ideal} is out of range: it must be above 0")
    x = [rate / ideal for rate, ideal in zip(rates, wanted, strict=True)]
    squares = math.fsum(value * value for value in x)
    return math.fsum(x) ** 2 / (len(x) * squares) if squares > 0 else 0.0


# ---- fixed point ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShareWords:
    """The parameters of `set_share` that follow from w_i and W = Σ w: each within half a unit, saturated at its width."""

    w: int
    "w_i in bit/s (40 bits)."
    weight: int
    "Of the VC's queue; proportional to w_i, at least 1."
    share: int
    "w_i/W in 1/65536."
    inv_share: int
    "W/w_i in 1/65536; saturates where w_i is less than W/65535."
    inv_rest: int
    "1/(1 - w_i/W) in 1/65536; saturates for a VC that is alone, whose occupancy is never above QT·w_i/W."


def share_words(w_bps: float, total_bps: float, capacity_bps: float) -> ShareWords:
    """What the data plane gets for a VC. Raises OUT_OF_RANGE unless 1 ≤ w_i ≤ W and W < 2^40 bit/s."""
    if not 1 <= round(w_bps) <= MAX_40:
        raise out_of_range("w_i", f"{w_bps:g}", 1, MAX_40, "bit/s")
    if not w_bps <= total_bps * (1 + 1e-9):
        raise out_of_range("w_i", f"{w_bps:g}", 1, f"{total_bps:g}", "bit/s")
    ratio = min(1.0, w_bps / total_bps)
    return ShareWords(
        w=round(w_bps),
        weight=max(1, round(w_bps * min(1.0, WEIGHT_MAX / max(1.0, capacity_bps)))),
        share=round(ratio * ONE_16),
        inv_share=min(MAX_32, round(ONE_16 / ratio)),
        inv_rest=MAX_32 if ratio >= 1.0 else min(MAX_32, round(ONE_16 / (1.0 - ratio))),
    )


def inverse_span(lbo_cells: int, hbo_cells: int) -> int:
    """`inv_span` = 2^32/(HBO - LBO), at most 2^32 - 1. Raises OUT_OF_RANGE unless LBO < HBO."""
    if not lbo_cells < hbo_cells:
        raise out_of_range("LBO", lbo_cells, 0, hbo_cells - 1, "cells")
    return min(MAX_32, round((1 << 32) / (hbo_cells - lbo_cells)))


def fixed_8(what: str, value: float, most: float = 255.0) -> int:
    """A factor in 1/256, as `z` and `alpha` are. Raises OUT_OF_RANGE outside 0..`most`."""
    if not (math.isfinite(value) and 0 <= value <= most):
        raise out_of_range(what, f"{value:g}", 0, f"{most:g}")
    return round(value * ONE_8)


# ---- F-GCRA as a two-rate three-colour meter -------------------------------------------------------------------------


@dataclass(frozen=True)
class MeterSettings:
    """A meter of RFC 2698 in bytes of frame: green within MCR (CLP 0), yellow above it (CLP 1), red above PCR."""

    cir_bytes_per_s: int
    cburst_bytes: int
    pir_bytes_per_s: int
    pburst_bytes: int


def frame_rate_bytes(rate_bps: float, frame_bytes: int) -> float:
    """Bytes of frame a second that are `rate_bps` bits a second on the line: rate·frame/(8·53·cells(frame))."""
    return rate_bps * frame_bytes / (CELL_LINE_BITS * cells_of_frame(frame_bytes))


MAX_BYTES_PER_CELL = ETHERNET_HEADER_BYTES + CELL_PAYLOAD_BYTES - AAL5_TRAILER_BYTES
"""54: bytes of frame in one cell when the frame fills it; longer frames have fewer."""


def police_settings(
    mcr_bps: float, pcr_bps: float, mbs_cells: int, mfs_frame_bytes: int, capacity_bps: float
) -> MeterSettings:
    """The meter of a VC: CIR = MCR, CBS = MBS, PIR = PCR (ATM Forum TM 4.1, F-GCRA over whole frames).

    A meter counts bytes of frame, a contract cells of the line: both rates and MBS are converted for a frame of
    MFS. A shorter frame fills its cells less well or better, so a VC of other frames gets a few per cent more or less
    (48.3/47.3 for frames of 1000-byte packets against 1500). A PCR at or above the port's capacity is what no line at that rate can
    exceed: there each frame counts as the one with the most bytes a cell, so that the line's own full rate is never red.
    PBS is 10 ms at PCR (`PEAK_TOLERANCE_S`) and at least two frames.
    """
    cir = frame_rate_bytes(mcr_bps, mfs_frame_bytes)
    if pcr_bps < capacity_bps:
        pir = frame_rate_bytes(pcr_bps, mfs_frame_bytes)
    else:
        pir = pcr_bps * MAX_BYTES_PER_CELL / CELL_LINE_BITS
    cburst = mbs_cells * mfs_frame_bytes / cells_of_frame(mfs_frame_bytes)
    return MeterSettings(
        cir_bytes_per_s=round(cir),
        cburst_bytes=round(cburst),
        pir_bytes_per_s=math.ceil(pir),
        pburst_bytes=math.ceil(max(2 * mfs_frame_bytes, pir * PEAK_TOLERANCE_S)),
    )


def police_marked_settings(settings: MeterSettings) -> MeterSettings:
    """For frames that come with CLP 1: they take nothing of MCR, and PCR alone bounds them (CIR = PIR = PCR)."""
    return MeterSettings(
        settings.pir_bytes_per_s, settings.pburst_bytes, settings.pir_bytes_per_s, settings.pburst_bytes
    )


def drain_time_s(qmax_cells: int, capacity_bps: float) -> float:
    """QMAX·424/C_GFR: the longest that a frame may wait in the port's buffer."""
    return qmax_cells * CELL_LINE_BITS / capacity_bps
