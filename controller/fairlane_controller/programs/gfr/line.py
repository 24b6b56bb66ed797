# SPDX-License-Identifier: Apache-2.0
"""What is measured of a port that GFR manages: how fast its line drains, and τ of its link; no I/O, no clock."""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.measure import PortMeter, PortReport
from fairlane.switch import CELL_LINE_BYTES

from .config import PortConfig
from .model import cells_of_packet

DIGEST_REPORT = "gfr_report_t"
MIN_FRAMES = 2
"""Of MTU: LBO never becomes smaller, or nothing marked would ever be accepted."""


@dataclass(frozen=True)
class LineReport:
    """The digest `gfr_report_t`."""

    busy_us: int
    busy_bytes: int
    busy_cells: int
    waiting_cells: int = 0


@dataclass
class LineMeter(PortMeter):
    """BW and τ of one port, by the reports of `gfr.p4`."""

    link_layer: str = ""
    "Of the line; what is not `none` or `ethernet` is an atm line."

    def on_line_report(self, now_s: float, report: LineReport) -> None:
        """One report; what an ethernet line adds to a frame is in none of its counts, so nothing is known of its rate."""
        is_atm = self.link_layer in ("", "atm")
        line_bytes = report.busy_cells * CELL_LINE_BYTES if is_atm else report.busy_bytes
        if self.link_layer != "ethernet":
            self.on_report(now_s, PortReport(0, report.busy_us, line_bytes, busy_packets=1, flows=0))


def scale_to_capacity(port: PortConfig, capacity_bps: float, mcr_bps: float) -> PortConfig:
    """The port on a line that carries another rate than configured.

    w_i share that rate. Where it is less than configured, LBO and HBO hold as much time as before, not as many cells, and never less
    than two frames.

    Args:
        port: As configured.
        capacity_bps: What the line carries.
        mcr_bps: The sum of its VCs' MCR, which the new capacity is at least.
    """
    capacity = max(capacity_bps, mcr_bps)
    part = min(1.0, capacity / port.capacity)
    floor = MIN_FRAMES * cells_of_packet(port.mtu_bytes or 1500)
    lbo = min(port.lbo_cells, max(round(port.lbo_cells * part), floor))
    hbo = min(port.hbo_cells, max(round(port.hbo_cells * part), lbo + 1))
    return port.model_copy(update={"capacity": capacity, "lbo_cells": lbo, "hbo_cells": hbo})
