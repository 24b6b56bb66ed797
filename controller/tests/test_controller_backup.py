# SPDX-License-Identifier: Apache-2.0
"""Primary and backup: the backup takes over what the switches hold as it is, at once, and the two do not alternate."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.qthresh.flows import FlowKey
from fairlane_controller.state.locks import FolderRole
from fairlane_controller.switch.client import Endpoint, SwitchClient
from finsy import P4CounterData, P4CounterEntry
from live_switch import REPOSITORY, idle
from live_topology import TOPOLOGIES, Controller, LiveTopology, controllers, live_topology, wait_until

pytestmark = pytest.mark.timed

TABLES = ("policy", "port_limit", "ipv4_lpm", "flow_v4")


def add_flows(topology: LiveTopology, flows: int) -> None:
    """Flow entries in every switch, as a controller that ran before has left them, each with its counter at work."""

    async def add(name: str, address: str) -> None:
        async with SwitchClient(Endpoint(name, address), write=True) as client:
            entries = [replace(flow_key(number).entry(number), idle_timeout_ns=300 * 10**9) for number in range(flows)]
            await client.write([+entry for entry in entries])
            cells = [
                P4CounterEntry("flow_drops", index=n, data=P4CounterData(packet_count=n + 1)) for n in range(flows)
            ]
            await client.write([~cell for cell in cells])

    async def add_all() -> None:
        await asyncio.gather(*(add(name, address) for name, address in topology.addresses.items()))

    asyncio.run(add_all())


def flow_key(number: int) -> FlowKey:
    return FlowKey.from_fields(
        4,
        {
            "ip_version": 4,
            "src": 0x0A000101,
            "dst": 0x0A000202,
            "protocol": 6,
            "src_port": 1000 + number,
            "dst_port": 5001,
        },
    )


def counters(topology: LiveTopology) -> dict[tuple[str, str], int]:
    """The flows' counters of drops in every switch: what must not begin again."""
    return {(row["switch"], row["flow"]): row["dropped_packets"] for row in topology.json("flows")}


def test_the_backup_takes_over_within_2_s_and_changes_nothing(tmp_path: Path) -> None:
    with live_topology(tmp_path, "parking.json") as topology:
        add_flows(topology, 20)
        long = idle(tmp_path, "300s")
        with controllers(Controller(tmp_path, "first", *long)) as alive:
            first = alive[0]
            first.wait_ready()
            topology.set_thresholds(11)
            words = "fairlane run --backup"
            assert f"\n{words} " in (REPOSITORY / "controller" / "README.md").read_text(encoding="utf-8")
            second = Controller(tmp_path, "second", *words.split()[2:], *long)
            alive.append(second)
            second.wait_ready()
            text = topology.fairlane("status")
            assert f"backup: process {second.process.pid} waits to take over" in text
            # A third one is told that both places are taken.
            for arguments, words in (
                ((), "a control loop runs for"),
                (("--backup",), "a control loop and a backup"),
            ):
                refused = topology.fairlane("run", *arguments, code=7)
                assert words in refused
            before, counted = topology.entries(*TABLES), counters(topology)
            assert sorted(set(counted.values())) == list(range(1, 21))
            writes = len(topology.events("threshold")) + len(topology.events("restored"))

            first.kill()
            wait_until("the backup to take over", lambda: topology.connected() == set(topology.switches))
            assert topology.entries(*TABLES) == before
            assert counters(topology) == counted
            assert writes == len(topology.events("threshold")) + len(topology.events("restored"))
            (leads,) = topology.events("leads")
            assert leads["why"] == "the primary has ended, so its backup goes on from what the switches hold"
            assert topology.json("status")["backup"] is None
            # It has read what the primary was told by hand, and takes changes now.
            policies = [policy for status in topology.statuses().values() for policy in status["policies"]]
            assert {policy["mode"] for policy in policies} == {"manual"}
            topology.set_thresholds(12)

            # Started again with the options it had, the first one becomes the backup: no change of hands.
            again = Controller(tmp_path, "first", *long)
            alive.append(again)
            again.wait_ready()
            assert topology.json("status")["backup"]["pid"] == again.process.pid
            taken = len(topology.events("took_over"))
            assert taken == 2 * len(topology.switches)
            second.kill()
            wait_until("the first one to take over", lambda: topology.connected() == set(topology.switches))
            assert {row["qthresh_packets"] for row in topology.json("threshold", "show")} == {12}
            assert len(topology.events("took_over")) == taken + len(topology.switches)
            assert not topology.events("backup")  # nobody was ever thrown out of the primary's role


