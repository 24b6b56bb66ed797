# SPDX-License-Identifier: Apache-2.0
"""Connections that break, go silent or are taken over: the loop tells it, waits, and goes on from what the switch holds."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop import agent as agents
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.programs.qthresh.control import QthreshTopology
from fairlane_controller.programs.qthresh.names import Scheme
from fairlane_controller.programs.qthresh.policies import LoopStore, Policy, read_managed
from fairlane_controller.state.events import EventLog
from fairlane_controller.switch.changeset import put_entries
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fault_tools import cut_proxy, set_threshold
from live_switch import LiveSwitch, idle, wait_until
from live_topology import Controller, controllers, live_topology

pytestmark = pytest.mark.timed

DEADLINE_S = 20.0


async def until(what: str, check: Callable[[], Any]) -> None:
    """`wait_until` without holding the event loop."""
    await asyncio.to_thread(wait_until, what, check, DEADLINE_S)


@contextlib.asynccontextmanager
async def running_agent(folder: Path, port: int) -> AsyncGenerator[SwitchAgent, None]:
    """The loop of one switch in this process, events in `folder/controller-events.jsonl`."""
    log = EventLog(folder / "controller-events.jsonl")
    topology = QthreshTopology(store=LoopStore(folder))
    agent = SwitchAgent(Endpoint("s1", f"127.0.0.1:{port}"), topology, log, connect_timeout_s=0.5)
    task = asyncio.create_task(agent.run())
    try:
        await until("the loop to serve the switch", lambda: agent.client is not None)
        yield agent
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        log.close()


def waits(agent: SwitchAgent) -> bool:
    """Whether it waits for another controller to go."""
    return agent.client is None and agent.last_error is not None and agent.last_error.code.value == "not_primary"


async def policy_of(switch: LiveSwitch) -> Policy:
    async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")) as client:
        return (await read_managed(client))[1][(3, 0)]


@pytest.mark.parametrize("how", ["cut", "silence"])
async def test_a_cut_connection_is_told_and_taken_up_again(
    switch: LiveSwitch, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken, or silent as when a cable is pulled. The times are a tenth of the real ones; so 3 s stand for 30."""
    monkeypatch.setattr(agents, "PING_PERIOD_S", 0.2)
    monkeypatch.setattr(agents, "PING_TIMEOUT_S", 0.5)
    with cut_proxy(switch.grpc_port) as proxy:
        async with running_agent(switch.folder, proxy.port) as agent:
            await set_threshold(agent, switch.folder, 9, 1.5)
            getattr(proxy, how)()
            await until("the loop to notice", lambda: agent.client is None)
            await asyncio.sleep(3.0)  # the cut itself, no readiness
            assert agent.client is None
            assert agent.last_error is not None
            assert agent.last_error.code.value == "switch_unreachable"
            # The switch goes on as it was told last.
            held = await policy_of(switch)
            assert (held.scheme, held.qthresh_packets, held.weight) == (Scheme.QTHRESH, 9, 1.5)
            proxy.heal()
            await until("the loop to serve again", lambda: agent.client is not None)
            await set_threshold(agent, switch.folder, 10)
    assert (await policy_of(switch)).qthresh_packets == 10
    # Told once for the whole cut, not with every attempt.
    assert 1 <= len(switch.events("error")) <= 3
    assert len(switch.events("took_over")) == 2
    assert not switch.events("restored")


async def test_a_stranger_with_a_higher_id_comes_and_goes(switch: LiveSwitch) -> None:
    async with running_agent(switch.folder, switch.grpc_port) as agent:
        for turn, packets in enumerate((7, 8, 9)):
            async with SwitchClient(
                Endpoint("s1", f"127.0.0.1:{switch.grpc_port}"), write=True, election_id=2**62 + turn
            ) as stranger:
                await until("the loop to wait for its end", lambda: waits(agent))
                await put_entries(stranger, [Policy(3, 0, Scheme.QTHRESH, packets).entry])
                assert stranger.is_primary
            await until("the loop to be primary again", lambda: agent.client is not None)
            policies = agent.status()["policies"]
            assert [policy["qthresh_packets"] for policy in policies] == [packets]
    assert len(switch.events("promoted")) == 3
    assert len(switch.events("took_over")) == 4
    assert not switch.events("threshold")


