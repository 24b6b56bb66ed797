# SPDX-License-Identifier: Apache-2.0
"""Keeps the flow entries of one switch: inserts on new-flow digests, deletes what aged out, adopts after a restart."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from finsy import GRPCStatusCode, P4CounterData, P4CounterEntry, P4TableAction, P4TableEntry, P4TableMatch

from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.flows import FlowKey, FlowTable
from fairlane_controller.programs.qthresh.law import FlowCount
from fairlane_controller.programs.qthresh.new_flows import FlowEvents, FlowPauses, MissedFlows, NewFlowCounts
from fairlane_controller.state.events import EventLog
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.faults import Refusal

FlowWeight = Callable[[FlowKey], "float | None"]
"""The weight that a flow should have; None: its class's."""


MAX_WAITING = 8192
"Notifications of new flows that may wait for their entries."
BATCH_FLOWS = 500
"Flows of one request; each takes two updates."
FULL_PAUSE_S = 1.0
"Pause before the next new entry after the switch reported a full table."

_METADATA = re.compile(rb"(?:(?P<port>\d{1,3})/(?P<class>[0-7]))?(?P<tuned> ?tuned(?P<own>\d*))?")
"""Of our entries: `PORT/CLASS` of the flow; behind it ` tuned` where the weight in the switch is the law's, with the flow's own weight in
1/256, if it has one."""


def metadata_of(place: tuple[int, int] | None, *, tuned: bool = False, own: float | None = None) -> bytes:
    """What a flow's entry says beside its action: its place, that its weight is tuned, its own weight."""
    where = "" if place is None else f"{place[0]}/{place[1]}"
    weight = "" if own is None else program.encode_weight(own)
    return (where + (f" tuned{weight}" if tuned else "")).encode()


def place_of(entry: P4TableEntry) -> tuple[int, int] | None:
    """(egress port, class) of the flow, where its entry says so."""
    found = _METADATA.fullmatch(entry.metadata)
    return (int(found["port"]), int(found["class"])) if found and found["port"] else None


def weight_of(entry: P4TableEntry) -> float | None:
    """The flow's own weight out of its entry; None: it has its class's."""
    found = _METADATA.fullmatch(entry.metadata)
    if found and found["tuned"]:
        return program.decode_weight(int(found["own"])) if found["own"] else None
    action = entry.action
    if not isinstance(action, P4TableAction) or not action.args.get("weight"):
        return None
    return program.decode_weight(int(action.args["weight"]))


def tuned_weight_of(entry: P4TableEntry) -> int | None:
    """The weight in 1/256 that tuning gave the entry; None when it is not tuned."""
    action, found = entry.action, _METADATA.fullmatch(entry.metadata)
    if not found or not found["tuned"] or not isinstance(action, P4TableAction):
        return None
    return int(action.args.get("weight", 0)) or None


def flow_of(entry: P4TableEntry) -> tuple[FlowKey, int]:
    """A flow's key and slot out of its entry."""
    action = entry.action
    slot = int(action.args["flow_id"]) if isinstance(action, P4TableAction) else -1
    return FlowKey.from_match(entry.table_id, entry.match or P4TableMatch()), slot


