# SPDX-License-Identifier: Apache-2.0
"""Flows and their entries: read back, adopted, tuned, aged out, and back meanwhile; weights by rules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from fairlane_controller.problems import describe
from fairlane_controller.programs.qthresh.flows import Flow, FlowKey, Flows, parse_flow
from fairlane_controller.programs.qthresh.settings import QthreshLoop
from fairlane_controller.state.events import EventLog
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.faults import Refusal
from finsy import GRPCStatusCode, P4TableEntry
from learned_tools import flows_of, key
from pydantic import ValidationError


def test_entries_round_trip() -> None:
    for version in (4, 6):
        for flow in (
            Flow(),
            Flow((511, 7), 0.5, 300),
            Flow((3, 0), 2.5),
            Flow((3, 0), None, 300),
            Flow((3, 0), 2.5, None, 7),
        ):
            one = key(7, version)
            assert parse_flow(one.entry(3, flow)) == (one, 3, flow)


def test_digest_has_ipv4_in_the_low_bits() -> None:
    digest = {"ip_version": 4, "src": 0x0A000001, "dst": 0x0A000002, "protocol": 6, "src_port": 7, "dst_port": 5001}
    assert flows_of().learn({**digest, "egress_port": 3, "traffic_class": 1}) == (key(7), Flow((3, 1)))
    assert str(key(7)) == "tcp 10.0.0.1:7 > 10.0.0.2:5001"
    assert str(key(7, 6)) == "tcp [2001:db8::1]:7 > [2001:db8::2]:5001"


def test_a_flow_s_own_weight_is_in_its_entry() -> None:
    plain, weighted = key(7).entry(3), key(7).entry(3, Flow(weight=2.5))
    assert parse_flow(weighted) == (key(7), 3, Flow(weight=2.5))
    assert parse_flow(plain) == (key(7), 3, Flow())


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
        self.deleted += [parse_flow(update)[0] for update in updates]
        return {}


async def test_an_entry_ages_out_by_its_own_idle_timeout_not_by_one_that_came_later(tmp_path: Path) -> None:
    entries = [key(number).entry(number) for number in (1, 2, 3)]
    for entry, idle_timeout_s in zip(entries, (60, 10, 0), strict=True):  # 0: a target that does not read it back
        entry.idle_timeout_ns, entry.time_since_last_hit = idle_timeout_s * 10**9, 20 * 10**9
    client = HeldEntries(entries)
    flows = flows_of(EventLog(tmp_path / "events.jsonl"), idle_timeout_s=10.0)
    assert await flows.take_over(cast("SwitchClient", client)) == 1
    assert set(client.deleted) == {key(2), key(3)}


async def test_an_adopted_flow_has_its_port_and_class_again(tmp_path: Path) -> None:
    entries = [key(1).entry(0), key(2).entry(1, Flow(weight=2.0)), key(3).entry(2, Flow(weight=3.0)), key(4).entry(3)]
    # As any version of ours has written them: what is in force is the entry's, what is beside it stands in the metadata.
    for entry, metadata in zip(entries, (b"3/1", b"511/7 tuned128", b"somebody else's", b""), strict=True):
        entry.metadata = metadata
    flows = flows_of(EventLog(tmp_path / "events.jsonl"), idle_timeout_s=10.0)
    assert await flows.take_over(cast("SwitchClient", HeldEntries(entries))) == 4
    assert flows.values == {
        key(1): Flow((3, 1)), key(2): Flow((511, 7), 0.5, 512), key(3): Flow(weight=3.0), key(4): Flow()
    }  # fmt: skip


async def test_taps_go_on_from_the_numbers_of_the_entries() -> None:
    """A restarted loop began at 1: a flow whose entry had that number would have lost no packet, and waited for it."""
    entries = [key(number).entry(number, Flow((3, 0), tap=tap)) for number, tap in enumerate((2, 7, 0))]
    flows = flows_of(idle_timeout_s=10.0)
    await flows.take_over(cast("SwitchClient", HeldEntries(entries)))
    assert flows.next_tap() == 8


class FullSwitch(HeldEntries):
    """A switch that has no room."""

    has_room = False

    async def write_each_with_reasons(self, updates: Sequence[Any]) -> dict[int, object]:
        """Takes all or none."""
        return (
            {}
            if self.has_room
            else dict.fromkeys(range(len(updates)), Refusal(GRPCStatusCode.RESOURCE_EXHAUSTED, "no room"))
        )


async def test_a_change_that_finds_no_room_is_reported_once(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    flows, switch = flows_of(log, idle_timeout_s=10.0), FullSwitch([key(1).entry(0)])
    client = cast("SwitchClient", switch)
    await flows.take_over(client)
    for _ in range(2):
        assert await flows.change(client, {key(1): Flow(tuned=300)}) == 0
    assert (tmp_path / "events.jsonl").read_text().count("flow_refused") == 1
    # It does not keep new flows waiting.
    switch.has_room = True
    await flows.insert(client, {key(2): Flow()})
    assert key(2) in flows.values


class SlowSwitch(HeldEntries):
    """A switch with flows' entries on which something else happens while one request is on its way."""

    def __init__(self, flows: int) -> None:
        super().__init__([replace(key(number).entry(number), idle_timeout_ns=10**10) for number in range(flows)])
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
                flow = parse_flow(update)[0]
                self.entries = [entry for entry in self.entries if parse_flow(entry)[0] != flow]
                if update.action is not None:
                    self.entries.append(replace(update, time_since_last_hit=0))
        await self._happen()
        return {}

    async def _happen(self) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()

    async def go_and_come_back(self, flows: Flows, flow: FlowKey) -> None:
        """The flow ages out, and is new again."""
        client = cast("SwitchClient", self)
        await self._idle.put([replace(flow.entry(0), action=None)])
        listening = asyncio.create_task(flows._listen_idle(client))  # pyright: ignore[reportPrivateUsage]
        while flow in flows.values:
            await asyncio.sleep(0)
        listening.cancel()
        await flows.insert(client, {flow: Flow((3, 0))})


