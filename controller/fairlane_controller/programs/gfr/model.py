# SPDX-License-Identifier: Apache-2.0
"""Equations (3) and (4) of the GFR paper (Kim and Lee 2004), ATM's units, and the integers that `p4src/gfr.p4` gets for them.

Symbols: N active VCs, C_GFR the port's rate, MCR_i, PCR_i, MBS_i, MFS_i a VC's minimum and peak rate, longest burst and
longest frame, w_i the rate that VC i should have. A frame is a packet, a cell 48 bytes of it.

Every rate is in bits on an `atm` line (53 bytes a cell), as C_GFR is; what a host calls goodput is less (`ideal_goodput_bps`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairlane.switch import AAL5_TRAILER_BYTES, CELL_LINE_BYTES, CELL_PAYLOAD_BYTES, ETHERNET_HEADER_BYTES
from finsy import P4MeterConfig

CELL_LINE_BITS = 8 * CELL_LINE_BYTES
ONE_16 = 1 << 16
"""Fixed point of `share`, `inv_share` and `inv_rest`."""
MAX_32 = (1 << 32) - 1
MAX_40 = (1 << 40) - 1
PEAK_TOLERANCE_S = 0.010
"""How far ahead of PCR a VC may run (cell delay variation tolerance): the jitter of a link between software processes."""
WEIGHT_MAX = 1 << 31
"""The largest scheduler weight of a port; below 2.1 Gbit/s a weight is w_i in bit/s."""
MAX_BYTES_PER_CELL = ETHERNET_HEADER_BYTES + CELL_PAYLOAD_BYTES - AAL5_TRAILER_BYTES
"""54: bytes of frame in one cell when the frame fills it; longer frames have fewer."""


def cells_of_frame(frame_bytes: int) -> int:
    """Cells of an Ethernet frame without FCS: max(1, ceil((frame_bytes - 14 + 8) / 48)), as AAL5 packs its payload."""
    return max(1, -(-(frame_bytes - ETHERNET_HEADER_BYTES + AAL5_TRAILER_BYTES) // CELL_PAYLOAD_BYTES))


def cells_of_packet(ip_bytes: int) -> int:
    """Cells of an IP packet of `ip_bytes`, header included."""
    return cells_of_frame(ip_bytes + ETHERNET_HEADER_BYTES)


def frame_rate_bytes(rate_bps: float, frame_bytes: int) -> float:
    """Bytes of frame a second that are `rate_bps` bits a second on the line: rate·frame/(8·53·cells(frame))."""
    return rate_bps * frame_bytes / (CELL_LINE_BITS * cells_of_frame(frame_bytes))


def guaranteed_shares(
    mcr_bps: Sequence[float], capacity_bps: float, weights: Sequence[float] | None = None
) -> list[float]:
    """(3) w_i = MCR_i + weight_i·(C_GFR - Σ MCR_j)/Σ weight_j over the active VCs, in bit/s on the line.

    Args:
        mcr_bps: MCR of each active VC; call admission has checked that their sum is at most the capacity.
        capacity_bps: C_GFR.
        weights: How the rest is divided; None: all 1, as in the paper.
    """
    parts = list(weights) if weights is not None else [1.0] * len(mcr_bps)
    rest, total = max(0.0, capacity_bps - math.fsum(mcr_bps)), math.fsum(parts)
    return [mcr + weight * rest / total for mcr, weight in zip(mcr_bps, parts, strict=True)]


def ideal_goodput_bps(w_bps: float, mss_bytes: int, frame_cells: int) -> float:
    """f_i = w_i·MSS/(53·c): application bit/s of a VC that gets w_i of the line in frames of c cells, MSS bytes in each.

    The paper counts 960 bytes as exactly 20 cells; a real segment of 960 bytes is an IP packet of 1000 and 21 cells
    (`cells_of_packet`).
    """
    return w_bps * mss_bytes / (CELL_LINE_BYTES * frame_cells)


def jain_index(x: Sequence[float]) -> float:
    """(4) Jain index (Σ x_i)²/(N·Σ x_i²) with x_i = rate_i/f_i: 1 is fair, 1/N is one for all; 0 when nothing moves."""
    squares = math.fsum(value * value for value in x)
    return math.fsum(x) ** 2 / (len(x) * squares) if squares > 0 else 0.0


def share_words(w_bps: float, capacity_bps: float) -> dict[str, int]:
    """The parameters of `set_share` that follow from w_i and C_GFR, each within half a unit.

    Returns:
        `w`: w_i in bit/s, at least 1.
        `weight`: of the VC's queue, proportional to w_i, at least 1.
        `share`, `inv_share`, `inv_rest`: w_i/C, C/w_i and 1/(1 - w_i/C) in 1/65536, the last two at most 2^32 - 1. A VC that has all
        of C has that `inv_rest`: its occupancy is never above QT·w_i/C.
    """
    w_bps = max(1.0, w_bps)
    ratio = min(1.0, w_bps / capacity_bps)
    return {
        "w": round(w_bps),
        "weight": max(1, round(w_bps * min(1.0, WEIGHT_MAX / max(1.0, capacity_bps)))),
        "share": round(ratio * ONE_16),
        "inv_share": min(MAX_32, round(ONE_16 / ratio)),
        "inv_rest": MAX_32 if ratio >= 1.0 else min(MAX_32, round(ONE_16 / (1.0 - ratio))),
    }


def police_meters(
    mcr_bps: float, pcr_bps: float, mbs_cells: int, mfs_frame_bytes: int, capacity_bps: float
) -> tuple[P4MeterConfig, P4MeterConfig]:
    """The meters of a VC at its edge: CIR = MCR, CBS = MBS, PIR = PCR (RFC 2698; ATM Forum TM 4.1, F-GCRA over whole frames).

    A meter counts bytes of frame, a contract cells of the line: both rates and MBS are converted for a frame of
    MFS. A shorter frame fills its cells less well or better, so a VC of other frames gets a few per cent more or less
    (48.3/47.3 for frames of 1000-byte packets against 1500). A PCR at or above the port's capacity is what no line at that rate can
    exceed: there each frame counts as the one with the most bytes a cell, so that the line's own full rate is never red.
    PBS is 10 ms at PCR (`PEAK_TOLERANCE_S`) and at least two frames.

    Args:
        mcr_bps: Below it frames are green (CLP 0), above it yellow (CLP 1).
        pcr_bps: Above it frames are red (refused).
        mbs_cells: Longest burst within MCR.
        mfs_frame_bytes: Longest frame, with its Ethernet header.
        capacity_bps: C_GFR.

    Returns:
        That of frames that come with CLP 0, and that of frames that come with CLP 1: those take nothing of MCR (CIR = PIR = PCR).
    """
    pir = pcr_bps * MAX_BYTES_PER_CELL / CELL_LINE_BITS
    if pcr_bps < capacity_bps:
        pir = frame_rate_bytes(pcr_bps, mfs_frame_bytes)
    peak = {"pir": math.ceil(pir), "pburst": math.ceil(max(2 * mfs_frame_bytes, pir * PEAK_TOLERANCE_S))}
    burst = round(mbs_cells * mfs_frame_bytes / cells_of_frame(mfs_frame_bytes))
    return (
        P4MeterConfig(cir=round(frame_rate_bytes(mcr_bps, mfs_frame_bytes)), cburst=burst, **peak),
        P4MeterConfig(cir=peak["pir"], cburst=peak["pburst"], **peak),
    )
