# SPDX-License-Identifier: Apache-2.0
"""Changes of several switches: all or none, whatever refuses, with an inverse; and the way of a threshold, counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from typing import Any

import gfr_configs as configs
import pytest
from counting_proxy import CountingProxy, counting
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.run import put_over
from fairlane_controller.programs.gfr import names as program
from fairlane_controller.programs.gfr.config import GfrState
from fairlane_controller.programs.gfr.plan import make_plan
from fairlane_controller.state.run_state import read_topology, write_topology
from fairlane_controller.switch.changeset import ChangeSet, apply, difference, entity_changes, put_entries, read_entries
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.entities import EntityChange, entity_key, same_entity
from fairlane_controller.switch.updates import plain_updates, updates_of
from fairlane_controller.verbs.work import Context
from finsy import P4ClientError, P4MeterConfig, P4Schema, P4TableAction
from finsy.proto import p4r
from gfr_memory import RESOURCE_EXHAUSTED, MemorySwitch, clients_of
from live_switch import COMPILED, LiveSwitch
from state_tools import count_transactions


async def write(switches: list[MemorySwitch], make: Callable[[SwitchClient], list[EntityChange]]) -> ChangeSet:
    """The same change on each switch."""
    client_of = clients_of(*switches)
    async with AsyncExitStack() as stack:
        clients = {one.name: await stack.enter_async_context(client_of(one.name)) for one in switches}
        change = ChangeSet({name: make(client) for name, client in clients.items()})
        await apply(change, clients)
    return change


def whole_plan(client: SwitchClient) -> list[EntityChange]:
    """All entries of a configuration, on an empty switch."""
    plan = make_plan(configs.config(), GfrState(), None, "gfr.toml")
    return [EntityChange(None, client.canonical(entry)) for entry in plan.entries("s1")]


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({"update": "replace", "table": "t", "match": {}}, "no entity: update: 'replace'"),
        ({"update": "insert", "table": "t"}, "must have a table and a match, or an entity"),
        ({"update": "insert", "table": "t", "match": {}, "meter": {"cir": 1}}, "no entity: meter: "),
        ({"update": "insert", "table": "t", "match": {}, "indirect": {"member_id": None}}, "exactly one of"),
        ({"update": "insert", "entity": "member", "text": "no_field: 1"}, "no_field"),
    ],
)
def test_what_is_no_update_is_refused_with_its_place(update: dict[str, Any], message: str) -> None:
    with pytest.raises(FairlaneError, match=message) as refused:
        updates_of([update])
    assert refused.value.code is ErrorCode.BAD_INPUT


@pytest.mark.parametrize("table", ["vc_edge", "[" * 6000])
def test_what_the_p4info_refuses_is_quoted_in_part(table: str) -> None:
    update = {"update": "insert", "table": table, "match": {"[" * 6000: 1}, "action": "NoAction", "args": {}}
    with pytest.raises(FairlaneError, match=r"\[…\[") as refused:
        plain_updates(updates_of([update]), P4Schema(COMPILED / "gfr.p4info.txtpb"))
    assert refused.value.code is ErrorCode.BAD_INPUT


async def test_a_refusal_in_the_middle_of_a_batch_brings_all_switches_back() -> None:
    one, two = MemorySwitch("s1"), MemorySwitch("s2")
    two.refuse = lambda update: (
        RESOURCE_EXHAUSTED
        if update.type == p4r.Update.INSERT and update.entity.table_entry.table_id == two.p4info.tables["vc_edge"].id
        else 0
    )
    with pytest.raises(FairlaneError, match=r"switch s2 at memory refused 5 updates: .*and 2 more$") as told:
        await write([one, two], whole_plan)
    assert told.value.code is ErrorCode.REFUSED
    assert one.batches
    assert one.state() == two.state() == {}


@pytest.mark.parametrize("named", [True, False])
async def test_what_was_refused_is_not_taken_back(named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that somebody else inserted before us stays: only what the switch took of the batch is taken back.

    A switch need not name each refusal of a large batch: then the entries themselves say whose they are.
    """
    one, two = MemorySwitch("s1"), MemorySwitch("s2")
    await write([two], lambda client: whole_plan(client)[4:5])
    if not named:
        for entry in two.tables.values():
            entry.metadata = b"theirs"
        real = two._error  # pyright: ignore[reportPrivateUsage]

        def error(codes: list[int]) -> P4ClientError:
            return real(codes[:4])

        monkeypatch.setattr(two, "_error", error)
    theirs = two.state()
    text = "refused 1 update: update 4: ALREADY_EXISTS" if named else "UNKNOWN: a batch"
    with pytest.raises(FairlaneError, match=f"switch s2 at memory:? {text}"):
        await write([one, two], whole_plan)
    assert one.state() == {}
    assert two.state() == theirs


async def test_the_inverse_goes_back_and_forth() -> None:
    one, two = MemorySwitch("s1"), MemorySwitch("s2")
    change = await write([one, two], whole_plan)
    after = one.state()
    assert len(after) > 10

    async def put(updates: list[dict[str, Any]]) -> None:
        async with clients_of(one)("s1") as client:
            current = await read_entries(client, program.TABLES)
            await apply(ChangeSet({"s1": entity_changes(client, current, updates)}), {"s1": client})

    for updates, wanted in ((change.inverse.updates("s1"), {}), (change.updates("s1"), after)):
        for _ in range(2):  # what is so already stays so
            await put(updates)
            assert one.state() == wanted


