# SPDX-License-Identifier: Apache-2.0
"""`fairlane run --dry-run` on real switches: alone it measures and gives way, beside a loop it asks that one; it writes nothing."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.measure.estimators import Estimate
from fairlane_controller.measure.port import PortMeasurement
from fairlane_controller.programs.qthresh.control import QthreshControl
from fairlane_controller.programs.qthresh.flows import FlowKey
from fairlane_controller.programs.qthresh.follower import DryFollower
from fairlane_controller.programs.qthresh.law import FlowCount, LawOptions
from fairlane_controller.programs.qthresh.options import QthreshOptions
from fairlane_controller.programs.qthresh.policies import Policy, Scheme, read_managed
from fairlane_controller.programs.qthresh.store import Mode, PolicyState
from fairlane_controller.programs.qthresh.topology import QthreshTopology
from fairlane_controller.state.events import EventLog
from fairlane_controller.state.run_state import read_run_state
from fairlane_controller.switch.changeset import put_entries
from fairlane_controller.switch.client import Endpoint, SwitchClient
from learned_tools import at_port_3
from live_switch import LiveSwitch, wait_until


def in_force(switch: LiveSwitch) -> tuple[str, int]:
    (row,) = switch.json("threshold", "show")
    return row["scheme"], row["qthresh_packets"]


def test_alone_it_is_the_primary_until_somebody_writes(switch: LiveSwitch) -> None:
    before = in_force(switch)
    files = {path.name for path in switch.folder.iterdir()}
    with switch.loop("--dry-run"):
        (taken,) = switch.events("took_over")
        assert taken["dry_run"] is True
        assert taken["why"] == "there is no other primary: we measure, and write nothing"
        wait_until("a decision", lambda: switch.events("decision"))
        (decision,) = switch.events("decision")
        assert (decision["dry_run"], decision["outcome"], decision["port"], decision["class"]) == (
            True,
            "not_ready",
            3,
            0,
        )
        assert "no measurement of BW yet" in decision["why"]
        assert in_force(switch) == before
        (done,) = switch.json("threshold", "set", "9")
        assert done["via"] == "direct"
        assert in_force(switch) == ("qthresh", 9)
    made = {path.name for path in switch.folder.iterdir()} - files
    assert made <= {"controller-events.jsonl", "ready", "loop.log", "change.lock", "state.db-wal", "state.db-shm"}


def test_beside_a_loop_it_decides_by_what_that_one_measures(switch: LiveSwitch, tmp_path: Path) -> None:
    events, ready = tmp_path / "dry.jsonl", tmp_path / "dry-ready"
    with switch.loop():
        command = switch.command("run", "--dry-run", "--events", str(events), "--ready-file", str(ready))
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until("the dry run", ready.exists)
            wait_until("its decision", lambda: len(records(events)) >= 2)
            assert process.poll() is None
            assert switch.loop_status()["connected"] is True
        finally:
            process.kill()
            process.wait(timeout=10)
    told = records(events)
    assert [event["event"] for event in told[:2]] == ["took_over", "decision"]
    assert all(event["dry_run"] for event in told)
    assert "a loop runs" in told[0]["why"]


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def test_options_that_write_are_refused(switch: LiveSwitch) -> None:
    assert "--dry-run goes with none of" in switch.fairlane("run", "--dry-run", "--backup", code=2)


async def test_a_follower_decides_as_the_loop_would(switch: LiveSwitch, tmp_path: Path, monkeypatch: Any) -> None:
    """With measurements that ask for 12 packets where 6 are in force, it tells so once, and goes on as if it were so."""
    bw, t_res, l_d, n_c = (Estimate(value, 50, 0.1, 0.0) for value in (2e6, 0.033, 1014.0, 2.0))
    measured = PortMeasurement(bw, t_res, l_d, n_c, 3)
    policy = {"port": 3, "class": 0, "scheme": "qthresh", "qthresh_packets": 6, "weight": 1.0, "mode": "auto"}

    async def ask(_folder: Path, request: dict[str, Any]) -> list[dict[str, Any]]:
        if request["op"] == "measure":
            return [{"switch": "s1", "port": 3, **measured.to_json()}]
        return [{"switch": "s1", "policies": [policy]}]

    monkeypatch.setattr("fairlane_controller.programs.qthresh.follower.ask", ask)
    events = tmp_path / "dry.jsonl"
    follower = DryFollower(read_run_state(switch.folder), EventLog(events, dry_run=True), QthreshOptions())
    for _ in range(6):
        await follower.poll()
    told = [event for event in records(events) if event["event"] == "threshold"]
    assert [(event["previous_packets"], event["qthresh_packets"]) for event in told] == [(6, 12)]
    assert "goes from 6 to 12 packets: (9) says 11.8" in told[0]["why"]


async def test_a_client_that_plans_gets_the_changes_and_writes_none(switch: LiveSwitch) -> None:
    policy = Policy(3, 7, Scheme.QTHRESH, 9)
    async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")) as client:
        client.planned = []
        assert await put_entries(client, [policy.entry]) == 1
        assert [change.kind for change in client.planned] == ["insert"]
        assert (3, 7) not in (await read_managed(client))[1]


async def test_a_threshold_set_by_hand_while_counters_are_read_is_not_tuned(switch: LiveSwitch) -> None:
    topology = QthreshTopology(options=QthreshOptions(law=LawOptions(period_s=0.05)))
    agent = SwitchAgent(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}"), topology, EventLog(None))
    control = agent.control
    assert isinstance(control, QthreshControl)
    reading, go, tuned = asyncio.Event(), asyncio.Event(), list[Any]()

    async def counts(_client: SwitchClient) -> dict[FlowKey, FlowCount]:
        reading.set()
        await go.wait()
        return {}

    async def tune(*arguments: Any) -> None:
        tuned.append(arguments)

    task = asyncio.create_task(agent.run())
    try:
        await asyncio.wait_for(agent.ready.wait(), 20)
        control._flows.read_flow_counts, control._tune = counts, tune  # type: ignore[method-assign]  # pyright: ignore[reportPrivateUsage]
        control._flows.values |= at_port_3(1000, 1001)  # pyright: ignore[reportPrivateUsage]
        control._planned[(3, 0)] = 6.0  # pyright: ignore[reportPrivateUsage]
        await asyncio.wait_for(reading.wait(), 20)
        control._store.put({("s1", 3, 0): PolicyState(mode=Mode.MANUAL, pinned_packets=9)})  # pyright: ignore[reportPrivateUsage]
        await agent.exclusively(read_managed)
        go.set()
        for _ in range(5):
            await asyncio.sleep(0)
        async with agent.writes:  # whoever waited for it before has had it
            assert tuned == []
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
