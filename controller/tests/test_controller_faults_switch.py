# SPDX-License-Identifier: Apache-2.0
"""Switches that fail: killed and restarted, full, refusing some updates; nothing stale, nothing lost, nothing told 10,000 times."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.loop import agent as agents
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.program import learned
from fairlane_controller.program.learned import Numbering
from fairlane_controller.programs.qthresh.control import QthreshTopology
from fairlane_controller.programs.qthresh.names import Scheme
from fairlane_controller.programs.qthresh.policies import Policy, read_managed
from fairlane_controller.state.events import EventLog
from fairlane_controller.state.run_state import read_run_state
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fault_tools import Refuses, RefusingSwitch, refusing_switch, set_threshold
from finsy import GRPCStatusCode, P4Schema
from finsy.proto import p4r
from learned_tools import at_port_3, flows_of, key
from live_switch import COMPILED, DEADLINE_S, LiveSwitch, wait_until
from live_topology import live_topology

pytestmark = pytest.mark.timed

SCHEMA = P4Schema(COMPILED / "qthresh.p4info.txtpb")


def table_of(update: p4r.Update) -> str | None:
    """The table of an update, None for another entity."""
    if not update.entity.HasField("table_entry"):
        return None
    return SCHEMA.tables[update.entity.table_entry.table_id].alias


async def until(what: str, check: Callable[[], Any]) -> None:
    """`wait_until` without holding the event loop."""
    await asyncio.to_thread(wait_until, what, check)


@contextlib.asynccontextmanager
async def agent_through(
    switch: LiveSwitch, refuses: Refuses
) -> AsyncGenerator[tuple[SwitchAgent, RefusingSwitch], None]:
    """The loop of one switch in this process, behind a server that refuses."""
    log = EventLog(switch.folder / "controller-events.jsonl")
    run = read_run_state(switch.folder)
    with refusing_switch(f"127.0.0.1:{switch.grpc_port}", refuses) as (server, port):
        endpoint = Endpoint("s1", f"127.0.0.1:{port}")
        agent = SwitchAgent(endpoint, QthreshTopology(run), log, state=run.switch("s1"))
        task = asyncio.create_task(agent.run())
        try:
            await until("the loop to serve the switch", lambda: agent.client is not None)
            yield agent, server
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            log.close()


@pytest.mark.parametrize("own_program", [False, True])
def test_a_restarted_switch_has_everything_back_and_nothing_stale(switch: LiveSwitch, own_program: bool) -> None:
    with switch.loop():
        switch.fairlane("threshold", "set", "8", "-w", "1.5")
        switch.fairlane("threshold", "set", "5", "-c", "2")
        before = {
            table: switch.json("p4", "table_dump", table) for table in ("policy", "port_limit", "ipv4_lpm", "ipv6_lpm")
        }
        switch.kill()
        wait_until("the loop to notice", lambda: switch.loop_status()["error"])
        switch.own_program = own_program
        switch.start()
        wait_until("the switch to be served", lambda: switch.loop_status()["connected"])
        assert {table: switch.json("p4", "table_dump", table) for table in before} == before
        assert switch.json("flows") == []
        assert switch.loop_status()["flows"] == 0
        assert [port["sent_packets"] for port in switch.json("status")["ports"] if port["managed"]] == [0]
        (restored,) = switch.events("restored")
        assert "restart" in restored["why"]
        # It is still the loop that writes: a change goes through it.
        assert switch.json("threshold", "set", "9")[0]["via"] == "loop"


async def test_a_refused_update_stops_no_other_and_is_tried_again_with_growing_pauses(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "FIRST_PAUSE_S", 0.2)
    monkeypatch.setattr(agents, "LONGEST_PAUSE_S", 1.6)
    refusing = {"policy": "table policy is being repaired", "digest_entry": "no digests today"}

    def refuses(update: p4r.Update) -> tuple[GRPCStatusCode, str] | None:
        words = refusing.get(table_of(update) or str(update.entity.WhichOneof("entity")))
        return (GRPCStatusCode.UNAVAILABLE, words) if words else None

    await asyncio.to_thread(switch.fairlane, "threshold", "set", "8")
    async with agent_through(switch, refuses) as (agent, server):
        # The digests are refused from the beginning: the loop serves the switch all the same, and says why.
        assert agent.status()["refused"] == ["digest new_flow_t", "digest port_report_t", "digest t_res_t"]
        refused = switch.events("refused")
        assert {event["update"] for event in refused} == set(agent.status()["refused"])
        assert all("no digests today" in event["why"] for event in refused)
        await until("a third attempt", lambda: attempts(switch, "digest t_res_t") >= 3)
        pauses = [event["again_s"] for event in switch.events("refused") if event["update"] == "digest t_res_t"]
        assert pauses[:3] == [0.2, 0.4, 0.8]

        # The switch restarts: its routes and limits come back though its policies are refused.
        switch.kill()
        await until("the loop to notice", lambda: agent.client is None)
        del refusing["digest_entry"]
        switch.start()
        await until("the loop to serve it again", lambda: agent.client is not None)
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")) as reader:
            assert len(await reader.read_table("ipv4_lpm")) == 2
            assert len(await reader.read_table("port_limit")) == 1
            assert (await read_managed(reader))[1] == {}
            (name,) = agent.status()["refused"]
            assert name == "table policy, egress_port 3, traffic_class 0"
            writes = server.writes
            del refusing["policy"]
            await until("the policy to be accepted", lambda: not agent.status()["refused"])
            assert (await read_managed(reader))[1][(3, 0)] == Policy(3, 0, Scheme.QTHRESH, 8)
        assert server.writes - writes < 10
        (accepted,) = [event for event in switch.events("accepted") if event["update"] == name]
        assert "the switch has taken table policy" in accepted["why"]
        assert [policy["qthresh_packets"] for policy in agent.status()["policies"]] == [8]


async def test_what_waits_for_its_turn_outlives_the_connection_and_is_not_put_over_what_came_since(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "FIRST_PAUSE_S", 0.2)
    monkeypatch.setattr(agents, "LONGEST_PAUSE_S", 0.4)
    refusing: set[str] = {"policy", "ipv6_lpm"}

    def refuses(update: p4r.Update) -> tuple[GRPCStatusCode, str] | None:
        return (GRPCStatusCode.UNAVAILABLE, "not now") if table_of(update) in refusing else None

    await asyncio.to_thread(switch.fairlane, "threshold", "set", "8")
    async with agent_through(switch, refuses) as (agent, _):
        switch.kill()
        await until("the loop to notice", lambda: agent.client is None)
        switch.start()
        await until("the loop to serve it again", lambda: agent.client is not None)
        assert len(agent.status()["refused"]) == 2
        # The connection breaks, the switch lives on: what it lacks is not forgotten.
        client = agent.connected()
        client.down.set()
        await until("another connection", lambda: agent.client not in (None, client))
        assert len(agent.status()["refused"]) == 2
        refusing.discard("policy")
        await set_threshold(agent, switch.folder, 12)
        refusing.clear()
        await until("both to be settled", lambda: not agent.status()["refused"])
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")) as reader:
            assert (await read_managed(reader))[1][(3, 0)].qthresh_packets == 12
            assert len(await reader.read_table("ipv6_lpm")) == 1


def attempts(switch: LiveSwitch, update: str) -> int:
    """How often it was refused."""
    return sum(1 for event in switch.events("refused") if event["update"] == update)


async def test_pauses_grow_to_their_bound_and_what_is_remembered_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = EventLog(tmp_path / "controller-events.jsonl")
    monkeypatch.setattr(agents, "LONGEST_PAUSE_S", 5.0)
    monkeypatch.setattr(agents, "MAX_REFUSED", 2)
    refused = SwitchAgent(Endpoint("s1", "memory"), QthreshTopology(), log)
    for _ in range(5):
        refused.note_refusal("a", "no", None)
    for name in ("b", "c", "d"):
        refused.note_refusal(name, "no", None)
    log.close()
    assert refused.status()["refused"] == ["a", "b"]
    lines = (tmp_path / "controller-events.jsonl").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line) for line in lines]
    assert [event["again_s"] for event in told] == [1.0, 2.0, 4.0, 5.0, 5.0, 1.0, None, None]
    assert "c was refused and is not tried again: 2 others wait already" in told[6]["why"]


async def test_a_full_table_leaves_the_rest_in_the_fallback_and_is_told_once(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The switch takes ten flows and says RESOURCE_EXHAUSTED to all others; 3,000 come, many of them again and again."""
    monkeypatch.setattr(learned, "PAUSE_S", 1000.0)
    taken: set[bytes] = set()

    def refuses(update: p4r.Update) -> tuple[GRPCStatusCode, str] | None:
        if table_of(update) != "flow_v4" or update.type != p4r.Update.INSERT:
            return None
        if len(taken) < 10:
            taken.add(update.SerializeToString())
            return None
        return GRPCStatusCode.RESOURCE_EXHAUSTED, "the table is full"

    log = EventLog(switch.folder / "controller-events.jsonl")
    with refusing_switch(f"127.0.0.1:{switch.grpc_port}", refuses) as (server, port):
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{port}"), write=True) as client:
            flows = flows_of(log)
            for turn in range(20):
                for start in range(0, 3000, 500):
                    await flows.insert(client, at_port_3(*range(start, start + 500)))
                if turn == 10:
                    flows._paused_until_s = 0.0  # pyright: ignore[reportPrivateUsage]  # the pause is over: it asks once more
            assert len(flows) == 10
            digests = flows.status()
            assert digests["entries"] == 10
            assert digests["refused"] == 490 + 490
            assert digests["missed"] == 20 * 2990 - digests["refused"]
            assert digests["known"] == 19 * 10
            assert server.writes == 2
            # One of them goes, and there is room again.
            taken.pop()
            await flows._delete(client, [key(0).entry(0)])  # pyright: ignore[reportPrivateUsage]
            await flows.insert(client, at_port_3(2999))
            assert key(2999) in flows.values
    log.close()
    told = switch.events("flows_missed")
    assert len(told) == 1
    assert "share the fallback slots by hash" in told[0]["why"]
    assert "every slot for a flow is taken" in told[0]["why"]
    assert len(switch.events("flow")) == 11