async def test_a_change_that_is_cancelled_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the loop is ended by SIGTERM: between two switches."""
    one, two = MemorySwitch("s1"), MemorySwitch("s2")
    real, reached = two.write, asyncio.Event()

    async def held(_: Any) -> None:
        monkeypatch.setattr(two, "write", real)
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(two, "write", held)
    work = asyncio.create_task(write([one, two], whole_plan))
    await asyncio.wait_for(reached.wait(), 10)
    assert one.state()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(work, 10)
    assert one.state() == two.state() == {}


async def test_a_switch_that_cannot_be_brought_back_is_named() -> None:
    one, two = MemorySwitch("s1"), MemorySwitch("s2")
    one.refuse = lambda update: RESOURCE_EXHAUSTED if update.type == p4r.Update.DELETE else 0
    two.refuse = lambda update: RESOURCE_EXHAUSTED if update.type == p4r.Update.INSERT else 0
    with pytest.raises(
        FairlaneError, match=r"switch s2 .*; what switch s1 at memory had before could not be written back \(.*no room"
    ):
        await write([one, two], whole_plan)


async def test_what_a_loop_has_changed_since_a_change_was_planned_is_written_over() -> None:
    """An entry that the change inserts is there, one that it modifies or deletes is gone; anything else that is refused stays so."""
    one = MemorySwitch("s1")
    change = await write([one], whole_plan)
    updates, after = change.updates("s1"), one.state()
    gone = [{**update, "update": kind} for update, kind in zip(updates[-2:], ("modify", "delete"), strict=True)]
    async with clients_of(one)("s1") as client:
        await client.write([one.inverse.update for one in change.entries["s1"][-2:]])
        asked = [*updates[:-2], *gone]
        refused = await client.write_each_with_reasons(updates_of(asked))
        assert len(refused) == len(asked)
        assert await put_over(client, asked, refused) == {}
        assert len(one.state()) == len(after) - 1, "all but the one that goes"
        one.refuse = lambda update: RESOURCE_EXHAUSTED if update.type == p4r.Update.MODIFY else 0
        refused = await client.write_each_with_reasons(updates_of(updates[:1]))
        assert set(await put_over(client, updates[:1], refused)) == {0}


# ---- the same entry --------------------------------------------------------------------------------------------------

OTHERS: dict[str, dict[str, Any]] = {
    "action": {"action": P4TableAction("NoAction")},
    "idle time-out": {"idle_timeout_ns": 5_000_000_000},
    "metadata": {"metadata": b"mine"},
    "meter": {"meter_config": P4MeterConfig(cir=9, cburst=9, pir=9, pburst=9)},
    "nothing": {},
}


@pytest.mark.parametrize("what", OTHERS)
async def test_an_entry_that_differs_in_anything_that_is_written_is_another(what: str) -> None:
    """By `difference`, by `put_entries`, and by the undo of a verb."""
    one = MemorySwitch("s1")
    await write([one], whole_plan)
    async with clients_of(one)("s1") as client:
        current = await read_entries(client, ["vc_police"])
        before, *_ = current.values()
        after = replace(before, **OTHERS[what])
        changes = difference(current, {**current, entity_key(before): after})
        assert [change.after for change in changes] == ([] if what == "nothing" else [after])
        assert await put_entries(client, [after]) == len(changes)
        assert await put_entries(client, [after]) == 0
        assert same_entity(await Context(client).read_entry(before), after)


# ---- the way of a threshold ------------------------------------------------------------------------------------------


@contextmanager
def counted(switch: LiveSwitch) -> Generator[CountingProxy]:
    """The switch behind a proxy that counts."""
    state = read_topology(switch.folder)
    with counting(f"127.0.0.1:{switch.grpc_port}") as proxy:
        state["switches"][0]["grpc"] = f"127.0.0.1:{proxy.port}"
        write_topology(switch.folder, state)
        yield proxy


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
def test_a_threshold_is_read_once_written_once_and_kept_once(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = count_transactions(monkeypatch)
    with counted(switch) as proxy:
        del kept[:]
        switch.fairlane("threshold", "set", "9")
        assert {name: proxy.calls[name] for name in ("StreamChannel", "Read", "Write")} == {
            "StreamChannel": 1, "Read": 1, "Write": 1,
        }  # fmt: skip
        assert len(proxy.updates) == 1
        assert kept == ["record"], "settings and what takes it back, in one transaction"
        proxy.calls.clear()
        switch.fairlane("threshold", "set", "9")
        assert (proxy.calls["Read"], proxy.calls["Write"]) == (1, 0), "what is right already is not touched"
        with switch.loop():
            asyncio.run(asyncio.sleep(0.5))
            proxy.calls.clear()
            del proxy.updates[:], kept[:]
            (done,) = switch.json("threshold", "set", "7")
            assert (done["via"], done["qthresh_packets"]) == ("loop", 7)
            assert proxy.calls["Write"] == len(proxy.updates) == 1
            assert proxy.calls["StreamChannel"] == 1, "the command reads by a connection of its own"
            assert kept == ["record"], "the command, before the loop writes"
    commands = [" ".join(one["command"].split()[:3]) for one in switch.json("undo", "--list")]
    assert commands[1:] == ["threshold set 9", "threshold set 7"], "what changes nothing is no change"
