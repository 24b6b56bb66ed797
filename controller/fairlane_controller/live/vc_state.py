# SPDX-License-Identifier: Apache-2.0
"""Whether a VC gets its minimum rate, from one row of a snapshot."""

from __future__ import annotations

from enum import Enum

from fairlane_controller.live.model import VcRow

TOLERANCE = 0.97
"""A rate measured over a second or so is this near at least when the VC gets its MCR: the meters' granularity and one burst."""
CELL_OVERHEAD = 53 / 48
"""Of a line with cells, at least; MCR is bits on the line, counted frames are not."""


class Served(str, Enum):
    """What a VC gets of its MCR."""

    YES = "yes"
    "Its rate reaches MCR."
    ASKS_LESS = "asks less"
    "It sends less than MCR, and nothing was refused."
    NO = "no"
    "Frames were refused while its rate is below MCR."
    IDLE = "idle"
    "Nothing arrives."


def served(vc: VcRow) -> Served | None:
    """None where no rate is known: one snapshot only, or no MCR."""
    rate_bps = line_rate_bps(vc)
    if rate_bps is None or vc.mcr_bps is None or vc.offered_bps is None:
        return None
    if vc.offered_bps <= 0:
        return Served.IDLE
    if rate_bps >= TOLERANCE * vc.mcr_bps:
        return Served.YES
    return Served.NO if vc.drops_per_s else Served.ASKS_LESS


def line_rate_bps(vc: VcRow) -> float | None:
    """What it was given, in bits on the line: r_i of the data plane, else what was accepted with the cells' headers (a little low)."""
    if vc.rate_bps is not None and vc.rate_bps > 0:
        return vc.rate_bps
    return None if vc.goodput_bps is None else vc.goodput_bps * CELL_OVERHEAD