def test_a_switch_that_restarts_while_the_primary_is_dead_gets_its_thresholds_from_the_backup(tmp_path: Path) -> None:
    with live_topology(tmp_path, "dumbbell.json") as topology, controllers(Controller(tmp_path, "first")) as alive:
        alive[0].wait_ready()
        topology.set_thresholds(11)
        alive.append(Controller(tmp_path, "second", "--backup"))
        alive[1].wait_ready()
        wait_until("the backup to have looked", lambda: observed(topology) == {11})
        topology.switches["s1"].kill()
        alive[0].kill()
        topology.restart("s1")
        wait_until("s1 to be restored", lambda: "s1" in topology.connected())
        (row,) = topology.json("threshold", "show")
        assert (row["qthresh_packets"], row["mode"]) == (11, "manual")


def observed(topology: LiveTopology) -> set[int]:
    """The thresholds that the backup knows of."""
    backup = topology.json("status")["backup"]
    found = [policy for entry in backup["switches"] for policy in entry["policies"]] if backup else []
    return {policy["qthresh_packets"] for policy in found}


def test_the_loop_of_gfr_has_a_backup_too(tmp_path: Path) -> None:
    with live_topology(tmp_path, "gfr-p2p.json", program="gfr") as topology:
        topology.fairlane("config", "apply", str(TOPOLOGIES / "gfr-p2p.toml"))
        with controllers(Controller(tmp_path, "first")) as alive:
            alive[0].wait_ready()
            alive.append(Controller(tmp_path, "second", "--backup"))
            alive[1].wait_ready()
            # What was reported to the primary after the backup began is not undone by it.
            topology.fairlane("gfr", "vc", "delete", "vc4")
            before = topology.entries("vc_classify", "vc_edge")
            assert len(before["vc_classify"]) == 4
            alive[0].kill()
            wait_until("the backup to take over", lambda: topology.connected() == set(topology.switches))
            assert topology.entries("vc_classify", "vc_edge") == before
            assert len(topology.events("leads")) == 1


def test_a_backup_without_a_primary_is_the_primary(tmp_path: Path) -> None:
    with (
        live_topology(tmp_path, "dumbbell.json") as topology,
        controllers(Controller(tmp_path, "run", "--backup")) as (only,),
    ):
        only.wait_ready()
        assert topology.connected() == {"s1", "s2"}


async def test_the_roles_of_a_folder_pass_on(tmp_path: Path) -> None:
    first = FolderRole(tmp_path)
    second = FolderRole(tmp_path, backup=True)
    assert (first.is_primary, second.is_primary) == (True, False)
    with pytest.raises(FairlaneError, match="`fairlane run --backup` waits to take over") as caught:
        FolderRole(tmp_path)
    assert caught.value.code is ErrorCode.LOOP_RUNNING
    with pytest.raises(FairlaneError, match="a control loop and a backup"):
        FolderRole(tmp_path, backup=True)
    waiting = asyncio.create_task(second.wait_until_primary())
    first.close()
    await asyncio.wait_for(waiting, 5)
    # The place of the first one was taken by its backup: it is the backup now, and there is room for no other.
    again = FolderRole(tmp_path)
    assert (second.is_primary, again.is_primary) == (True, False)
    with pytest.raises(FairlaneError, match="a control loop and a backup"):
        FolderRole(tmp_path)
    again.close()
    second.close()


def test_without_a_folder_there_is_nobody_else() -> None:
    assert FolderRole(None, backup=True).is_primary