@pytest.mark.parametrize("ahead_s", [None, 86_400])
async def test_the_newest_writer_is_the_primary_whatever_the_clock_says(
    switch: LiveSwitch, ahead_s: int | None
) -> None:
    """Earlier versions bid the time in ms: the clock was set back by a day since one of them, or another host's is ahead."""
    endpoint = Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")
    older_id = None if ahead_s is None else int((time.time() + ahead_s) * 1000)
    async with SwitchClient(endpoint, write=True, election_id=older_id) as older:
        before = older.election_id
        async with SwitchClient(endpoint, write=True) as newer:
            assert newer.is_primary
            assert newer.election_id == before + 1
            await until("the older one to be reported", lambda: not older.is_primary)
    async with SwitchClient(endpoint, write=True) as last:
        assert last.is_primary


async def test_of_two_controllers_without_a_folder_the_newest_leads_and_nobody_takes_turns(
    switch: LiveSwitch, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("older", "newer")]
    for folder in folders:
        folder.mkdir()
    async with running_agent(folders[0], switch.grpc_port) as older:
        async with running_agent(folders[1], switch.grpc_port) as newer:
            await until("the older one to step back", lambda: older.client is None)
            await asyncio.sleep(1.0)  # time enough to take turns
            assert newer.client is not None
            assert (folders[0] / "controller-events.jsonl").read_text().count('"backup"') == 1
            assert (folders[1] / "controller-events.jsonl").read_text().count('"took_over"') == 1
        await until("the older one to lead again", lambda: older.client is not None)


def test_of_two_that_are_started_at_once_one_runs(tmp_path: Path) -> None:
    with live_topology(tmp_path, "dumbbell.json") as topology:
        both = [Controller(tmp_path, f"run{number}") for number in range(2)]
        with controllers(*both):
            wait_until("one to run and one to give up", lambda: all(c.is_settled() for c in both))
            assert sorted(c.process.poll() is None for c in both) == [False, True]
            loser = next(c for c in both if c.process.poll() is not None)
            assert loser.process.returncode == 7
            assert "a control loop runs for" in loser.log.read_text(encoding="utf-8")
            assert topology.connected() == {"s1", "s2"}


def test_a_killed_controller_s_flows_and_thresholds_are_taken_over(switch: LiveSwitch) -> None:
    """kill -9, and a start with the same command: entry by entry the switch holds the same."""
    with switch.loop() as process:
        switch.fairlane("threshold", "set", "8", "-w", "1.5")
        process.kill()
        process.wait(timeout=10)
    add_flows = (
        "import asyncio\n"
        "from dataclasses import replace\n"
        "from fairlane_controller.programs.qthresh.flows import FlowKey\n"
        "from fairlane_controller.switch.client import Endpoint, SwitchClient\n"
        "async def add():\n"
        f"    async with SwitchClient(Endpoint('s1', '127.0.0.1:{switch.grpc_port}'), write=True) as client:\n"
        "        digest = dict(ip_version=4, src=0x0a000101, dst=0x0a000301, protocol=6, dst_port=5001)\n"
        "        entries = [FlowKey.from_fields(4, {**digest, 'src_port': n}).entry(n) for n in range(50)]\n"
        "        await client.write([+replace(entry, idle_timeout_ns=300 * 10**9) for entry in entries])\n"
        "asyncio.run(add())\n"
    )
    subprocess.run([sys.executable, "-c", add_flows], check=True, timeout=60)
    before = {
        table: switch.json("p4", "table_dump", table) for table in ("policy", "port_limit", "ipv4_lpm", "flow_v4")
    }
    with switch.loop(*idle(switch.folder, "300s")):
        assert switch.events("took_over")[-1]["flows"] == 50
        assert {table: switch.json("p4", "table_dump", table) for table in before} == before
        assert switch.loop_status()["flows"] == 50


