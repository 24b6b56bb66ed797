# SPDX-License-Identifier: Apache-2.0
"""Slots: one flow each, all in range, given back, adopted after a restart, and never more than there are."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from fairlane_controller.errors import FairlaneError
from fairlane_controller.programs.qthresh.flow_keeper import FlowKeeper, flow_of, metadata_of, weight_of
from fairlane_controller.programs.qthresh.flow_weights import WeightRules
from fairlane_controller.programs.qthresh.flows import FlowKey, FlowTable
from fairlane_controller.state.events import EventLog
from fairlane_controller.switch.client import Endpoint, SwitchClient
from finsy import P4TableEntry
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule


def key(number: int, version: int = 4) -> FlowKey:
    base = ipaddress.ip_address("10.0.0.1") if version == 4 else ipaddress.ip_address("2001:db8::1")
    return FlowKey(base, base + 1, 6, number, 5001)


def test_matches_round_trip() -> None:
    for version in (4, 6):
        one = key(7, version)
        assert FlowKey.from_match(one.table, one.match) == one


def test_digest_has_ipv4_in_the_low_bits() -> None:
    digest = {"ip_version": 4, "src": 0x0A000001, "dst": 0x0A000002, "protocol": 6, "src_port": 7, "dst_port": 5001}
    assert FlowKey.from_digest(digest) == key(7)
    assert str(key(7)) == "tcp 10.0.0.1:7 > 10.0.0.2:5001"
    assert str(key(7, 6)) == "tcp [2001:db8::1]:7 > [2001:db8::2]:5001"


def test_a_flow_s_own_weight_is_in_its_entry() -> None:
    plain, weighted = key(7).entry(3), key(7).entry(3, weight=2.5)
    assert (flow_of(weighted), weight_of(weighted)) == ((key(7), 3), 2.5)
    assert (flow_of(plain), weight_of(plain)) == ((key(7), 3), None)
    with pytest.raises(FairlaneError, match=r"weight 300 is out of range: it must be between 0.00390625 and 255"):
        key(7).entry(3, weight=300)


class HeldEntries:
    """A connection to a switch that holds these entries."""

    endpoint = Endpoint("s1", "memory")

    def __init__(self, entries: list[P4TableEntry]) -> None:
        self.entries = entries
        self.deleted: list[FlowKey] = []

    async def read_table(self, table: str, **_: object) -> list[P4TableEntry]:
        """Those of one table."""
        return [entry for entry in self.entries if entry.table_id == table]

    async def write_each_with_reasons(self, updates: Sequence[Any]) -> dict[int, object]:
        """Takes all; remembers what is deleted."""
        self.deleted += [flow_of(update)[0] for update in updates]
        return {}


async def test_an_entry_ages_out_by_its_own_idle_timeout_not_by_one_that_came_later(tmp_path: Path) -> None:
    old, new = key(1).entry(0, idle_timeout_s=60), key(2).entry(1, idle_timeout_s=10)
    unknown = key(3).entry(2)  # a target that does not read it back
    for entry in (old, new, unknown):
        entry.time_since_last_hit = 20 * 10**9
    client = HeldEntries([old, new, unknown])
    keeper = FlowKeeper(EventLog(tmp_path / "events.jsonl"), idle_timeout_s=10.0)
    assert await keeper.take_over(cast("SwitchClient", client)) == 1
    assert set(client.deleted) == {key(2), key(3)}


async def test_an_adopted_flow_has_its_port_and_class_again(tmp_path: Path) -> None:
    entries = [key(1).entry(0), key(2).entry(1, weight=2.0), key(3).entry(2, weight=3.0), key(4).entry(3)]
    entries[0].metadata = metadata_of((3, 1))
    entries[1].metadata = metadata_of((511, 7), tuned=True, own=0.5)
    entries[2].metadata = b"somebody else's"
    keeper = FlowKeeper(EventLog(tmp_path / "events.jsonl"), idle_timeout_s=10.0)
    assert await keeper.take_over(cast("SwitchClient", HeldEntries(entries))) == 4
    assert keeper.places == {key(1): (3, 1), key(2): (511, 7)}
    assert [keeper.own_weight(key(number)) for number in (1, 2, 3, 4)] == [None, 0.5, 3.0, None]
    assert keeper.tuned([key(number) for number in (1, 2, 3, 4)], 10) == {key(2): 20}


class SlowSwitch(HeldEntries):
    """A switch with flows' entries on which something else happens while one request is on its way."""

    def __init__(self, flows: int) -> None:
        super().__init__([key(number).entry(number, idle_timeout_s=10) for number in range(flows)])
        self.switch = self
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self._idle: asyncio.Queue[list[P4TableEntry]] = asyncio.Queue()

    async def read_idle_timeouts(self, queue_size: int) -> AsyncIterator[list[P4TableEntry]]:
        """What aged out."""
        assert queue_size
        while True:
            yield await self._idle.get()

    async def read_table(self, table: str, **_: object) -> list[P4TableEntry]:
        """What it has at the time of the request."""
        found = await super().read_table(table)
        await self._happen()
        return found

    async def write_each_with_reasons(self, updates: Sequence[Any]) -> dict[int, object]:
        """Takes all, now, and answers later."""
        for update in updates:
            if isinstance(update, P4TableEntry):
                flow = flow_of(update)[0]
                self.entries = [entry for entry in self.entries if flow_of(entry)[0] != flow]
                if update.action is not None:
                    self.entries.append(replace(update, time_since_last_hit=0))
        await self._happen()
        return {}

    async def _happen(self) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()

    async def go_and_come_back(self, keeper: FlowKeeper, flow: FlowKey) -> None:
        """The flow ages out, and is new again."""
        await self._idle.put([flow.entry()])
        listening = asyncio.create_task(keeper.listen_idle(cast("SwitchClient", self)))
        for _ in range(100):
            await asyncio.sleep(0)
        assert flow not in keeper.table
        listening.cancel()
        await keeper.add(cast("SwitchClient", self), {flow: (3, 0)})


