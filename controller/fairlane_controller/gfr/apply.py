# SPDX-License-Identifier: Apache-2.0
"""Bringing one switch to its entries: read, compare, write the difference in one batch, and take it back when it is refused.

A port's scheme, a VC's share and a meter are changed by MODIFY, so that there is no instant without them and no frame is
lost; what is right already is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from finsy import P4CounterData, P4CounterEntry, P4TableEntry

from fairlane_controller.errors import FairlaneError
from fairlane_controller.gfr.allocation import Seat
from fairlane_controller.switch import gfr_program as program
from fairlane_controller.switch.client import SwitchClient, entry_key

BATCH_UPDATES = 5_000
"""More than this (a thousand VCs) goes in several batches, so that no message exceeds gRPC's 4 MB."""

_INSERT_ORDER = (
    program.TABLE_VC_SHARE,
    program.TABLE_PORT_SCHEME,
    program.TABLE_CLP_MARK,
    program.TABLE_VC_POLICE,
    program.TABLE_VC_POLICE_MARKED,
    program.TABLE_VC_EDGE,
    program.TABLE_VC_CLASSIFY[4],
    program.TABLE_VC_CLASSIFY[6],
)
"""A VC's share and meters are there before a packet is said to be its; deletes go the other way round."""
_RANK = {table: place for place, table in enumerate(_INSERT_ORDER)}
_METERED = (program.TABLE_VC_POLICE, program.TABLE_VC_POLICE_MARKED)

Held = dict[str, P4TableEntry]
"""Entries by `entry_key`."""


@dataclass(frozen=True)
class Applied:
    """What one switch was sent, and what it held before."""

    inserted: int = 0
    modified: int = 0
    deleted: int = 0
    before: Held | None = None

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
            *(-entry for entry in bare),
        ]


def _sent(entry: P4TableEntry) -> P4TableEntry:
    """A copy: finsy's operators mark the object itself. Counters stay the switch's."""
    return replace(entry, counter_data=None, time_since_last_hit=None)


def difference(held: Held, wanted: Held) -> Difference:
    """What must be written so that a switch that holds `held` holds `wanted`."""

    def rank(entry: P4TableEntry) -> int:
        return _RANK[entry.table_id]

    inserts = sorted((entry for key, entry in wanted.items() if key not in held), key=rank)
    deletes = sorted((entry for key, entry in held.items() if key not in wanted), key=rank, reverse=True)
    modifies = [
        entry for key, entry in wanted.items() if key in held and not _same(held[key], entry)
    ]  # ports' N and their VCs' shares in the order in which they are wanted
    return Difference(tuple(inserts), tuple(modifies), tuple(deletes))


def _same(one: P4TableEntry, other: P4TableEntry) -> bool:
    return one.action == other.action and one.meter_config == other.meter_config


def wanted_by_key(client: SwitchClient, entries: Iterable[P4TableEntry]) -> Held:
    """Entries as the switch would return them; BAD_INPUT when its P4Info refuses one. The first of two equal ones counts."""
    found: Held = {}
    for entry in entries:
        made = client.canonical(entry)
        found.setdefault(entry_key(made), made)
    return found


async def read_held(client: SwitchClient, tables: Sequence[str] = program.TABLES) -> Held:
    """All that the switch holds of GFR's tables, or of some; WRONG_PROGRAM when its program has not got them."""
    wrong = program.check_tables(set(client.table_names()))
    if wrong:
        raise wrong
    held: Held = {}
    for table in tables:
        for entry in await client.read_table(table, meters=table in _METERED):
            if not entry.is_const:
                held[entry_key(entry)] = entry
    return held


async def apply_entries(
    client: SwitchClient, entries: Sequence[P4TableEntry], reused: Sequence[Seat] = (), *, keep_rest: bool = False
) -> Applied:
    """Make the switch hold exactly `entries` in GFR's tables; with `keep_rest` other entries stay.

    The verdicts of `reused` slots are counted from 0. All or nothing: when the switch refuses a part, what it held before
    is written back and the refusal raised (REFUSED, or what the connection said).
    """
    wanted = wanted_by_key(client, entries)
    held = await read_held(client)
    if keep_rest:
        wanted = {**held, **wanted}
    change = difference(held, wanted)
    resets = [
        ~P4CounterEntry(
            program.COUNTER_VERDICTS, index=seat.slot * program.VERDICTS_A_SLOT + cell, data=P4CounterData()
        )
        for seat in reused
        for cell in range(program.VERDICTS_A_SLOT)
    ]
    try:
        await _write(client, [*resets, *change.updates])
    except FairlaneError as problem:
        await restore(client, held, problem)
        raise
    return Applied(len(change.inserts), len(change.modifies), len(change.deletes), held)


async def restore(
    client: SwitchClient, before: Held, problem: FairlaneError, tables: Sequence[str] = program.TABLES
) -> None:
    """Give a switch back what it held in `tables`; raises, with the first problem in its text, when that fails too."""
    try:
        await _write(client, difference(await read_held(client, tables), before).updates)
    except FairlaneError as second:
        raise FairlaneError(
            problem.code,
            f"{problem.message}; what {client.endpoint} held before could not be written back ({second.message}): apply again",
        ) from None


async def _write(client: SwitchClient, updates: list[Any]) -> None:
    for start in range(0, len(updates), BATCH_UPDATES):
        await client.write(updates[start : start + BATCH_UPDATES])