async def test_a_connection_of_our_own_that_never_ended_is_outbid(switch: LiveSwitch) -> None:
    """A cable was pulled: the switch still holds our old connection for the primary, and would for a minute."""
    log = EventLog(switch.folder / "controller-events.jsonl")
    endpoint = Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")
    agent = SwitchAgent(endpoint, QthreshTopology(store=LoopStore(switch.folder)), log)
    ours = agent._election_id = 2**33  # pyright: ignore[reportPrivateUsage]
    async with SwitchClient(endpoint, write=True, election_id=ours) as ghost:
        task = asyncio.create_task(agent.run())
        try:
            await until("the loop to serve the switch", lambda: agent.client is not None)
            assert not ghost.is_primary
            client = agent.connected()
            assert client.switch.election_id == ours + 1
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            log.close()


async def test_a_loop_without_a_topology_serves_a_switch_that_gets_its_program_later(bare_switch: LiveSwitch) -> None:
    """It has no program to give; `fairlane config init` of somebody else is what it waits for."""
    log = EventLog(bare_switch.folder / "controller-events.jsonl")
    endpoint = Endpoint("s1", f"127.0.0.1:{bare_switch.grpc_port}")
    agent = SwitchAgent(endpoint, QthreshTopology(), log)
    task = asyncio.create_task(agent.run())
    try:
        await until("the loop to miss the program", lambda: waits_for_program(agent))
        await asyncio.to_thread(bare_switch.fairlane, "config", "init", "--scheme", "qthresh")
        await until("the loop to serve the switch", lambda: agent.client is not None)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        log.close()


def waits_for_program(agent: SwitchAgent) -> bool:
    return agent.last_error is not None and agent.last_error.code.value == "no_pipeline"


async def test_a_backup_sees_a_program_that_came_after_it_had_connected(bare_switch: LiveSwitch) -> None:
    log = EventLog(bare_switch.folder / "controller-events.jsonl")
    endpoint = Endpoint("s1", f"127.0.0.1:{bare_switch.grpc_port}")
    agent = SwitchAgent(endpoint, QthreshTopology(), log)
    agent.stand_by()
    task = asyncio.create_task(agent.run())
    try:
        await until("the backup to look on", agent.ready.is_set)
        await asyncio.to_thread(bare_switch.fairlane, "config", "init", "--scheme", "qthresh")
        await until("it to know the policy", lambda: [p["scheme"] for p in agent.status()["policies"]] == ["qthresh"])
        assert not bare_switch.events("error")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        log.close()


@pytest.mark.parametrize("address", ["a..b:1", f"{'a' * 64}:1", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536"])
async def test_what_is_no_address_is_a_switch_that_does_not_answer(address: str) -> None:
    with pytest.raises(FairlaneError, match=f"switch s1 at {address} does not answer: ") as caught:
        await SwitchClient(Endpoint("s1", address), timeout_s=0.1).__aenter__()
    assert caught.value.code is ErrorCode.SWITCH_UNREACHABLE


async def test_a_served_connection_that_ends_in_a_cancelled_call_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gRPC cancels the call that was on its way when a connection breaks, and not always raises an error."""

    log = EventLog(tmp_path / "events.jsonl")
    agent = SwitchAgent(Endpoint("s1", "127.0.0.1:1"), QthreshTopology(), log)

    async def broken() -> None:
        agent._served, agent.last_error = True, agent._lost()  # pyright: ignore[reportPrivateUsage]
        raise asyncio.CancelledError

    monkeypatch.setattr(agent, "_session", broken)
    task = asyncio.create_task(agent.run())
    try:
        await until("the event", lambda: '"disconnected"' in events_of(tmp_path))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        log.close()


def events_of(folder: Path) -> str:
    path = folder / "events.jsonl"
    return path.read_text(encoding="utf-8") if path.exists() else ""
