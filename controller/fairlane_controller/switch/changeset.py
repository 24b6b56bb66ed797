# SPDX-License-Identifier: Apache-2.0
"""Changes of table entries on any number of switches, each with what was there before: so every change has an inverse.

current = await read_entries(client, tables)
change = ChangeSet({"s1": difference(current, wanted, tables)})
await apply(change, {"s1": client}, commit)          # all switches, then `commit`: all or nothing
undo = change.inverse.updates("s1")                  # plain data, for the journal
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from finsy import GRPCStatusCode, P4TableEntry

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.store import release_room
from fairlane_controller.switch.client import SwitchClient, entry_key
from fairlane_controller.switch.difference import Entries, EntryChange, difference, entries_by_key, read_entries
from fairlane_controller.switch.updates import Plain, entry_of, plain_updates, updates_of

BATCH_UPDATES = 5_000
"""More than this goes in several batches, so that no message exceeds gRPC's 4 MB."""

_SO_ALREADY = (GRPCStatusCode.NOT_FOUND, GRPCStatusCode.ALREADY_EXISTS)
"""What a switch says of taking back an update that it had not taken."""


@dataclass(frozen=True)
class ChangeSet:
    """Changes of entries by switch, in the order in which they are written."""

    entries: Mapping[str, Sequence[EntryChange]] = field(default_factory=lambda: dict[str, Sequence[EntryChange]]())
    resets: Mapping[str, Sequence[Any]] = field(default_factory=lambda: dict[str, Sequence[Any]]())
    "Updates that go before them and have no inverse: counters that begin anew."

    @property
    def inverse(self) -> ChangeSet:
        """What takes all of it back."""
        return ChangeSet(
            {
                switch: [one.inverse for one in reversed(changes)]
                for switch, changes in reversed(list(self.entries.items()))
            }
        )

    def updates(self, switch: str) -> list[Plain]:
        """The updates of one switch as plain data."""
        return [one.to_json() for one in self.entries.get(switch, ())]


def entry_changes(client: SwitchClient, current: Entries, updates: Iterable[Plain]) -> list[EntryChange]:
    """The changes that plain updates mean on a switch with `current` in their tables.

    An update says what is to be there in the end: an entry that is there already is modified, one that is to go and is not
    there is left out. Raises BAD_INPUT when the P4Info refuses one.
    """
    there: dict[str, P4TableEntry | None] = dict(current)
    changes: list[EntryChange] = []
    for one in updates:
        wanted = client.canonical(entry_of(one))
        key = entry_key(wanted)
        before, after = there.get(key), None if one["update"] == "delete" else wanted
        there[key] = after
        if before is not None or after is not None:
            changes.append(EntryChange(before, after))
    return changes


async def nothing_to_commit() -> None:
    """For changes of switches alone."""


async def apply(
    change: ChangeSet,
    clients: Mapping[str, SwitchClient],
    commit: Callable[[], Awaitable[None]] = nothing_to_commit,
) -> None:
    """Write all switches, in batches, then call `commit` (documents and journal, in one transaction): all or nothing.

    Raises what a switch or `commit` raised, with every switch as it was; where one could not be brought back, that is in the text.
    """
    begun: list[tuple[SwitchClient, Sequence[EntryChange]]] = []
    try:
        for switch, changes in change.entries.items():
            resets = change.resets.get(switch, ())
            updates = [*resets, *(one.update for one in changes)]
            for start in range(0, len(updates), BATCH_UPDATES):
                end = start + BATCH_UPDATES
                begun.append((clients[switch], changes[max(start - len(resets), 0) : max(end - len(resets), 0)]))
                await clients[switch].write(updates[start:end])
        await commit()
    except FairlaneError as problem:
        release_room()
        failed = [text for client, batch in reversed(begun) if (text := await _take_back(client, batch))]
        if not failed:
            raise
        code = ErrorCode.REFUSED if problem.code is ErrorCode.BAD_INPUT else problem.code
        raise FairlaneError(code, f"{problem.message}; {'; '.join(failed)}") from None


@dataclass(frozen=True)
class Applied:
    """How many entries of a switch changed, and what its tables have now."""

    written: int
    after: Entries


async def apply_entries(
    client: SwitchClient,
    tables: Sequence[str],
    entries: Iterable[P4TableEntry],
    resets: Sequence[Any] = (),
    current: Entries | None = None,
) -> Applied:
    """Make `tables` (in the order of insertion) of a switch have exactly `entries`, all or nothing; `resets` are written before.

    `current`: what the tables have, where it was read already.
    """
    name, wanted = client.endpoint.name, entries_by_key(client, entries)
    changes = difference(await read_entries(client, tables) if current is None else current, wanted, tables)
    await apply(ChangeSet({name: changes}, {name: resets}), {name: client})
    return Applied(len(changes), wanted)


async def write_plain(
    client: SwitchClient, updates: Sequence[Plain], commit: Callable[[], Awaitable[None]] = nothing_to_commit
) -> ChangeSet:
    """Plain updates into one switch, then `commit`, all or nothing. Raises BAD_INPUT for those that its P4Info refuses."""
    checked = plain_updates(updates_of(updates), client.switch.p4info)
    current = await read_entries(client, sorted({str(one["table"]) for one in checked}))
    change = ChangeSet({client.endpoint.name: entry_changes(client, current, checked)})
    await apply(change, {client.endpoint.name: client}, commit)
    return change


async def _take_back(client: SwitchClient, batch: Sequence[EntryChange]) -> str:
    """Bring entries back, of which the switch may have taken a part only; what is wrong when that fails."""
    updates = [one.inverse.update for one in reversed(batch)]
    try:
        refused = await client.write_each_with_reasons(updates)
    except FairlaneError as ex:
        why = ex.message
    else:
        why = next((str(one) for one in refused.values() if one.code not in _SO_ALREADY), "")
    return f"what {client.endpoint} had before could not be written back ({why})" if why else ""
