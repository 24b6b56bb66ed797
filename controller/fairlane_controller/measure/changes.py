# SPDX-License-Identifier: Apache-2.0
"""A change of a link as the meters notice it: before, after, and by which observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fairlane_controller.measure.estimators import Shift
from fairlane_controller.units import format_rate, format_time

What = Literal["rate", "delay", "path"]
"""`rate`: BW, of the port's reports; `delay`: τ, of its probes; `path`: T_res, of TCP's ACKs, link and all behind it."""

_TEXTS = {
    "rate": ("BW", "reports of the busy port"),
    "delay": ("τ", "probes"),
    "path": ("T_res", "ACKs that were timed"),
}


@dataclass(frozen=True)
class LinkChange(Shift):
    """A shift of BW (bit/s), τ or T_res (seconds)."""

    what: What

    @property
    def why(self) -> str:
        """One sentence for the event log."""
        (symbol, evidence), is_rate = _TEXTS[self.what], self.what == "rate"
        before, after = (
            format_rate(value) if is_rate else format_time(round(value, 6)) for value in (self.before, self.after)
        )
        return f"{symbol} was {before} and is {after}: {self.count} {evidence} in a row say so"

    def to_json(self) -> dict[str, Any]:
        """For the event log; the unit is in the names."""
        unit = "bps" if self.what == "rate" else "s"
        return {"what": self.what, f"before_{unit}": self.before, f"after_{unit}": self.after, "count": self.count}
