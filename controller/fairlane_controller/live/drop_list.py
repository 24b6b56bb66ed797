# SPDX-License-Identifier: Apache-2.0
"""All that a topology dropped, by reason, from two snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairlane_controller.live.model import Snapshot
from fairlane_controller.program.reasons import meaning


@dataclass(frozen=True)
class DropLine:
    """Packets that ended for one reason."""

    switch: str
    port: int | None
    reason: str
    meaning: str
    packets: int
    "Since the counters began."
    per_s: float | None
    "None without a second snapshot."
    by: str
    "`program`, `queue` or `link`."
    object: str | None = None
    "Whose they were: a VC."

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "switch": self.switch,
            "port": self.port,
            "object": self.object,
            "reason": self.reason,
            "meaning": self.meaning,
            "packets": self.packets,
            "per_s": None if self.per_s is None else round(self.per_s, 3),
            "by": self.by,
        }


def drop_lines(now: Snapshot, before: Snapshot | None = None) -> list[DropLine]:
    """One line a (switch, port, object, reason), those that drop most first; `before` gives the rates."""
    earlier = _counts(before) if before is not None else {}
    # A switch that was away in the earlier snapshot had no counters there: that says nothing of its rate.
    read = {row.switch for row in before.switches if row.program is not None} if before is not None else set[str]()
    elapsed_s = now.time_s - before.time_s if before is not None else 0.0
    lines: list[DropLine] = []
    for key, packets in _counts(now).items():
        switch, port, whose, reason, by = key
        per_s = None
        if switch in read and elapsed_s > 0:
            per_s = max(0, packets - earlier.get(key, 0)) / elapsed_s
        lines.append(
            DropLine(switch, port, reason, meaning(now.program_of(switch), reason, by), packets, per_s, by, whose)
        )
    return sorted(
        lines, key=lambda line: (-(line.per_s or 0.0), -line.packets, line.switch, line.port or 0, line.reason)
    )


_Key = tuple[str, "int | None", "str | None", str, str]


def _counts(snapshot: Snapshot) -> dict[_Key, int]:
    return {(row.switch, row.port, row.object, row.reason, row.by): row.packets for row in snapshot.drops}
