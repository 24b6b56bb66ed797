# SPDX-License-Identifier: Apache-2.0
"""Entries that a switch asks for: a digest announces a new flow, which gets a slot and an entry until nothing matches it any more.

class Flow(NamedTuple):
    src: int
    dst: int

class Control(SwitchControl):
    def __init__(self, session, topology):
        super().__init__(session, topology)
        self.flows = LearnedTable(session, "new_flow_t", ("flow",), slots=1024, key=Flow, action="set_flow")

    async def take_over(self, client):
        await self.flows.take_over(client)

    def jobs(self, client):
        return [*super().jobs(client), *self.flows.jobs(client)]
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Coroutine, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from finsy import GRPCStatusCode, P4CounterData, P4CounterEntry, P4TableAction, P4TableEntry, P4TableMatch

from fairlane_controller.program.control import Session, enable_digest
from fairlane_controller.switch.changeset import Writing
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.entities import EntityChange

Key = TypeVar("Key", bound=Hashable)


class Numbering(Generic[Key]):
    """Numbers of a range, each assigned to one key at a time; memory grows with the keys that exist, and no further.

    A number is assigned again after `release`, and not at once: `resting` of them rest, so that a packet of the old key that waits somewhere
    does not count for the new one. To let a number rest for a time, release its key when that time is over.
    """

    def __init__(self, numbers: range, given: Iterable[tuple[Key, int]] = (), *, resting: int = 0) -> None:
        """Begin with the numbers that keys have already.

        Args:
            numbers: All numbers.
            given: Keys and their numbers, as `adopt` takes them.
            resting: So many released numbers are not assigned again while there are new ones; of the others the one that was released
                first is the next.
        """
        self._numbers = numbers
        self._resting = resting
        self.adopt(given)

    def give(self, key: Key) -> int | None:
        """The number of a key: its own, else a free one.

        Returns:
            The number; None when no number is free.
        """
        if key not in self.given:
            is_last = self._used == len(self._numbers)
            if len(self._released) > self._resting or (self._released and is_last):
                self.given[key] = self._released.popleft()
            elif is_last:
                return None
            else:
                self.given[key] = self._numbers[self._used]
                self._used += 1
        return self.given[key]

    def release(self, key: Key) -> None:
        """The key is gone: another one may have its number."""
        if key in self.given:
            self._released.append(self.given.pop(key))

    def adopt(self, given: Iterable[tuple[Key, int]]) -> list[Key]:
        """Continue from the numbers that keys have, and from no others.

        Args:
            given: Keys and their numbers.

        Returns:
            Keys without a number from now on: it is another key's too, or not one of `numbers`.
        """
        self.given: dict[Key, int] = {}
        taken: set[int] = set()
        without: list[Key] = []
        for key, number in given:
            if number in taken or number not in self._numbers:
                without.append(key)
            else:
                taken.add(number)
                self.given[key] = number
        self._used = self._numbers.index(max(taken)) + 1 if taken else 0
        "The first so many of `numbers` were assigned at some time."
        self._released = deque(number for number in self._numbers[: self._used] if number not in taken)
        return without


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

BATCH_ENTRIES = 500
"Entries that one request deletes."
PAUSE_S = 1.0
"Pause before the next new entry after the switch refused one: its table may be full."
REPORT_PERIOD_S = 10.0
"Missed and refused flows are reported at once, and then once in this time while they go on; `counts` has all."
SINGLE_EVENTS, SINGLE_PERIOD_S = 100, 1.0
"Flows of a period that get an event each; beyond, all flows of a request get one event together."


@dataclass(eq=False)
class LearnedTable(Generic[Key, Value]):
    """The entries of one switch that come by a digest and go by idle notifications: each has the key of a flow, a slot, and a value of the program's own.

    As it is, an entry has the slot and nothing else. Override `learn`, `entry` and `parse` together for keys of other types, for values, and for
    several tables.

    Memory and event log are bounded in a flood: what finds no room is counted. An entry that the switch refuses is retried when its flow is
    announced once more; new entries pause for a second. Events: `flow`, `flow_gone`; of many in a period `flows`, `flows_gone`; `flow_refused`,
    `flows_missed`.
    """

    missed_text: ClassVar[str] = "have no entry"
    "What it means for flows that there is no room for them."

    session: Session
    digest: str
    "Announces flows that have no entry."
    tables: Sequence[str]
    "Those of the entries."
    slots: int
    "The number of slots, from 0 on."
    key: Any = None
    "The type of a key: a `NamedTuple` of numbers, whose names are those of the digest and of the match."
    action: str = ""
    "The action of an entry,"
    slot: str = "slot"
    "and its parameter for the slot."
    idle_timeout_s: float = 30.0
    "An entry goes when nothing has matched it for so long."
    sweep_period_s: float = 30.0
    "Entries whose idle notification was lost are found in this time."
    counter: str = ""
    "An indexed counter of the slots, which begins anew with each flow."
    resting: int = 0
    "Released slots that are not assigned again yet (`Numbering`)."

    def __post_init__(self) -> None:
        self.numbers = Numbering[Key](range(self.slots), resting=self.resting)
        "The slot assignment of each flow (`given`)."
        self.values: dict[Key, Value] = {}
        "The value of each flow that has an entry."
        self.counts = dict.fromkeys(("entries", "known", "missed", "refused", "lost"), 0)
        """Outcomes of announced flows. `entries` got an entry, `known` had one, or came twice in a list. `missed`: every slot was in use, or new
        entries pause. `refused`: by the switch. `lost` found no room; not acknowledged, so the switch announces them again."""
        self._paused_until_s = 0.0
        self._quiet_until_s: dict[str, float] = {}
        "By reason: the time of the next report of missed or refused flows."
        self._period_ends_s, self._events_left = -math.inf, 0

    # ---- what a program may override -----------------------------------------------------------------------------------

    def learn(self, values: Mapping[str, Any]) -> tuple[Key, Value]:
        """Key and value of an announced flow.

        Args:
            values: One element of a digest list, by the names of its fields.
        """
        value: Any = None
        return self.key(*(int(values[name]) for name in self.key._fields)), value

    def entry(self, key: Any, slot: int, value: Value) -> P4TableEntry:
        """The entry of a flow, without its idle time-out. Pure."""
        action = P4TableAction(self.action, **{self.slot: slot})
        return P4TableEntry(self.tables[0], match=P4TableMatch(key._asdict()), action=action)

    def parse(self, entry: P4TableEntry) -> tuple[Key, int, Value]:
        """The inverse of `entry`; the slot is -1 where the entry has no action, as in an idle notification."""
        slot = int(entry.action.args[self.slot]) if isinstance(entry.action, P4TableAction) else -1
        key, value = self.learn(entry.match or {})
        return key, slot, value

    # ---- what a program uses -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.values)

    async def take_over(self, client: SwitchClient) -> int:
        """Continue from the switch's entries, and have it send the digest. Entries that share a slot, or aged out meanwhile, are deleted.

        Args:
            client: The new connection.

        Returns:
            The number of flows.
        """
        entries = await self._read(client)
        found = [self.parse(entry) for entry in entries]
        without = set(self.numbers.adopt((key, slot) for key, slot, _ in found))
        self.values = {key: value for key, _, value in found if key not in without}
        self._paused_until_s = 0.0
        doubled = [entry for entry, (key, _, _) in zip(entries, found, strict=True) if key in without]
        await self._delete(client, doubled, any_slot=True)
        await self._sweep(client, entries)
        await enable_digest(self.session, client, self.digest)
        return len(self)

    def jobs(self, client: SwitchClient) -> list[Coroutine[Any, Any, None]]:
        """What runs while the switch is connected: among `SwitchControl.jobs`."""
        jobs = self._listen_new, self._listen_idle, self._sweep_forever
        return [job(client) for job in jobs]

    async def change(self, client: SwitchClient, values: Mapping[Key, Value]) -> int:
        """Give flows that have an entry other values, in one request of those that differ. The caller has acquired `session.writes`.

        Args:
            client: The connection to the switch.
            values: The new values; flows without an entry are left out.

        Returns:
            The number of entries that were written. A refusal is reported.
        """
        current = self.values
        changed = {k: v for k, v in values.items() if k in current and v != current[k]}
        changes = {k: EntityChange(self._entry(k, current[k]), self._entry(k, v)) for k, v in changed.items()}
        done = await self._write(client, changes)
        for key in done:
            current[key] = changed[key]
        return len(done)

    async def read_counts(self, client: SwitchClient) -> dict[Key, tuple[P4CounterData, P4CounterData]]:
        """Read the counters of all flows with one request.

        Args:
            client: The connection to the switch.

        Returns:
            By flow the entry's direct counter, and the cell of `counter` of its slot.
        """
        none = P4CounterData()
        asked: list[Any] = [P4TableEntry(table, counter_data=none) for table in self.tables]
        if self.counter:
            asked += [P4CounterEntry(self.counter, index=slot) for slot in self.numbers.given.values()]
        answers = await client.read_entities(asked)
        cells = {answer.index: answer.data for answer in answers if isinstance(answer, P4CounterEntry)}
        entries = [(self.parse(answer), answer) for answer in answers if isinstance(answer, P4TableEntry)]
        return {key: (entry.counter_data or none, cells.get(slot) or none) for (key, slot, _), entry in entries}

    def status(self) -> dict[str, int]:
        """`counts`, and the number of all flows that were announced (`told`)."""
        return {"told": sum(self.counts.values()), **self.counts}

    # ---- flows come ----------------------------------------------------------------------------------------------------

    async def _listen_new(self, client: SwitchClient) -> None:
        """Take what is announced; in a flood the connection's queue is bounded, and what it has lost is counted."""
        lost = 0
        async for values in client.digests(self.digest):
            before, lost = lost, client.digests_lost(self.digest)
            self.counts["lost"] += lost - before
            self._report_missed(lost - before, "they came faster than their entries could be written")
            learned = dict(map(self.learn, values))
            self.counts["known"] += len(values) - len(learned)
            await self.insert(client, learned)

    async def insert(self, client: SwitchClient, learned: Mapping[Key, Value]) -> None:
        """Insert entries for new flows, in one request.

        Args:
            client: The connection to the switch.
            learned: Flows with their values; those that have an entry are counted and left alone.
        """
        async with self.session.writes:
            new = [key for key in learned if key not in self.values]
            slots: dict[Key, int] = {}
            for key in new if _now_s() >= self._paused_until_s else ():
                slot = self.numbers.give(key)
                if slot is not None:
                    slots[key], self.values[key] = slot, learned[key]
            counter, changes = self.counter, {key: EntityChange(None, self._entry(key, learned[key])) for key in slots}
            resets = [~P4CounterEntry(counter, index=slot, data=P4CounterData()) for slot in slots.values() if counter]
            done = {key: slots[key] for key in await self._write(client, changes, resets)}
            for key in [key for key in slots if key not in done]:
                self._forget(key)
            self.counts["known"] += len(learned) - len(new)
            self.counts["entries"] += len(done)
            self.counts["missed"] += len(new) - len(slots)
            self.counts["refused"] += len(slots) - len(done)
            self._report("", done)
            self._report_missed(
                len(new) - len(slots), "every slot for a flow is taken, or the switch just refused an entry"
            )

    # ---- and go --------------------------------------------------------------------------------------------------------

    async def _listen_idle(self, client: SwitchClient) -> None:
        async for notification in client.switch.read_idle_timeouts(queue_size=10_000):
            await self._delete(client, [entry for entry in notification if entry.table_id in self.tables])

    async def _sweep_forever(self, client: SwitchClient) -> None:
        """Find entries whose idle notification was lost: it goes to the primary only, and once."""
        while True:
            await asyncio.sleep(self.sweep_period_s)
            await self._sweep(client, await self._read(client))

    async def _sweep(self, client: SwitchClient, entries: Sequence[P4TableEntry]) -> None:
        ours = self._idle_timeout_ns
        old = [one for one in entries if (one.time_since_last_hit or 0) > 1.5 * (one.idle_timeout_ns or ours)]
        await self._delete(client, old)

    async def _delete(self, client: SwitchClient, entries: Sequence[P4TableEntry], *, any_slot: bool = False) -> None:
        """Delete entries whose flows have the slot of the entry: a flow with another one has come back meanwhile."""
        given = self.numbers.given
        for start in range(0, len(entries), BATCH_ENTRIES):
            async with self.session.writes:
                found = [(entry, *self.parse(entry)) for entry in entries[start : start + BATCH_ENTRIES]]
                ours = {
                    key: EntityChange(entry, None)
                    for entry, key, slot, _ in found
                    if any_slot or slot in (-1, given.get(key))
                }
                done = await self._write(client, ours, may_be_gone=True)
                for key in done:
                    self._forget(key)
                self._paused_until_s = 0.0
                self._report("_gone", dict.fromkeys(done))

    def _forget(self, key: Key) -> None:
        self.numbers.release(key)
        self.values.pop(key, None)

    # ---- requests and reports ------------------------------------------------------------------------------------------

    @property
    def _idle_timeout_ns(self) -> int:
        return int(self.idle_timeout_s * 1e9)

    def _entry(self, key: Key, value: Value) -> P4TableEntry:
        entry = self.entry(key, self.numbers.given[key], value)
        entry.idle_timeout_ns = self._idle_timeout_ns
        return entry

    async def _read(self, client: SwitchClient) -> list[P4TableEntry]:
        return [entry for table in self.tables for entry in await client.read_table(table, idle=True)]

    async def _write(
        self,
        client: SwitchClient,
        changes: Mapping[Key, EntityChange],
        resets: Sequence[Any] = (),
        *,
        may_be_gone: bool = False,
    ) -> list[Key]:
        """Write each change that the switch takes; the others are reported.

        Args:
            client: The connection to the switch.
            changes: A change of the entry of each flow.
            resets: Updates that are written before.
            may_be_gone: Whether an entry that is not there is as good as deleted.

        Returns:
            The flows whose change is made.
        """
        refused = await Writing().write(client, [*changes.values()], resets, keep_going=True)
        done: list[Key] = []
        for index, (key, change) in enumerate(changes.items(), start=len(resets)):
            refusal = refused.get(index)
            if refusal is None or (may_be_gone and refusal.code is GRPCStatusCode.NOT_FOUND):
                done.append(key)
            else:
                why = f"the switch refused the entry of {key}: {refusal}"
                code = refusal.code.name
                self._report_rarely("flow_refused", code, flow=str(key), code=code, why=why)
                if change.before is None:
                    self._paused_until_s = _now_s() + PAUSE_S
        return done

    def _report(self, end: str, flows: Mapping[Key, int | None]) -> None:
        """Report flows that came (`flow`, with their slots) or went (`flow_gone`): an event each; in a flood one event a request."""
        now_s = _now_s()
        if now_s >= self._period_ends_s:
            self._period_ends_s, self._events_left = now_s + SINGLE_PERIOD_S, SINGLE_EVENTS
        if len(flows) > self._events_left:
            self.session.event(f"flows{end}", flows=len(flows), first=str(next(iter(flows))))
            return
        self._events_left -= len(flows)
        for key, slot in flows.items():
            self.session.event(f"flow{end}", flow=str(key), **({} if slot is None else {"slot": slot}))

    def _report_missed(self, flows: int, reason: str) -> None:
        if flows:
            why = f"{flows} new flows {self.missed_text}: {reason}"
            self._report_rarely("flows_missed", reason, flows=flows, why=why)

    def _report_rarely(self, event: str, reason: str, **fields: Any) -> None:
        """Report something at once, and then once in a period while it goes on for that reason."""
        if _now_s() >= self._quiet_until_s.get(reason, 0.0):
            self._quiet_until_s[reason] = _now_s() + REPORT_PERIOD_S
            self.session.event(event, **fields)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
