# SPDX-License-Identifier: Apache-2.0
"""Changes of several switches: all or none, whatever refuses, with an inverse; and the way of a threshold, counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import gfr_configs as configs
import pytest
from counting_proxy import CountingProxy, counting
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.gfr import names as program
from fairlane_controller.programs.gfr.deploy import make_plan
from fairlane_controller.programs.gfr.store import GfrState
from fairlane_controller.state.run_state import read_topology, write_topology
from fairlane_controller.state.store import Store
from fairlane_controller.switch.changeset import ChangeSet, apply, entry_changes
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.difference import EntryChange, read_entries
from finsy.proto import p4r
from gfr_memory import RESOURCE_EXHAUSTED, MemorySwitch, clients_of
from live_switch import LiveSwitch


async def write(
    switches: list[MemorySwitch], make: Callable[[SwitchClient], list[EntryChange]], **options: Any
) -> ChangeSet:
    """The same change on each switch."""
    client_of = clients_of(*switches)
    async with AsyncExitStack() as stack:
        clients = {one.name: await stack.enter_async_context(client_of(one.name)) for one in switches}
        change = ChangeSet({name: make(client) for name, client in clients.items()})
        await apply(change, clients, **options)
    return change


def whole_plan(client: SwitchClient) -> list[EntryChange]:
    """All entries of a configuration, on an empty switch."""
    plan = make_plan(configs.config(), GfrState(), 0.0, None, "gfr.toml")
    return [EntryChange(None, client.canonical(entry)) for entry in plan.entries("s1")]


async def test_a_refusal_in_the_middle_of_a_batch_brings_all_switches_back() -> None:
    one, two = MemorySwitch("s1"), MemorySwitch("s2")
    two.refuse = lambda update: (
        RESOURCE_EXHAUSTED
        if update.type == p4r.Update.INSERT
        and update.entity.table_entry.table_id == two.p4info.tables[program.TABLE_VC_EDGE].id
        else 0
    )
    with pytest.raises(FairlaneError, match=r"switch s2 at memory refused 5 updates: .*and 2 more$") as told:
        await write([one, two], whole_plan)
    assert told.value.code is ErrorCode.REFUSED
    assert one.batches
    assert one.state() == two.state() == {}


async def test_what_cannot_be_kept_is_taken_back_and_the_inverse_goes_back_and_forth() -> None:
    async def full() -> None:
        raise FairlaneError(ErrorCode.BAD_FILE, "no room for the journal")

    one, two = MemorySwitch("s1"), MemorySwitch("s2")
    with pytest.raises(FairlaneError, match=r"^no room for the journal$"):
        await write([one, two], whole_plan, commit=full)
    assert one.state() == two.state() == {}
    change = await write([one, two], whole_plan)
    after = one.state()
    assert len(after) > 10

    async def put(updates: list[dict[str, Any]]) -> None:
        async with clients_of(one)("s1") as client:
            current = await read_entries(client, program.TABLES)
            await apply(ChangeSet({"s1": entry_changes(client, current, updates)}), {"s1": client})

    for updates, wanted in ((change.inverse.updates("s1"), {}), (change.updates("s1"), after)):
        for _ in range(2):  # what is so already stays so
            await put(updates)
            assert one.state() == wanted


async def test_a_switch_that_cannot_be_brought_back_is_named() -> None:
    one, two = MemorySwitch("s1"), MemorySwitch("s2")
    one.refuse = lambda update: RESOURCE_EXHAUSTED if update.type == p4r.Update.DELETE else 0
    two.refuse = lambda update: RESOURCE_EXHAUSTED if update.type == p4r.Update.INSERT else 0
    with pytest.raises(
        FairlaneError, match=r"switch s2 .*; what switch s1 at memory had before could not be written back \(.*no room"
    ):
        await write([one, two], whole_plan)


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
    kept: list[str] = []
    for name in ("put", "record", "update", "keep_result"):
        real = getattr(Store, name)

        def count(store: Store, *arguments: Any, real: Any = real, name: str = name) -> None:
            kept.append(name)
            real(store, *arguments)

        monkeypatch.setattr(Store, name, count)
    with counted(switch) as proxy:
        del kept[:]
        switch.fairlane("threshold", "set", "9")
        assert {name: proxy.calls[name] for name in ("StreamChannel", "Read", "Write")} == {
            "StreamChannel": 1, "Read": 1, "Write": 1,
        }  # fmt: skip
        assert len(proxy.updates) == 1
        assert kept == ["put", "record"], "what takes it back, before; settings and journal, after"
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
            assert proxy.calls["StreamChannel"] == 0, "the command opens no connection"
            assert kept == [], "the loop keeps it"
    commands = [" ".join(one["command"].split()[:3]) for one in switch.json("undo", "--list")]
    assert commands[1:] == ["threshold set 9", "threshold set 9", "threshold set 7"]