async def test_the_last_slot_is_the_last(switch: LiveSwitch) -> None:
    log = EventLog(None)
    async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}"), write=True) as client:
        flows = flows_of(log)
        flows.numbers = Numbering(range(100))
        await flows.insert(client, at_port_3(*range(250)))
        assert len(flows) == 100
        assert flows.status()["missed"] == 150
        assert len(await client.read_table("flow_v4")) == 100


async def test_a_dry_run_serves_a_switch_that_has_loaded_its_program_by_itself(switch: LiveSwitch) -> None:
    with switch.loop():
        pass  # the switch has the program
    run, log = read_run_state(switch.folder), EventLog(switch.folder / "dry.jsonl")
    endpoint = Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")
    agent = SwitchAgent(endpoint, QthreshTopology(run), log, state=run.switch("s1"), dry_run=True)
    task = asyncio.create_task(agent.run())
    try:
        await until("the loop to serve the switch", lambda: agent.client is not None)
        switch.kill()
        await until("the loop to notice", lambda: agent.client is None)
        switch.own_program = True
        switch.start()
        await until("the loop to serve it again", lambda: agent.client is not None)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        log.close()


async def test_after_a_refused_flow_new_entries_pause_and_one_event_says_why(switch: LiveSwitch) -> None:
    def refuses(update: p4r.Update) -> tuple[GRPCStatusCode, str] | None:
        return (GRPCStatusCode.INVALID_ARGUMENT, "not this one") if table_of(update) == "flow_v4" else None

    log = EventLog(switch.folder / "controller-events.jsonl")
    with refusing_switch(f"127.0.0.1:{switch.grpc_port}", refuses) as (server, port):
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{port}"), write=True) as client:
            flows = flows_of(log)
            for _ in range(30):
                await flows.insert(client, at_port_3(1, 2))
            assert server.writes == 1
            assert (flows.status()["refused"], flows.status()["missed"]) == (2, 58)
            assert len(flows) == 0
    log.close()
    (first,) = switch.events("flow_refused")
    assert first["code"] == "INVALID_ARGUMENT"
    assert "not this one" in first["why"]


