# SPDX-License-Identifier: Apache-2.0
"""`fairlane run --dry-run` on real switches: it measures and gives way, and writes nothing; beside a loop it is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.programs.qthresh import law
from fairlane_controller.programs.qthresh.control import QthreshControl, QthreshTopology
from fairlane_controller.programs.qthresh.flows import FlowKey
from fairlane_controller.programs.qthresh.law import FlowCount
from fairlane_controller.programs.qthresh.policies import read_managed
from fairlane_controller.programs.qthresh.settings import PolicySettings
from fairlane_controller.state.events import EventLog
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
        assert "fewer than 2 measurements of BW" in decision["why"]
        assert in_force(switch) == before
        (done,) = switch.json("threshold", "set", "9")
        assert done["via"] == "direct"
        assert in_force(switch) == ("qthresh", 9)
    made = {path.name for path in switch.folder.iterdir()} - files
    assert made <= {"controller-events.jsonl", "ready", "loop.log", "change.lock", "state.db-wal", "state.db-shm"}


def test_beside_a_loop_it_is_refused(switch: LiveSwitch) -> None:
    with switch.loop():
        assert "reports what it decides: `fairlane log" in switch.fairlane("run", "--dry-run", code=7)


def test_options_that_write_are_refused(switch: LiveSwitch) -> None:
    assert "--dry-run goes with none of" in switch.fairlane("run", "--dry-run", "--backup", code=2)


async def test_a_threshold_set_by_hand_while_counters_are_read_is_not_tuned(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = QthreshTopology()
    monkeypatch.setattr(law, "PERIOD_S", 0.05)
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
        control._classes[3, 0].planned = 6.0  # pyright: ignore[reportPrivateUsage]
        await asyncio.wait_for(reading.wait(), 20)
        topology.store.write({"s1/3/0": PolicySettings(threshold=9)})
        await agent.exclusively(read_managed)
        go.set()
        for _ in range(5):
            await asyncio.sleep(0)
        async with agent.writes:  # whoever waited for it before has had it
            assert tuned == []
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
