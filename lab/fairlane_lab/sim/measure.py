# SPDX-License-Identifier: Apache-2.0
"""What a run in virtual time is read at: counters at both ends of the measured window, and the controller's events."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from fairlane_controller.state.events import EventLog
from fairlane_topology.topology import PortKey

from fairlane_lab.programs.part import program_drops
from fairlane_lab.sim.world import SimWorld


class MemoryLog(EventLog):
    """The controller's event log, kept in memory with `t_s` of the running loop instead of wall-clock times."""

    def __init__(self) -> None:
        super().__init__(None)
        self.events: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        """One event."""
        t_s = round(asyncio.get_running_loop().time(), 9)
        self.events.append({"t_s": t_s, "event": event, **fields})


@dataclass(frozen=True)
class Snapshot:
    """All counters at one instant."""

    t_s: float
    flows: dict[str, dict[str, Any]]
    ports: dict[PortKey, dict[str, Any]]
    "Of the managed ones `drops` are those refused by the program, and by the queue behind."
    of_program: dict[str, Any]
    "What the program reads of each switch beside that."


async def snapshot(world: SimWorld) -> Snapshot:
    """Read everything; takes no virtual time."""
    flows = {row["flow"]: row for row in json.loads(world.simulation.flows())}
    ports = {(row["switch"], row["port"]): row for row in json.loads(world.simulation.ports())}
    of_program: dict[str, Any] = {}
    for switch in world.managed_switches():
        numbers = [port for name, port in world.config.managed if name == switch]
        async with world.client(world.endpoint(switch)) as client:
            for port, refused in (await program_drops(client, world.part, numbers)).items():
                ports[switch, port]["drops"] = refused + sum(ports[switch, port]["drops"].values())
            of_program[switch] = await world.part.read(client, world.config.managed, world.plans)
    return Snapshot(world.loop.time(), flows, ports, of_program)
