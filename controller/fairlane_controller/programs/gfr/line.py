# SPDX-License-Identifier: Apache-2.0
"""What is measured of a port that GFR manages: how fast its line drains, τ of its link, and the service rate of each VC; no I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlane.measure import Estimate, LinkChange, LinkProbe, Probe, QuantileWindow, listen_digest, plain
from fairlane.switch import CELL_LINE_BYTES, SwitchClient

from .config import PortConfig
from .model import cells_of_frame

DIGEST_REPORT = "gfr_report_t"
WINDOW_S = 10.0
MIN_COUNT = 3
"""Reports before the line's rate is believed."""
MAX_AGE_S = 3.0
DIFFERS = 0.05
"""A line that drains so much faster or slower than its capacity in force is another line."""
LEAST_FRAMES = 2
"""Of MTU: LBO never becomes smaller, or nothing marked would ever be accepted."""


@dataclass(frozen=True)
class LineReport:
    """The digest `gfr_report_t`."""

    busy_us: int
    busy_bytes: int
    busy_cells: int
    waiting_cells: int = 0


@dataclass
class LineMeter:
    """One port; times are seconds of any one clock."""

    link_layer: str = ""
    "Of the line; what is not `none` or `ethernet` is an atm line."
    line_bps: float | None = None
    "As configured."
    tell: Callable[[LinkChange], None] = lambda _: None
    link: LinkProbe = field(default_factory=LinkProbe)
    _rate: QuantileWindow = field(
        default_factory=lambda: QuantileWindow(0.5, WINDOW_S, shift_count=3, shift_ratio=0.05)
    )
    _services: dict[str, QuantileWindow] = field(default_factory=dict[str, QuantileWindow])
    _counted: dict[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])

    def on_report(self, now_s: float, report: LineReport) -> None:
        """One report; what an ethernet line adds to a frame is in none of its counts, so nothing is known of its rate."""
        bits = report.busy_cells * CELL_LINE_BYTES * 8 if self.link_layer in ("", "atm") else report.busy_bytes * 8
        if report.busy_us <= 0 or bits <= 0 or self.link_layer == "ethernet":
            return
        shift = self._rate.add(now_s, 1e6 * bits / report.busy_us, weight=float(report.busy_us))
        if shift is not None:
            self.link.forget_since(shift.since_s)
            self.tell(LinkChange(**vars(shift), what="rate"))

    def on_probe(self, now_s: float, probe: Probe) -> None:
        """A probe that came back."""
        rate_bps = self._rate.value(now_s)
        change = self.link.on_home(now_s, probe, self.line_bps if rate_bps is None else rate_bps)
        if change is not None:
            self.tell(change)

    def on_counts(self, now_s: float, accepted_bytes: Mapping[str, int]) -> None:
        """Bytes of frame of each VC that went into the queue so far."""
        for vc, count in accepted_bytes.items():
            before_s, before = self._counted.get(vc, (now_s, count))
            self._counted[vc] = now_s, count
            if count > before and now_s > before_s:
                window = self._services.setdefault(vc, QuantileWindow(0.5, WINDOW_S, shift_count=3, shift_ratio=0.25))
                window.add(now_s, 8 * (count - before) / (now_s - before_s))
        for gone in self._counted.keys() - accepted_bytes.keys():
            del self._counted[gone]
            self._services.pop(gone, None)

    def rate_bps(self, now_s: float) -> Estimate | None:
        """What the line drains while frames wait, bit/s on the line."""
        return self._rate.estimate(now_s)

    def to_json(self, now_s: float) -> dict[str, Any]:
        """Plain data with units in the names; the service rates count bits of frames, not of cells."""
        two_tau_s = self.link.two_tau_s(now_s)
        tau = plain(two_tau_s)
        if tau is not None:
            tau |= {key: tau[key] / 2 for key in ("value", "uncertainty") if tau[key] is not None}
        services = {vc: plain(window.estimate(now_s)) for vc, window in sorted(self._services.items())}
        return {
            "bw_bps": plain(self.rate_bps(now_s)),
            "tau_s": tau,
            "service_bps": {vc: service for vc, service in services.items() if service is not None},
        }


def scale_to_capacity(port: PortConfig, capacity_bps: float, mcr_bps: float) -> PortConfig:
    """The port on a line that carries `capacity_bps`: w_i share it, and where it is less than configured LBO and HBO hold as
    much time as they did, not as many cells. Never less than the sum of its VCs' MCR, nor two frames."""
    capacity = max(capacity_bps, mcr_bps)
    part = min(1.0, capacity / port.capacity)
    least = LEAST_FRAMES * cells_of_frame((port.mtu_bytes or 1500) + 14)
    lbo = min(port.lbo_cells, max(round(port.lbo_cells * part), least))
    hbo = min(port.hbo_cells, max(round(port.hbo_cells * part), lbo + 1))
    return port.model_copy(update={"capacity": capacity, "lbo_cells": lbo, "hbo_cells": hbo})


async def listen_reports(client: SwitchClient, meter_of: Callable[[int], LineMeter | None]) -> None:
    """Give every report to its port's meter, until cancelled; times are the running loop's."""
    await listen_digest(client, DIGEST_REPORT, meter_of, LineReport, LineMeter.on_report)
