# SPDX-License-Identifier: Apache-2.0
"""`LiveSource` when a topology is started again under the same name on the other target."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import pytest
from fairlane_controller.gnmi.ports import PortInfo
from fairlane_controller.live.source import LiveSource
from fairlane_controller.state.run_state import RunState, read_run_state, read_topology, write_topology
from fairlane_controller.switch.client import Endpoint, endpoint_of
from live_switch import LiveSwitch


@dataclass(frozen=True)
class Targets:
    """What `LiveSource` wants to know."""

    endpoints: tuple[Endpoint, ...]
    run: RunState | None = None


async def test_the_queues_are_asked_as_the_new_target_has_them(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gNMI is asked of an embedded switch, not of a BMv2, whatever ran under the name before; with the same address, too."""
    asked: list[str] = []

    class Source:
        async def open(self) -> None:
            pass

        async def ports(self) -> list[PortInfo]:
            asked.append(target)
            return []

        async def close(self) -> None:
            pass

    def source_of(_: Endpoint) -> Source:
        return Source()

    def starts_on(new: str) -> None:
        state["target"] = new
        write_topology(switch.folder, state)

    monkeypatch.setattr("fairlane_controller.gnmi.embedded.GnmiPorts", source_of)
    state = read_topology(switch.folder)
    target = "bmv2"
    starts_on(target)
    run = read_run_state(switch.folder)
    targets = Targets(tuple(endpoint_of(one) for one in run.switches), run)
    async with LiveSource(targets) as source:
        for target in ("bmv2", "embedded", "bmv2"):
            starts_on(target)
            end = time.monotonic() + 20.0
            while not (now := await source.snapshot()).switches[0].program or now.target != target:
                assert time.monotonic() < end, now.switches
                await asyncio.sleep(0.05)
    assert set(asked) == {"embedded"}
