# SPDX-License-Identifier: Apache-2.0
"""Table entries written so that they can be taken back: all of a list or none, with the updates that undo them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from finsy import P4TableEntry

from fairlane_controller.errors import FairlaneError
from fairlane_controller.switch.client import SwitchClient, entry_key
from fairlane_controller.switch.updates import Plain, entry_of, plain_entry, plain_updates, updates_of

BATCH_UPDATES = 5_000


async def write_entries(client: SwitchClient, updates: Sequence[Plain]) -> list[Plain]:
    """Write plain updates of table entries, all or none; returns those that take them back, in their order.

    Raises BAD_INPUT before the first write when the P4Info refuses one, REFUSED with what the switch held written back.
    """
    checked = plain_updates(updates_of(updates), client.switch.p4info)
    tables = sorted({str(one["table"]) for one in checked})
    before = await read_tables(client, tables)
    undo = inverse(client, checked, before)
    try:
        await write_all(client, updates_of(checked))
    except FairlaneError as problem:
        await _restore(client, checked, before, problem)
        raise
    return undo


def inverse(client: SwitchClient, updates: Sequence[Plain], before: dict[str, P4TableEntry]) -> list[Plain]:
    """What takes checked updates back on a switch that held `before`."""
    undo: list[Plain] = []
    for one in reversed(updates):
        key = entry_key(client.canonical(entry_of(one)))
        held = before.get(key)
        if one["update"] == "insert" and held is None:
            undo.append({"update": "delete", "table": one["table"], "match": one["match"], **_rank(one)})
        elif held is not None:
            undo.append({"update": "modify" if one["update"] != "delete" else "insert", **plain_entry(_bare(held))})
    return undo


def _rank(one: Plain) -> Plain:
    return {"priority": one["priority"]} if one.get("priority") else {}


def _bare(entry: P4TableEntry) -> P4TableEntry:
    return replace(entry, counter_data=None, time_since_last_hit=None)


async def read_tables(client: SwitchClient, tables: Sequence[str]) -> dict[str, P4TableEntry]:
    """What tables hold, with their direct meters where they have them; constant entries left out."""
    held: dict[str, P4TableEntry] = {}
    for table in tables:
        for entry in await client.read_table(table, meters=has_meter(client, table)):
            if not entry.is_const:
                held[entry_key(entry)] = entry
    return held


def has_meter(client: SwitchClient, table: str) -> bool:
    """Whether a table's entries have direct meters."""
    schema = client.switch.p4info
    number = schema.tables[client.check_table(table)].id
    return any(meter.direct_table_id == number for meter in schema.direct_meters)


async def write_all(client: SwitchClient, updates: Sequence[Any]) -> None:
    """In batches that gRPC carries."""
    for start in range(0, len(updates), BATCH_UPDATES):
        await client.write(updates[start : start + BATCH_UPDATES])


async def _restore(
    client: SwitchClient, updates: Sequence[Plain], before: dict[str, P4TableEntry], problem: FairlaneError
) -> None:
    """Give the entries concerned their former values back."""
    keys = {entry_key(client.canonical(entry_of(one))) for one in updates}
    try:
        now = await read_tables(client, sorted({str(one["table"]) for one in updates}))
        back: list[Any] = []
        for key in keys:
            old, new = before.get(key), now.get(key)
            if old is None and new is not None:
                back.append(-replace(_bare(new), action=None, meter_config=None))
            elif old is not None and new is None:
                back.append(+_bare(old))
            elif (
                old is not None and new is not None and (old.action, old.meter_config) != (new.action, new.meter_config)
            ):
                back.append(~_bare(old))
        await write_all(client, back)
    except FairlaneError as second:
        raise FairlaneError(
            problem.code,
            f"{problem.message}; what {client.endpoint} held before could not be written back ({second.message})",
        ) from None
