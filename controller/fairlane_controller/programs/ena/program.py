# SPDX-License-Identifier: Apache-2.0
"""`p4src/ena.p4` (docs/schemes.md): ports that are the far side of a satellite link, their entries, counters and drop reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairlane import (
    Column,
    Entries,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
    PortState,
    Program,
    Reason,
    Settings,
)

FIELDS = {"far_side_in": "ingress_port", "far_side_out": "egress_port"}
"""The key of each table."""
ACTIONS = {"far_side_in": "check_segments", "far_side_out": "mark_acks"}
REASON_CORRUPTED = 13


class Ena(Program):
    """ENA: the switch names corrupted segments for receivers that cannot."""

    name = "ena"
    tables = ("far_side_in", "far_side_out")
    ports_title = "far-side ports"
    reasons = {REASON_CORRUPTED: Reason("corrupted", "TCP checksum wrong, and nobody to tell")}
    columns = (
        Column("ena_corrupted", "corrupted, named", "packets", "corrupted segments that were named", "ena_corrupted"),
        Column("ena_strays", "by their gap", "packets", "of these, found by the gap that they left", "ena_strays"),
        Column("ena_notified", "ACKs that name one", "packets", "ACKs that name a segment", "ena_notified"),
        Column("ena_no_room", "no room", "packets", "ACKs that should name one and had no room", "ena_no_room"),
        Column("ena_no_place", "no slot", "packets", "ACKs of flows that the program had no slot for", "ena_no_place"),
        Column("dropped", "dropped", "packets", "corrupted segments that were dropped", reason=REASON_CORRUPTED),
    )

    class Settings(Settings):
        """One port."""

        far_side: bool = False
        "ENA: whether the port is the far side of a satellite link."

    def entries(self, port: PortState, settings: Any) -> Iterator[P4TableEntry]:
        """An entry in both tables for a far side.

        Args:
            port: The port.
            settings: Its `Settings`.
        """
        if settings.far_side:
            for table in self.tables:
                match, action = P4TableMatch({FIELDS[table]: port.port}), P4TableAction(ACTIONS[table])
                yield P4TableEntry(table, match=match, action=action)

    def ports_of(self, switch: str, current: Entries) -> dict[int, Any]:
        """The ports that are in one of the tables."""
        found = {int(entry[FIELDS[entry.table_id]]) for entry in current.values()}
        return {port: self.Settings(far_side=True) for port in sorted(found)}
