# SPDX-License-Identifier: Apache-2.0
"""Where every packet of a switch is: received and copied packets were transmitted, were dropped for one reason, wait or are being sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

LEAVES = ("received", "copied", "transmitted", "packet-ins", "dropped", "waiting", "on-line")
"""Of `fairlane-port:switch/packets/state` (switch/yang)."""


@dataclass(frozen=True)
class PacketAccounts:
    """At one moment of the switch: received + copied = transmitted + dropped + waiting + on_line."""

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
        found: dict[str, int] = {}
        drops: dict[str, int] = {}
        for leaf, reason, value in leaves:
            if reason is None and leaf in LEAVES:
                found[leaf.replace("-", "_")] = int(value)
            elif reason is not None and leaf == "packets" and int(value):
                drops[reason] = int(value)
        return cls(**found, drops=drops) if len(found) == len(LEAVES) else None

    @property
    def missing(self) -> int:
        """Packets that no counter explains: 0, otherwise the switch has a fault."""
        return self.received + self.copied - self.transmitted - self.dropped - self.waiting - self.on_line

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "received": self.received,
            "copied": self.copied,
            "transmitted": self.transmitted,
            "packet_ins": self.packet_ins,
            "dropped": self.dropped,
            "drops": dict(sorted(self.drops.items())),
            "waiting": self.waiting,
            "on_line": self.on_line,
            "missing": self.missing,
        }