async def test_a_flow_that_comes_back_while_it_is_tuned_is_not_tuned() -> None:
    switch, keeper = SlowSwitch(1), FlowKeeper(EventLog(None), idle_timeout_s=10.0)
    client = cast("SwitchClient", switch)
    await keeper.take_over(client)
    switch.meanwhile = lambda: switch.go_and_come_back(keeper, key(0))
    await keeper.tune(client, {key(0): 300})
    (entry,) = switch.entries
    assert weight_of(entry) is None
    assert keeper.tuned([key(0)], 100) == {}
    assert await keeper.tune(client, {key(0): 300}) == 1, "the same weight again is no weight that it has already"
    assert keeper.tuned([key(0)], 256) == {key(0): 300}


async def test_a_flow_that_comes_back_while_the_switch_is_read_keeps_its_new_entry() -> None:
    switch, keeper = SlowSwitch(1), FlowKeeper(EventLog(None), idle_timeout_s=10.0)
    client = cast("SwitchClient", switch)
    await keeper.take_over(client)
    switch.entries = [replace(entry, time_since_last_hit=20 * 10**9) for entry in switch.entries]
    came_back = asyncio.Event()

    async def meanwhile() -> None:
        await switch.go_and_come_back(keeper, key(0))
        came_back.set()

    switch.meanwhile = meanwhile
    sweeping = asyncio.create_task(keeper.sweep_forever(client, period_s=0.0))
    await asyncio.wait_for(came_back.wait(), 10)
    for _ in range(20):  # the rest of this sweep, and the next ones
        await asyncio.sleep(0)
    sweeping.cancel()
    assert key(0) in keeper.table
    (entry,) = switch.entries
    assert flow_of(entry) == (key(0), keeper.table.slot(key(0)))


def test_ipv4_and_ipv6_share_the_slots() -> None:
    table = FlowTable()
    assert {table.allocate(key(1)), table.allocate(key(1, 6))} == {0, 1}


def test_a_known_flow_gets_no_second_slot() -> None:
    table = FlowTable()
    assert table.allocate(key(1)) == 0
    assert table.allocate(key(1)) is None
    assert table.missed == 0


