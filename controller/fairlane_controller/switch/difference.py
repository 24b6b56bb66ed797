# SPDX-License-Identifier: Apache-2.0
"""Bringing tables of one switch to wanted entries: read, compare, write the difference in batches, and take it back when it is refused.

An entry that is there is changed by MODIFY, so that there is no instant without it; what is right already is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from finsy import P4TableEntry

from fairlane_controller.errors import FairlaneError
from fairlane_controller.switch.client import SwitchClient, entry_key

BATCH_UPDATES = 5_000
"""More than this goes in several batches, so that no message exceeds gRPC's 4 MB."""

Entries = dict[str, P4TableEntry]
"""Entries by `entry_key`."""


@dataclass(frozen=True)
class Applied:
    """What one switch was sent, and what it held before and holds now."""

    inserted: int = 0
    modified: int = 0
    deleted: int = 0
    before: Entries | None = None
    after: Entries | None = None

    @property
    def written(self) -> int:
        """Entries that changed; 0 when the switch held everything already."""
        return self.inserted + self.modified + self.deleted


@dataclass(frozen=True)
class Difference:
    """Updates that lead from one set of entries to another."""

    inserts: tuple[P4TableEntry, ...]
    modifies: tuple[P4TableEntry, ...]
    deletes: tuple[P4TableEntry, ...]

    @property
    def updates(self) -> list[Any]:
        """finsy's updates in the order in which they take effect."""
        bare = [replace(entry, action=None, meter_config=None) for entry in self.deletes]
        return [
            *(+_sent(entry) for entry in self.inserts),
            *(~_sent(entry) for entry in self.modifies),
            *(-_sent(entry) for entry in bare),
        ]


def _sent(entry: P4TableEntry) -> P4TableEntry:
    """A copy: finsy's operators mark the object itself. Counters stay the switch's."""
    return replace(entry, counter_data=None, time_since_last_hit=None)


def difference(current: Entries, wanted: Entries, order: Sequence[str] = ()) -> Difference:
    """What must be written so that a switch that has `current` has `wanted`.

    `order`: tables in the order in which entries are inserted; they are deleted the other way round.
    """
    inserts = in_order((entry for key, entry in wanted.items() if key not in current), order)
    deletes = in_order((entry for key, entry in current.items() if key not in wanted), order[::-1])
    modifies = [entry for key, entry in wanted.items() if key in current and not _same(current[key], entry)]
    return Difference(tuple(inserts), tuple(modifies), tuple(deletes))


def in_order(entries: Iterable[P4TableEntry], tables: Sequence[str]) -> list[P4TableEntry]:
    """The entries table by table."""
    ranks = {table: place for place, table in enumerate(tables)}
    return sorted(entries, key=lambda entry: ranks.get(entry.table_id, 0))


def _same(one: P4TableEntry, other: P4TableEntry) -> bool:
    return one.action == other.action and one.meter_config == other.meter_config


def entries_by_key(client: SwitchClient, entries: Iterable[P4TableEntry]) -> Entries:
    """Entries as the switch would return them; BAD_INPUT when its P4Info refuses one. The first of two equal ones counts."""
    found: Entries = {}
    for entry in entries:
        canonical = client.canonical(entry)
        found.setdefault(entry_key(canonical), canonical)
    return found


def has_meter(client: SwitchClient, table: str) -> bool:
    """Whether a table's entries have direct meters."""
    schema = client.switch.p4info
    number = schema.tables[client.check_table(table)].id
    return any(meter.direct_table_id == number for meter in schema.direct_meters)


async def read_entries(client: SwitchClient, tables: Sequence[str]) -> Entries:
    """The entries of tables with their direct meters, constant ones left out."""
    found: Entries = {}
    for table in tables:
        for entry in await client.read_table(table, meters=has_meter(client, table)):
            if not entry.is_const:
                found[entry_key(entry)] = entry
    return found


async def apply_entries(
    client: SwitchClient,
    tables: Sequence[str],
    entries: Iterable[P4TableEntry],
    resets: Sequence[Any] = (),
    current: Entries | None = None,
) -> Applied:
    """Make `tables` (in the order of insertion) of a switch hold exactly `entries`; `resets` are updates that go before.

    `current`: what the tables hold, where it was read already.

    All or nothing: when the switch refuses a part, what it held before is written back and the refusal raised.
    """
    wanted = entries_by_key(client, entries)
    current = await read_entries(client, tables) if current is None else current
    change = difference(current, wanted, tables)
    try:
        await write_updates(client, [*resets, *change.updates])
    except FairlaneError as problem:
        await restore_entries(client, tables, current, problem)
        raise
    return Applied(len(change.inserts), len(change.modifies), len(change.deletes), current, wanted)


async def restore_entries(client: SwitchClient, tables: Sequence[str], before: Entries, problem: FairlaneError) -> None:
    """Give a switch back what it held in `tables`; raises, with the first problem in its text, when that fails too."""
    try:
        await write_updates(client, difference(await read_entries(client, tables), before, tables).updates)
    except FairlaneError as second:
        raise FairlaneError(
            problem.code,
            f"{problem.message}; what {client.endpoint} held before could not be written back ({second.message}): apply again",
        ) from None


async def write_updates(client: SwitchClient, updates: Sequence[Any]) -> None:
    """Write finsy's updates in batches that gRPC carries."""
    for start in range(0, len(updates), BATCH_UPDATES):
        await client.write(updates[start : start + BATCH_UPDATES])
