# SPDX-License-Identifier: Apache-2.0
"""What is to be written so that tables of a switch have wanted entries: each change with what is there before.

An entry that is there is changed by MODIFY, so that there is no instant without it; what is right already is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from finsy import P4TableEntry

from fairlane_controller.switch.client import CELLS_A_READ, SwitchClient
from fairlane_controller.switch.entities import (
    Entities,
    Entity,
    EntityChange,
    Entries,
    entity_key,
    entity_of,
    identity,
    same_entity,
)


def difference(current: Entries, wanted: Entries, order: Sequence[str] = ()) -> list[EntityChange]:
    """What must be written so that a switch that has `current` has `wanted`.

    `order`: tables in the order in which entries are inserted and modified; they are deleted the other way round.
    """
    inserts = [entry for key, entry in wanted.items() if key not in current]
    modifies = [entry for key, entry in wanted.items() if key in current and not same_entity(current[key], entry)]
    deletes = sort_entries((entry for key, entry in current.items() if key not in wanted), order[::-1])
    written = sort_entries([*inserts, *modifies], order)
    return [
        *(EntityChange(current.get(entity_key(entry)), entry) for entry in written),
        *(EntityChange(entry, None) for entry in deletes),
    ]


def sort_entries(entries: Iterable[P4TableEntry], tables: Sequence[str]) -> list[P4TableEntry]:
    """The entries table by table."""
    ranks = {table: place for place, table in enumerate(tables)}
    return sorted(entries, key=lambda entry: ranks.get(entry.table_id, 0))


def entries_by_key(client: SwitchClient, entries: Iterable[P4TableEntry]) -> Entries:
    """Entries as the switch would return them; BAD_INPUT when its P4Info refuses one. The first of two equal ones counts."""
    found: Entries = {}
    for entry in entries:
        canonical = client.canonical(entry)
        found.setdefault(entity_key(canonical), canonical)
    return found


async def read_entries(client: SwitchClient, tables: Sequence[str]) -> Entries:
    """The entries of tables with their direct meters, constant ones left out."""
    found: Entries = {}
    for table in tables:
        for entry in await client.read_table(table, meters=client.has_meter(table)):
            if not entry.is_const:
                found[entity_key(entry)] = entry
    return found


async def missing(client: SwitchClient, entries: Iterable[P4TableEntry]) -> list[EntityChange]:
    """What must be written so that a switch has these entries; others stay as they are."""
    wanted = entries_by_key(client, entries)
    current = await read_entries(client, sorted({entry.table_id for entry in wanted.values()}))
    return difference({key: current[key] for key in wanted if key in current}, wanted)


async def read_current(client: SwitchClient, entities: Iterable[Entity]) -> Entities:
    """What a switch has of these entities: tables of entries as a whole, anything else by its key."""
    schema = client.switch.p4info
    asked = list({entity_key(one): one for one in entities}.values())
    tables = {one.table_id for one in asked if isinstance(one, P4TableEntry) and not one.is_default_action}
    single = [identity(one) for one in asked if not isinstance(one, P4TableEntry) or one.is_default_action]
    found: Entities = dict(await read_entries(client, sorted(tables)))
    for start in range(0, len(single), CELLS_A_READ):
        pattern = single[start : start + CELLS_A_READ]
        answers = await client.read_entities(pattern)
        if len(answers) < len(pattern) > 1:  # one that is not there hides the others
            answers = [answer for one in pattern for answer in await client.read_entities([one])]
        found |= {entity_key(one): one for one in (entity_of(answer, schema) for answer in answers)}
    return found