async def test_a_flow_that_comes_back_while_it_is_tuned_is_not_tuned() -> None:
    switch, flows = SlowSwitch(1), flows_of(idle_timeout_s=10.0)
    client, tuned = cast("SwitchClient", switch), {key(0): Flow(tuned=300)}
    await flows.take_over(client)
    others = list[asyncio.Task[None]]()

    async def meanwhile() -> None:
        others.append(asyncio.create_task(switch.go_and_come_back(flows, key(0))))
        for _ in range(100):
            await asyncio.sleep(0)

    switch.meanwhile = meanwhile
    async with flows.session.writes:
        await flows.change(client, tuned)
        assert flows.values == tuned, "nobody else writes before the change is over"
    await asyncio.wait_for(others[0], 10)
    (entry,) = switch.entries
    assert parse_flow(entry) == (key(0), flows.numbers.given[key(0)], Flow((3, 0)))
    assert flows.values == {key(0): Flow((3, 0))}
    assert await flows.change(client, tuned) == 1, "the same weight again is no weight that it has already"
    assert flows.values[key(0)].tuned == 300


async def test_a_flow_that_comes_back_while_the_switch_is_read_keeps_its_new_entry() -> None:
    switch, flows = SlowSwitch(1), flows_of(idle_timeout_s=10.0, sweep_period_s=0.0)
    client = cast("SwitchClient", switch)
    await flows.take_over(client)
    switch.entries = [replace(entry, time_since_last_hit=20 * 10**9) for entry in switch.entries]
    came_back = asyncio.Event()

    async def meanwhile() -> None:
        await switch.go_and_come_back(flows, key(0))
        came_back.set()

    switch.meanwhile = meanwhile
    sweeping = asyncio.create_task(flows._sweep_forever(client))  # pyright: ignore[reportPrivateUsage]
    await asyncio.wait_for(came_back.wait(), 10)
    for _ in range(20):  # the rest of this sweep, and the next ones
        await asyncio.sleep(0)
    sweeping.cancel()
    assert key(0) in flows.values
    (entry,) = switch.entries
    assert parse_flow(entry)[:2] == (key(0), flows.numbers.given[key(0)])


def test_the_first_rule_that_matches_gives_a_flow_s_weight() -> None:
    rules = [{"dst": "10.0.0.2", "dst_port": 5001, "weight": 2}, {"src_port": 7, "weight": 4}]
    loop = QthreshLoop.model_validate({"flow_weights": rules})
    assert (loop.weight_of(key(7)), loop.weight_of(key(9))) == (2.0, 2.0)
    assert QthreshLoop.model_validate({"flow_weights": rules[1:]}).weight_of(key(9)) is None


@pytest.mark.parametrize(
    "rule", [{"[" * 2000: 1}, {"weight": 1, "src": "[" * 2000}, {"weight": 1, "dst_port": "[" * 2000}]
)
def test_a_refusal_of_a_rule_quotes_little(rule: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as refused:
        QthreshLoop.model_validate({"flow_weights": [rule]})
    assert all(len(problem) < 300 for problem in describe(refused.value, QthreshLoop))
