# SPDX-License-Identifier: Apache-2.0
"""A change of a link as the meters notice it: what it was, what it is, and by which observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fairlane_controller.measure.estimators import Shift
from fairlane_controller.units import format_rate, format_time

What = Literal["rate", "delay", "path"]
"""`rate`: BW, of the port's reports; `delay`: τ, of its probes; `path`: T_res, of TCP's ACKs, link and all behind it."""

_SYMBOL = {"rate": "BW", "delay": "τ", "path": "T_res"}
_EVIDENCE_TEXTS = {
    "rate": "{count} reports of the busy port",
    "delay": "{count} probes",
    "path": "{count} ACKs that were timed",
}


@dataclass(frozen=True)
class LinkChange:
    """`before` and `after` in bit/s or seconds."""

    what: What
    before: float
    after: float
    since_s: float
    "The first observation of the new value, on the loop's clock."
    count: int
    "Observations in a row that say so."

    @classmethod
    def of(cls, what: What, shift: Shift, factor: float = 1.0) -> LinkChange:
        """The change that a window's shift is, its values times `factor`."""
        return cls(what, shift.before * factor, shift.after * factor, shift.since_s, shift.count)

    @property
    def why(self) -> str:
        """One sentence for the event log."""
        show = format_rate if self.what == "rate" else _time
        seen = _EVIDENCE_TEXTS[self.what].format(count=self.count)
        return f"{_SYMBOL[self.what]} was {show(self.before)} and is {show(self.after)}: {seen} in a row say so"

    def to_json(self) -> dict[str, Any]:
        """For the event log; the unit is in the names."""
        unit = "bps" if self.what == "rate" else "s"
        return {"what": self.what, f"before_{unit}": self.before, f"after_{unit}": self.after, "count": self.count}


def _time(seconds: float) -> str:
    return format_time(round(seconds, 6))