def test_both_controller_and_switch_may_die(tmp_path: Path) -> None:
    """With nobody left who remembers, the topology's file and what people asked for by hand come back."""
    with live_topology(tmp_path, "dumbbell.json") as topology:
        with topology.loop() as loop:
            topology.set_thresholds(13)
            loop.kill()
            loop.wait(timeout=10)
        topology.switches["s1"].kill()
        topology.restart("s1")
        with topology.loop():
            wait_until("s1 to be restored", lambda: topology.connected() == {"s1", "s2"})
            (row,) = topology.json("threshold", "show")
            assert (row["scheme"], row["qthresh_packets"], row["mode"]) == ("qthresh", 13, "manual")


def test_nothing_comes_after_a_connection_was_closed(switch: LiveSwitch, caplog: pytest.LogCaptureFixture) -> None:
    """gRPC has one queue for all event loops of a process: what comes for a closed one is an error in another, with a traceback."""
    endpoint, ended = Endpoint("s1", f"127.0.0.1:{switch.grpc_port}"), threading.Event()

    async def watch() -> None:
        async with SwitchClient(endpoint) as client:
            while not ended.is_set():
                await client.ping(DEADLINE_S)

    async def connect() -> None:
        async with SwitchClient(endpoint, write=True):
            pass

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(asyncio.run, watch())
        try:
            for _ in range(20):
                asyncio.run(connect())
        finally:
            ended.set()
        watching.result(DEADLINE_S)
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


async def test_a_switch_that_does_not_end_its_stream_holds_up_no_close(switch: LiveSwitch) -> None:
    assert switch.process is not None
    client = await SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")).__aenter__()
    os.kill(switch.process.pid, signal.SIGSTOP)
    await asyncio.wait_for(client.close(), DEADLINE_S)
