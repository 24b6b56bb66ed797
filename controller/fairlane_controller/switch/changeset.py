# SPDX-License-Identifier: Apache-2.0
"""Changes of P4Runtime's entities on any number of switches, each with what was there before: so every change has an inverse.

current = await read_entries(client, tables)
change = ChangeSet({"s1": difference(current, wanted, tables)})
await apply(change, {"s1": client})                  # all switches or none
undo = change.undo()                                 # steps of the journal that take it back
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from finsy import GRPCStatusCode, P4TableEntry

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.intent import announce, making
from fairlane_controller.switch.client import CELLS_A_READ, SwitchClient
from fairlane_controller.switch.entities import (
    CELLS,
    Entities,
    Entity,
    EntityChange,
    Entries,
    entity_key,
    entity_of,
    identity,
    kind_of,
    same_entity,
)
from fairlane_controller.switch.faults import Refusal, refused
from fairlane_controller.switch.updates import Plain, entity_of_plain, plain_update, plain_updates, updates_of

BATCH_UPDATES = 5_000
"""More than this goes in several batches, so that no message exceeds gRPC's 4 MB."""
TAKE_BACK_TIMEOUT_S = 10.0
"""Until a switch has what it had before."""

_SO_ALREADY = (GRPCStatusCode.NOT_FOUND, GRPCStatusCode.ALREADY_EXISTS)
"""What a switch says of taking back an update that it had not taken: when it does not answer, nobody knows what it took."""


@dataclass(frozen=True)
class ChangeSet:
    """Changes of entities by switch, in the order in which they are written."""

    entries: Mapping[str, Sequence[EntityChange]]
    resets: Mapping[str, Sequence[Any]] = field(default_factory=dict[str, Sequence[Any]])
    "Updates that go before them and have no inverse: counters that begin anew."
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    "By switch: what an error calls each entry, such as `line 3`; none: `update 2`."

    @property
    def inverse(self) -> ChangeSet:
        """What takes all of it back."""
        return ChangeSet(
            {
                switch: [one.inverse for one in reversed(changes) if one.has_inverse]
                for switch, changes in reversed(list(self.entries.items()))
            }
        )

    def updates(self, switch: str) -> list[Plain]:
        """The updates of one switch as plain data."""
        return [plain_update(one.kind, one.entity) for one in self.entries.get(switch, ())]

    @property
    def switches(self) -> list[str]:
        """The switches that it writes to."""
        return [switch for switch, changes in self.entries.items() if changes or self.resets.get(switch)]

    def undo(self) -> list[Plain]:
        """The steps `table_write` of the journal that take it back, the last switch first."""
        inverse = self.inverse
        return [
            {"op": "table_write", "switch": switch, "updates": inverse.updates(switch)}
            for switch, changes in inverse.entries.items()
            if changes
        ]


def entity_changes(client: SwitchClient, current: Mapping[str, Entity], updates: Iterable[Plain]) -> list[EntityChange]:
    """The changes that plain updates mean on a switch that has `current` of their entities.

    An update says what is to be there in the end: an entity that is there already is modified, one that is to go and is not
    there is left out. Only where another one stands where one is inserted, it is somebody else's: the switch refuses that.
    Raises BAD_INPUT when the P4Info refuses one.
    """
    there: dict[str, Entity | None] = dict(current)
    changes: list[EntityChange] = []
    for one in updates:
        wanted = client.canonical(entity_of_plain(one))
        key = entity_key(wanted)
        before, after = there.get(key), None if one["update"] == "delete" else wanted
        if one["update"] == "insert" and not same_entity(before, after):
            before = None
        there[key] = after
        if before is not None or after is not None:
            changes.append(EntityChange(before, after))
    return changes


@dataclass
class _Sent:
    """Changes that were sent to a switch together."""

    client: SwitchClient
    changes: list[EntityChange]
    "Those that the switch may have taken, and that are not taken back."
    is_answered: bool = False
    "Whether the switch has answered, and taken all."

    async def take_back(self) -> str:
        """Bring the entities back; why the switch has some of them still, or an empty text."""
        try:
            return await asyncio.wait_for(self._take_back(), TAKE_BACK_TIMEOUT_S)
        except FairlaneError as ex:
            return ex.message
        except asyncio.TimeoutError:
            return f"no answer within {TAKE_BACK_TIMEOUT_S:g} s"

    async def _take_back(self) -> str:
        if not self.is_answered:
            self.changes = await self._taken()
        ours, self.is_answered = self.changes, False
        found = await self.client.write_each_with_reasons([one.inverse.update for one in reversed(ours)])
        left = {len(ours) - 1 - index: str(one) for index, one in found.items() if one.code not in _SO_ALREADY}
        self.changes = [ours[index] for index in sorted(left)]
        return next(iter(left.values()), "")

    async def _taken(self) -> list[EntityChange]:
        """What the switch took, never what it refused: there an entity is somebody else's.

        It is compared with what the switch has: a switch need not name each refusal of many, and one that has not answered
        may have taken all.
        """
        canonical = self.client.canonical
        ours = [(entity_key(canonical(one.entity)), one) for one in self.changes]
        last = {key: one.after and canonical(one.after) for key, one in ours}
        there = await read_current(
            self.client, [one.entity for one in self.changes if kind_of(one.entity) not in CELLS]
        )
        return [one for key, one in ours if kind_of(one.entity) in CELLS or same_entity(there.get(key), last[key])]


