# SPDX-License-Identifier: Apache-2.0
"""What is measured of a port that GFR manages: how fast its line drains, τ of its link, and the service rate of each VC; no I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlane.measure import Estimate, LinkChange, MeasureOptions, PortMeter, PortReport, QuantileWindow, plain
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


class LineMeter:
    """One port; times are seconds of any one clock."""

    def __init__(
        self, link_layer: str = "", line_bps: float | None = None, tell: Callable[[LinkChange], None] = lambda _: None
    ) -> None:
        """Nothing is measured yet.

        Args:
            link_layer: Of the line; what is not `none` or `ethernet` is an atm line.
            line_bps: As configured.
            tell: Hears of each change of the line and its link.
        """
        self.link_layer = link_layer
        self._port = PortMeter(MeasureOptions(), line_bps=line_bps, tell=tell)
        self.link, self.on_probe = self._port.link, self._port.on_probe
        self._services: dict[str, QuantileWindow] = {}
        self._counted: dict[str, tuple[float, int]] = {}

    def on_report(self, now_s: float, report: LineReport) -> None:
        """One report; what an ethernet line adds to a frame is in none of its counts, so nothing is known of its rate."""
        is_atm = self.link_layer in ("", "atm")
        line_bytes = report.busy_cells * CELL_LINE_BYTES if is_atm else report.busy_bytes
        if self.link_layer != "ethernet":
            self._port.on_report(now_s, PortReport(0, report.busy_us, line_bytes, busy_packets=1, flows=0))

    def on_counts(self, now_s: float, accepted_bytes: Mapping[str, int]) -> None:
        """Bytes of frame of each VC that went into the queue so far."""
        for vc, count in accepted_bytes.items():
            before_s, before = self._counted.get(vc, (now_s, count))
            if count > before and now_s > before_s:
                window = self._services.setdefault(vc, QuantileWindow(0.5, 10.0, shift_count=3, shift_ratio=0.25))
                window.add(now_s, 8 * (count - before) / (now_s - before_s))
        self._counted = {vc: (now_s, count) for vc, count in accepted_bytes.items()}
        self._services = {vc: window for vc, window in self._services.items() if vc in accepted_bytes}

    def rate_bps(self, now_s: float) -> Estimate | None:
        """What the line drains while frames wait, bit/s on the line."""
        return self._port.measurement(now_s).bw_bps

    def to_json(self, now_s: float) -> dict[str, Any]:
        """Plain data with units in the names; the service rates count bits of frames, not of cells."""
        measured = self._port.measurement(now_s)
        services = {vc: plain(window.estimate(now_s)) for vc, window in sorted(self._services.items())}
        known = {vc: service for vc, service in services.items() if service is not None}
        return {"bw_bps": plain(measured.bw_bps), "tau_s": plain(measured.tau_s), "service_bps": known}


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
