# SPDX-License-Identifier: Apache-2.0
"""Where every packet of a switch is: received and copied packets were transmitted, were dropped for one reason, wait or are being sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class PacketAccounts:
    """At one moment of the switch: received + copied = transmitted + dropped + waiting + on_line. The leaves of
    `fairlane-port:switch/packets/state` (switch/yang)."""

    received: int
    "With packet-outs and what was lost at reception."
    copied: int
    "Clones, and replicas of a group but the first."
    transmitted: int
    "With packet-ins."
    packet_ins: int
    dropped: int
    waiting: int
    on_line: int
    drops: dict[str, int] = field(default_factory=dict[str, int])
    "`dropped` by reason, those that happened."

    @classmethod
    def from_leaves(cls, leaves: Iterable[tuple[str, str | None, Any]]) -> PacketAccounts | None:
        """From (leaf, reason of a drop, value); None where the switch has no accounts."""
        names = [one.name for one in fields(cls) if one.name != "drops"]
        found: dict[str, int] = {}
        drops: dict[str, int] = {}
        for leaf, reason, value in leaves:
            name = leaf.replace("-", "_")
            if reason is None and name in names:
                found[name] = int(value)
            elif reason is not None and leaf == "packets" and int(value):
                drops[reason] = int(value)
        return cls(**found, drops=dict(sorted(drops.items()))) if len(found) == len(names) else None

    @property
    def missing(self) -> int:
        """Packets that no counter explains: 0, otherwise the switch has a fault."""
        return self.received + self.copied - self.transmitted - self.dropped - self.waiting - self.on_line

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "missing": self.missing}