def test_a_full_table_counts_what_it_missed() -> None:
    table = FlowTable(capacity=2)
    assert [table.allocate(key(i)) for i in range(4)] == [0, 1, None, None]
    assert table.missed == 2
    table.release(key(0))
    assert table.allocate(key(9)) == 0


def test_the_slot_freed_longest_ago_is_used_first() -> None:
    table = FlowTable(capacity=3)
    for i in range(3):
        table.allocate(key(i))
    for i in (2, 0, 1):
        table.release(key(i))
    assert [table.allocate(key(10 + i)) for i in range(3)] == [2, 0, 1]


def test_adoption_finds_doubled_slots() -> None:
    table = FlowTable()
    doubled = table.adopt([(key(1), 5), (key(2), 5), (key(3), 2)])
    assert doubled == [key(2)]
    assert (table.slot(key(1)), table.slot(key(3))) == (5, 2)
    assert sorted(s for s in (table.allocate(key(i)) for i in range(10, 14)) if s is not None) == [6, 7, 8, 9]


def test_a_slot_beyond_the_range_is_not_adopted() -> None:
    table = FlowTable(capacity=8)
    assert table.adopt([(key(1), 8)]) == [key(1)]
    assert len(table) == 0


class Slots(RuleBasedStateMachine):
    """Any order of arrivals, departures and restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.table = FlowTable(capacity=6)
        self.alive: set[int] = set()

    @rule(number=st.integers(0, 11))
    def arrive(self, number: int) -> None:
        slot = self.table.allocate(key(number))
        if number in self.alive or len(self.alive) == 6:
            assert slot is None
        else:
            assert slot is not None
            self.alive.add(number)

    @rule(number=st.integers(0, 11))
    def leave(self, number: int) -> None:
        assert (self.table.release(key(number)) is not None) == (number in self.alive)
        self.alive.discard(number)

    @rule()
    def restart(self) -> None:
        held = list(self.table.items())
        self.table = FlowTable(capacity=6)
        assert self.table.adopt(held) == []

    @invariant()
    def one_slot_each(self) -> None:
        slots = [slot for _, slot in self.table.items()]
        assert len(set(slots)) == len(slots) == len(self.alive)
        assert all(0 <= slot < 6 for slot in slots)


TestSlots = Slots.TestCase


@given(st.lists(st.integers(0, 65_535), max_size=50, unique=True))
def test_adopt_then_allocate_never_collides(slots: list[int]) -> None:
    table = FlowTable()
    table.adopt((key(i), slot) for i, slot in enumerate(slots))
    new = table.allocate(key(60_000))
    assert new is not None
    assert new not in slots


def test_the_first_rule_that_matches_gives_a_flow_s_weight() -> None:
    rules = WeightRules.parse([{"dst": "10.0.0.2", "dst_port": 5001, "weight": 2}, {"src_port": 7, "weight": 4}])
    assert rules(key(7)) == 2.0
    assert rules(key(9)) == 2.0
    assert WeightRules.parse([{"src_port": 7, "weight": 4}])(key(9)) is None


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({}, '"rules" must be a list'),
        ([1], "rule 0 must be an object"),
        ([{"port": 1, "weight": 1}], "rule 0: 'port' is not one of src, dst, src_port, dst_port, weight"),
        ([{"dst_port": 1}], "rule 0: needs a number as weight"),
        ([{"dst_port": 1, "weight": 1}, {"dst": "h1", "weight": 1}], "rule 1: dst 'h1' is no address"),
        ([{"dst_port": 70_000, "weight": 1}], "rule 0: dst_port 70000 is not 1 to 65535"),
        ([{"dst_port": 1, "weight": 300}], "weight 300 is out of range"),
    ],
)
def test_a_bad_weight_rule_is_named(rules: object, message: str) -> None:
    with pytest.raises(FairlaneError, match=message):
        WeightRules.parse(rules)


@pytest.mark.parametrize(
    "rule", [{"[" * 2000: 1}, {"weight": 1, "src": "[" * 2000}, {"weight": 1, "dst_port": "[" * 2000}]
)
def test_a_refusal_of_a_rule_quotes_little(rule: dict[str, object]) -> None:
    with pytest.raises(FairlaneError) as refused:
        WeightRules.parse([rule])
    assert len(refused.value.message) < 300
