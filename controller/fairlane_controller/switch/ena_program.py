# SPDX-License-Identifier: Apache-2.0
"""The contract of `p4src/ena.p4` (docs/ena-switch.md): its tables, counters and drop reason, and its entries for a far side."""

from __future__ import annotations

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from fairlane_controller.errors import ErrorCode, FairlaneError

PROGRAM = "ena"
TABLE_FROM_SATELLITE = "far_side_in"
TABLE_TO_SATELLITE = "far_side_out"
TABLES = (TABLE_FROM_SATELLITE, TABLE_TO_SATELLITE)
FIELDS = {TABLE_FROM_SATELLITE: "ingress_port", TABLE_TO_SATELLITE: "egress_port"}
ACTIONS = {TABLE_FROM_SATELLITE: "check_segments", TABLE_TO_SATELLITE: "mark_acks"}

COUNTERS = ("ena_corrupted", "ena_strays", "ena_notified", "ena_no_room", "ena_no_place")
"""By port: corrupted segments that were named, those of them that were found by the gap that they left, ACKs that name one, ACKs that
should and had no room, ACKs of flows that the program had no place for."""
REASON_CORRUPTED = 13
"""Of the counter `drops`: corrupted segments that nobody could be told of."""


def far_side_entries(port: int) -> list[P4TableEntry]:
    """The entries that make a port the far side of a satellite link."""
    return [
        P4TableEntry(table, match=P4TableMatch({FIELDS[table]: port}), action=P4TableAction(ACTIONS[table]))
        for table in TABLES
    ]


def check_tables(names: set[str]) -> FairlaneError | None:
    """WRONG_PROGRAM when a switch's P4Info lacks a table that ENA needs."""
    missing = [name for name in TABLES if name not in names]
    if not missing:
        return None
    return FairlaneError(
        ErrorCode.WRONG_PROGRAM,
        f"the program on the switch has no table {missing[0]!r}: it is not ena; start the topology with the program ena "
        "and load it with `fairlane init`",
    )