class FlowKeeper:
    """The flow entries of one switch."""

    def __init__(self, log: EventLog, idle_timeout_s: float, weight_of_new: FlowWeight | None = None) -> None:
        self.table = FlowTable()
        self.counts_of_new = NewFlowCounts()
        self.places: dict[FlowKey, tuple[int, int]] = {}
        "(egress port, class) of the flows, by their digests and by what their entries say."
        self._log = log
        self._idle_timeout_s = idle_timeout_s
        self.weight_of_new = weight_of_new
        "What gives a new flow its own weight."
        self._own: dict[FlowKey, float] = {}
        "The flows' own weights; the others have their class's."
        self._tuned: dict[FlowKey, int] = {}
        "Weights in 1/256 that tuning put into the switch."
        self._taps = 0
        "The newest number of a tap."
        self._waiting: deque[dict[str, Any]] = deque()
        self._inserting = 0
        "Flows of the request that is on its way."
        self._some_waiting = asyncio.Event()
        self._missed = MissedFlows(log)
        self._came, self._went = FlowEvents(log, "flow"), FlowEvents(log, "flow_gone")
        self._pauses = FlowPauses()
        self._full_until_s = 0.0

    def use_idle_timeout(self, idle_timeout_s: float) -> None:
        """The time after which entries that are made from now on age out."""
        self._idle_timeout_s = idle_timeout_s

    async def take_over(self, client: SwitchClient) -> int:
        """Adopt the switch's entries; those that share a slot with another, or aged out meanwhile, are deleted."""
        entries = await self._read(client)
        doubled = set(self.table.adopt(flow_of(entry) for entry in entries))
        keyed = {flow_of(entry)[0]: entry for entry in entries}
        self._own = {key: own for key, entry in keyed.items() if (own := weight_of(entry)) is not None}
        self._tuned = {key: tuned for key, entry in keyed.items() if (tuned := tuned_weight_of(entry)) is not None}
        said = {key: place for key, entry in keyed.items() if (place := place_of(entry)) is not None}
        self.places = {key: place for key, place in (self.places | said).items() if key in self.table}
        self._pauses.clear()
        self._full_until_s = 0.0
        await self._delete(client, doubled)
        await self._sweep(client, entries)
        return len(self.table)

    async def listen_new(self, client: SwitchClient) -> None:
        """Give every new flow a slot and an entry, until cancelled. A flood waits in bounded memory; the rest is counted."""
        inserting = asyncio.create_task(self._insert_forever(client))
        seen_lost = 0
        try:
            async for values in client.digests(program.DIGEST_NEW_FLOW):
                if inserting.done():
                    inserting.result()
                all_lost = client.digests_lost(program.DIGEST_NEW_FLOW)
                lost, seen_lost = all_lost - seen_lost, all_lost
                room = MAX_WAITING - len(self._waiting)
                self._waiting.extend(values[:room])
                self.counts_of_new.told += len(values[:room])
                self._count_lost(client, lost + len(values[room:]))
                self._some_waiting.set()
        finally:
            inserting.cancel()
            await asyncio.gather(inserting, return_exceptions=True)
            self.counts_of_new.told -= len(self._waiting) + self._inserting
            self._waiting.clear()
            self._inserting = 0
            for told in (self._came, self._went):
                told.flush(client.endpoint.name)

    def _count_lost(self, client: SwitchClient, lost: int) -> None:
        if lost > 0:
            self.counts_of_new.lost += lost
            self.counts_of_new.told += lost
            self._missed.tell(client.endpoint.name, lost, "they came faster than their entries could be written")

    async def _insert_forever(self, client: SwitchClient) -> None:
        while True:
            await self._some_waiting.wait()
            self._some_waiting.clear()
            while self._waiting:
                values = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_FLOWS))]
                places = {FlowKey.from_digest(v): (int(v["egress_port"]), int(v["traffic_class"])) for v in values}
                self.counts_of_new.known += len(values) - len(places)
                self._inserting = len(places)
                await self.add(client, places)
                self._inserting = 0

    async def listen_idle(self, client: SwitchClient) -> None:
        """Delete the entries that aged out, until cancelled."""
        async for notification in client.switch.read_idle_timeouts(queue_size=10_000):
            tables = set(program.TABLE_FLOW.values())
            await self._delete(client, {flow_of(e)[0] for e in notification if e.table_id in tables})

    async def sweep_forever(self, client: SwitchClient, period_s: float) -> None:
        """Find entries whose idle notification was lost (it goes to the primary only, and once)."""
        while True:
            await asyncio.sleep(period_s)
            await self._sweep(client, await self._read(client))

    async def add(self, client: SwitchClient, places: Mapping[FlowKey, tuple[int, int]]) -> None:
        """Insert entries for the flows that have none, with their (egress port, class); one batch. A refused one stays in its
        fallback slot, and is tried again when it is new once more and its pause is over."""
        added: list[FlowKey] = []
        updates: list[Any] = []
        now_s, counts, missed = asyncio.get_running_loop().time(), self.counts_of_new, 0
        for key, place in places.items():
            if key in self.table:
                self.places[key] = place
                counts.known += 1
                continue
            if self._pauses.holds(key, now_s):
                counts.refused += 1
                continue
            slot = self.table.allocate(key) if now_s >= self._full_until_s else None
            if slot is None:
                missed += 1
                continue
            added.append(key)
            updates.append(~P4CounterEntry(program.COUNTER_FLOW_DROPS, index=slot, data=P4CounterData()))
            weight = self.weight_of_new(key) if self.weight_of_new else None
            if weight is not None:
                self._own[key] = weight
            entry = key.entry(slot, self._idle_timeout_s, weight)
            entry.metadata = metadata_of(place)
            self.places[key] = place
            updates.append(+entry)
        failed = await client.write_each_with_reasons(updates)
        taken: list[FlowKey] = []
        for position, key in enumerate(added):
            refusal = failed.get(2 * position + 1)
            if refusal is None:
                taken.append(key)
                continue
            self._forget(key)
            if refusal.code is GRPCStatusCode.RESOURCE_EXHAUSTED:
                self._full_until_s = now_s + FULL_PAUSE_S
                missed += 1
                continue
            counts.refused += 1
            self._tell_refused(client, key, refusal, now_s)
        counts.entries += len(taken)
        self._came.tell(client.endpoint.name, [(key, self.table.slot(key)) for key in taken])
        if missed:
            counts.missed += missed
            self.table.missed = counts.missed
            self._missed.tell(client.endpoint.name, missed, "every slot for a flow is taken")

    def digests(self) -> dict[str, int]:
        """The outcome of all notifications of new flows: `told` is the number received, the sum of the others and of those that wait."""
        return {**asdict(self.counts_of_new), "waiting": len(self._waiting) + self._inserting}

    def _tell_refused(self, client: SwitchClient, key: FlowKey, refusal: Refusal, now_s: float) -> None:
        pause_s = self._pauses.refused(key, now_s)
        self._log.write(
            "flow_refused",
            switch=client.endpoint.name,
            flow=str(key),
            code=refusal.code.name,
            again_s=pause_s,
            why=f"the switch refused the entry of {key}, which is tried again after {pause_s:g} s at the earliest: {refusal}",
        )

    async def tap(self, client: SwitchClient, keys: Collection[FlowKey]) -> int:
        """Have each of these flows lose one packet; one batch. Their weights are their own or their class's. Returns how many were written."""
        tapped = [key for key in keys if key in self.table]
        if not tapped:
            return 0
        self._taps = self._taps % program.TAPS + 1
        entries = [
            key.entry(self.table.slot(key), self._idle_timeout_s, self._own.get(key), self._taps) for key in tapped
        ]
        for key, entry in zip(tapped, entries, strict=True):
            entry.metadata = metadata_of(self.places.get(key))
            self._tuned.pop(key, None)
        failed = await client.write_each([~entry for entry in entries])
        return len(tapped) - len(failed)

    async def tune(self, client: SwitchClient, weights: Mapping[FlowKey, int]) -> int:
        """Put these weights (1/256) into the flows' entries, one batch of those that differ; returns how many were written."""
        now_s = asyncio.get_running_loop().time()
        changed = {
            key: weight
            for key, weight in weights.items()
            if self._tuned.get(key) != weight and key in self.table and not self._pauses.holds(key, now_s)
        }
        updates: list[Any] = []
        for key, weight in changed.items():
            entry = key.entry(self.table.slot(key), self._idle_timeout_s, program.decode_weight(weight))
            entry.metadata = metadata_of(self.places.get(key), tuned=True, own=self._own.get(key))
            updates.append(~entry)
        before = {key: self._tuned.get(key) for key in changed}
        self._tuned |= changed  # before it is written: a flow that goes meanwhile, and maybe comes back, is not tuned
        failed = await client.write_each_with_reasons(updates)
        for position, key in enumerate(changed):
            if position not in failed:
                self._pauses.accepted(key)
                continue
            self._tell_refused(client, key, failed[position], now_s)
            was = before[key]
            if key in self._tuned and was is not None:
                self._tuned[key] = was
            else:
                self._tuned.pop(key, None)
        return len(changed) - len(failed)

    def own_weight(self, key: FlowKey) -> float | None:
        """The flow's own weight; None: it has its class's."""
        return self._own.get(key)

    def tuned(self, keys: Iterable[FlowKey], qthresh_packets: int) -> dict[FlowKey, int]:
        """The thresholds in packets of those flows that are tuned, beside the class's `qthresh_packets`."""
        return {key: qthresh_packets * self._tuned[key] >> 8 for key in keys if key in self._tuned}

    async def untune(self, client: SwitchClient, keys: Iterable[FlowKey]) -> int:
        """Give these flows their own or their class's weight back; returns how many were changed."""
        tuned = [key for key in keys if key in self._tuned and key in self.table]
        entries = [key.entry(self.table.slot(key), self._idle_timeout_s, self._own.get(key)) for key in tuned]
        for key, entry in zip(tuned, entries, strict=True):
            entry.metadata = metadata_of(self.places.get(key))
        failed = await client.write_each([~entry for entry in entries])
        for position, key in enumerate(tuned):
            if position not in failed:
                self._tuned.pop(key, None)
        return len(tuned) - len(failed)

    async def counts(self, client: SwitchClient) -> dict[FlowKey, FlowCount]:
        """Counters of every flow so far; two requests. A flow without a weight of its own has 1 here."""
        arrived: dict[FlowKey, tuple[int, float, P4CounterData]] = {}
        for table in program.TABLE_FLOW.values():
            for entry in await client.read_table(table, counters=True):
                key, slot = flow_of(entry)
                arrived[key] = (slot, weight_of(entry) or 1.0, entry.counter_data or P4CounterData())
        dropped = await client.read_counters(program.COUNTER_FLOW_DROPS, [slot for slot, _, _ in arrived.values()])
        none = P4CounterData()
        return {
            key: FlowCount(
                cell.packet_count,
                cell.byte_count,
                dropped.get(slot, none).packet_count,
                dropped.get(slot, none).byte_count,
                weight,
            )
            for key, (slot, weight, cell) in arrived.items()
        }

    async def _read(self, client: SwitchClient) -> list[P4TableEntry]:
        entries: list[P4TableEntry] = []
        for table in program.TABLE_FLOW.values():
            entries += await client.read_table(table, idle=True)
        return entries

    async def _sweep(self, client: SwitchClient, entries: Iterable[P4TableEntry]) -> None:
        ours_ns = round(self._idle_timeout_s * 1e9)
        idle = dict(
            flow_of(entry)
            for entry in entries
            if (entry.time_since_last_hit or 0) > 1.5 * (entry.idle_timeout_ns or ours_ns)
        )
        await self._delete(client, set(idle), idle)

    async def _delete(
        self, client: SwitchClient, keys: set[FlowKey], slots: Mapping[FlowKey, int] | None = None
    ) -> None:
        """Delete flows' entries; with `slots` only those that still have that slot: one with another has come back meanwhile."""
        if not keys:
            return
        ordered = sorted(keys, key=str)
        gone: list[FlowKey] = []
        for start in range(0, len(ordered), BATCH_FLOWS):
            piece = ordered[start : start + BATCH_FLOWS]
            if slots is not None:
                piece = [key for key in piece if self.table.slot(key) == slots[key]]
            failed = await client.write_each_with_reasons([-key.entry() for key in piece])
            for position, key in enumerate(piece):
                refusal = failed.get(position)
                if refusal is None or refusal.code is GRPCStatusCode.NOT_FOUND:
                    gone.append(key)
                else:
                    self._tell_refused(client, key, refusal, asyncio.get_running_loop().time())
        for key in gone:
            self._forget(key)
        self._full_until_s = 0.0
        self._went.tell(client.endpoint.name, [(key, None) for key in gone])

    def _forget(self, key: FlowKey) -> None:
        self.table.release(key)
        for memory in (self.places, self._own, self._tuned):
            memory.pop(key, None)
