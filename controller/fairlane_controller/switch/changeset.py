# SPDX-License-Identifier: Apache-2.0
"""Changes of table entries on any number of switches, each with what was there before: so every change has an inverse.

current = await read_entries(client, tables)
change = ChangeSet({"s1": difference(current, wanted, tables)})
await apply(change, {"s1": client}, commit)          # all switches, then `commit`: all or nothing
undo = change.undo()                                 # requests of the journal that take it back
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from finsy import GRPCStatusCode, P4TableEntry

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.intent import announce
from fairlane_controller.state.store import release_room
from fairlane_controller.switch.client import SwitchClient, entry_key, same_entry
from fairlane_controller.switch.difference import Entries, EntryChange, difference, entries_by_key, read_entries
from fairlane_controller.switch.faults import Refusal, refused
from fairlane_controller.switch.updates import Plain, entry_of, plain_updates, updates_of

BATCH_UPDATES = 5_000
"""More than this goes in several batches, so that no message exceeds gRPC's 4 MB."""
TAKE_BACK_TIMEOUT_S = 10.0
"""How long a switch may take to have again what it had."""

_SO_ALREADY = (GRPCStatusCode.NOT_FOUND, GRPCStatusCode.ALREADY_EXISTS)
"""What a switch says of taking back an update that it had not taken: when it does not answer, nobody knows what it took."""


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

    def undo(self, settings: Mapping[str, Plain] | None = None) -> list[Plain]:
        """The requests `table_write` that take it back, the last switch first; `settings`: what each remembers before it, by switch."""
        inverse, settings = self.inverse, settings or {}
        made: list[Plain] = []
        for switch in inverse.entries:
            one: Plain = {"op": "table_write", "switch": switch, "updates": inverse.updates(switch)}
            made.append({**one, "settings": settings[switch]} if settings.get(switch) else one)
        return made


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


@dataclass
class _Begun:
    """A batch that was sent to a switch."""

    client: SwitchClient
    changes: Sequence[EntryChange | None]
    "None: an update without an inverse."
    refused: Mapping[int, Refusal] | None = None
    "None: the switch did not answer."

    async def take_back(self) -> str:
        """Bring entries back; what is wrong when that fails."""
        try:
            why = await asyncio.wait_for(self._take_back(), TAKE_BACK_TIMEOUT_S)
        except FairlaneError as ex:
            why = ex.message
        except (TimeoutError, asyncio.TimeoutError):
            why = f"no answer within {TAKE_BACK_TIMEOUT_S:g} s"
        return f"what {self.client.endpoint} had before could not be written back ({why})" if why else ""

    async def _take_back(self) -> str:
        ours = [one for one in await self._taken() if one is not None]
        found = await self.client.write_each_with_reasons([one.inverse.update for one in reversed(ours)])
        return next((str(one) for one in found.values() if one.code not in _SO_ALREADY), "")

    async def _taken(self) -> Sequence[EntryChange | None]:
        """What the switch took, never what it refused: there an entry is somebody else's.

        A batch with a refusal, or without an answer, is compared with what the switch has: it need not name each refusal of many.
        """
        if self.refused is not None and not self.refused:
            return self.changes
        refused, canonical = self.refused or {}, self.client.canonical
        ours = [one for index, one in enumerate(self.changes) if one is not None and index not in refused]
        keys = [entry_key(canonical(one.entry)) for one in ours]
        last = {key: one.after and canonical(one.after) for key, one in zip(keys, ours, strict=True)}
        there = await read_entries(self.client, sorted({one.entry.table_id for one in ours}))
        return [one for key, one in zip(keys, ours, strict=True) if same_entry(there.get(key), last[key])]


async def nothing_to_commit() -> None:
    """For changes of switches alone."""


async def apply(
    change: ChangeSet,
    clients: Mapping[str, SwitchClient],
    commit: Callable[[], Awaitable[None]] = nothing_to_commit,
    undo: Sequence[Plain] | None = None,
) -> None:
    """Write all switches, in batches, then call `commit` (documents and journal, in one transaction): all or nothing.

    What takes it back (`undo`; None: `change.undo()`) is announced before (`state/intent.py`).

    Raises what a switch or `commit` raised, with every switch as it was, also when it is cancelled; where one could not be brought
    back, that is in the text. What a switch refused is not ours, and is not taken back.
    """
    begun: list[_Begun] = []
    committing: asyncio.Future[None] | None = None
    undo = change.undo() if undo is None else undo
    await announce([one for one in undo if one.get("updates") or one.get("settings")])
    try:
        for switch, changes in change.entries.items():
            client, resets = clients[switch], change.resets.get(switch, ())
            updates = [(None, reset) for reset in resets] + [(one, one.update) for one in changes]
            for start in range(0, len(updates), BATCH_UPDATES):
                batch = updates[start : start + BATCH_UPDATES]
                begun.append(_Begun(client, [one for one, _ in batch]))
                begun[-1].refused = found = await client.write_each_with_reasons([update for _, update in batch])
                if found:
                    raise refused(found, str(client.endpoint))
        committing = asyncio.ensure_future(commit())
        await asyncio.shield(committing)
    except (FairlaneError, asyncio.CancelledError) as problem:
        if committing is not None:
            await asyncio.wait((committing,))
            if committing.exception() is None:  # all is made and kept: there is nothing to take back
                raise
        release_room()
        failed = [text for batch in reversed(begun) if (text := await batch.take_back())]
        if not failed or not isinstance(problem, FairlaneError):
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
    first: Sequence[EntryChange] = (),
) -> Applied:
    """Make `tables` (in the order of insertion) of a switch have exactly `entries`, all or nothing; `resets` are written before.

    `current`: what the tables have, where it was read already; `first`: changes of other tables that are made with them.
    """
    name, wanted = client.endpoint.name, entries_by_key(client, entries)
    changes = difference(await read_entries(client, tables) if current is None else current, wanted, tables)
    changes = [*first, *changes]
    await apply(ChangeSet({name: changes}, {name: resets}), {name: client})
    return Applied(len(changes), wanted)


async def write_plain(
    client: SwitchClient,
    updates: Sequence[Plain],
    commit: Callable[[], Awaitable[None]] = nothing_to_commit,
    settings: Plain | None = None,
) -> Plain:
    """Plain updates into one switch, then `commit`, all or nothing; returns the request that takes it back.

    `settings`: what was remembered before of what `commit` changes. Raises BAD_INPUT for updates that the P4Info refuses.
    """
    checked = plain_updates(updates_of(updates), client.switch.p4info)
    current = await read_entries(client, sorted({str(one["table"]) for one in checked}))
    name = client.endpoint.name
    change = ChangeSet({name: entry_changes(client, current, checked)})
    (undo,) = change.undo({name: settings or {}})
    await apply(change, {name: client}, commit, [undo])
    return undo