class Writing:
    """What is being written, batch by batch, so that it can be taken back; whoever uses it has announced what does so."""

    def __init__(self) -> None:
        self._sent: list[_Sent] = []

    async def write(
        self,
        client: SwitchClient,
        changes: Sequence[EntityChange],
        resets: Sequence[Any] = (),
        *,
        keep_going: bool = False,
    ) -> dict[int, Refusal]:
        """Write updates in batches.

        Args:
            client: of the switch.
            changes: what is written.
            resets: updates that are written before, and have no inverse.
            keep_going: whether a batch follows one with a refusal.

        Returns:
            What the switch refused, by index in `resets` and `changes` together.

        Raises:
            FairlaneError: the switch does not answer.
        """
        updates = [(None, reset) for reset in resets] + [(one, one.update) for one in changes]
        refused: dict[int, Refusal] = {}
        for start in range(0, len(updates), BATCH_UPDATES):
            batch = updates[start : start + BATCH_UPDATES]
            sent = _Sent(client, [one for one, _ in batch if one and one.has_inverse])
            self._sent.append(sent)
            answer = await client.write_each_with_reasons([update for _, update in batch])
            sent.changes = [one for at, (one, _) in enumerate(batch) if one and one.has_inverse and at not in answer]
            sent.is_answered = not answer
            refused |= {start + at: refusal for at, refusal in answer.items()}
            if refused and not keep_going:
                break
        return refused

    @property
    def taken(self) -> list[EntityChange]:
        """The changes that were written, and not taken back, in their order."""
        return [one for sent in self._sent for one in sent.changes]

    async def take_back(self) -> dict[str, str]:
        """Bring everything back that can be; by switch why it has some of the changes still (`taken`)."""
        why: dict[str, str] = {}
        for sent in reversed(self._sent):
            if problem := await sent.take_back():
                why.setdefault(str(sent.client.endpoint), problem)
        return why


async def apply(change: ChangeSet, clients: Mapping[str, SwitchClient]) -> None:
    """Write all switches, in batches: all or nothing. What takes it back is announced before (`state/intent.py`).

    Raises what a switch raised, with every switch as it was, also when it is cancelled; where one could not be brought
    back, that is in the text. What a switch refused is not ours, and is not taken back.
    """
    writing = Writing()
    if making.get() is not None:
        await announce(change.undo())
    try:
        for switch in change.switches:
            found = await writing.write(clients[switch], change.entries[switch], change.resets.get(switch, ()))
            if found:
                raise refused(found, str(clients[switch].endpoint), change.labels.get(switch, ()))
    except (FairlaneError, asyncio.CancelledError) as problem:
        why = await writing.take_back()
        if not why or not isinstance(problem, FairlaneError):
            raise
        code = ErrorCode.REFUSED if problem.code is ErrorCode.BAD_INPUT else problem.code
        left = [f"what {where} had before could not be written back ({reason})" for where, reason in why.items()]
        raise FairlaneError(code, "; ".join([problem.message, *left]), half_made=True) from None


async def put_entries(client: SwitchClient, entries: Iterable[P4TableEntry]) -> int:
    """Have a switch hold these entries, all or nothing; others stay. Returns how many were written: not what is right already."""
    changes = await missing(client, entries)
    await apply(ChangeSet({client.endpoint.name: changes}), {client.endpoint.name: client})
    return len(changes)


async def plan_plain(client: SwitchClient, updates: Sequence[Plain]) -> list[EntityChange]:
    """The changes that plain updates mean on a switch as it is now. Raises BAD_INPUT for updates that the P4Info refuses."""
    checked = plain_updates(updates_of(updates), client.switch.p4info)
    current = await read_current(client, [client.canonical(entity_of_plain(one)) for one in checked])
    return entity_changes(client, current, checked)


# ---- what is to be written so that tables of a switch have wanted entries -----------------------------------------------


def difference(current: Entries, wanted: Entries, order: Sequence[str] = ()) -> list[EntityChange]:
    """What must be written so that a switch that has `current` has `wanted`. What is right already is not touched.

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
        part = single[start : start + CELLS_A_READ]
        answers = await client.read_entities(part)
        if len(answers) < len(part) > 1:  # one that is not there hides the others
            answers = [answer for one in part for answer in await client.read_entities([one])]
        found |= {entity_key(one): one for one in (entity_of(answer, schema) for answer in answers)}
    return found
