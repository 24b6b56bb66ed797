# SPDX-License-Identifier: Apache-2.0
"""What a run in virtual time is read at: counters at both ends of the measured window, and the controller while it runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.events import EventLog
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.switch.shared import COUNTER_DROPS, drops_index

from fairlane_lab.gfr.counters import DROP_REASONS
from fairlane_lab.sim.world import SimWorld

WATCH_PERIOD_S = 1.0
"""Between two looks at what the controller has measured."""
MEASURED = {
    "bw_bps": ("bw_bps", 1.0),
    "t_res_ms": ("t_res_s", 1e3),
    "l_d_bytes": ("l_d_bytes", 1.0),
    "n_c": ("n_c", 1.0),
}
"""Result name → name in the controller's words, and the factor between."""

PortKey = tuple[str, int]


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
    drops: dict[PortKey, int]
    "Of the managed ports: refused by the program, and by the queue behind."
    refusals: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    "With program `gfr`: of each VC, by verdict."


async def snapshot(world: SimWorld) -> Snapshot:
    """Read everything; takes no virtual time."""
    flows = {row["flow"]: row for row in json.loads(world.simulation.flows())}
    ports = {(row["switch"], row["port"]): row for row in json.loads(world.simulation.ports())}
    drops: dict[PortKey, int] = {}
    for switch in world.managed_switches():
        numbers = [port for name, port in world.config.managed if name == switch]
        reasons = DROP_REASONS if world.gfr else (program.DropReason.QTHRESH, program.DropReason.PORT_FULL)
        indices = {drops_index(port, reason): port for port in numbers for reason in reasons}
        async with world.client(world.endpoint(switch)) as client:
            cells = await client.read_counters(COUNTER_DROPS, indices)
        for port in numbers:
            drops[switch, port] = sum(ports[switch, port]["drops"].values())
        for index, cell in cells.items():
            drops[switch, indices[index]] += cell.packet_count
    refusals = await world.gfr.refusals() if world.gfr else {}
    return Snapshot(asyncio.get_running_loop().time(), flows, ports, drops, refusals)


@dataclass
class Watch:
    """What the controller says of its ports, looked at once in `WATCH_PERIOD_S`."""

    samples: dict[tuple[PortKey, str], list[tuple[float, float]]] = field(
        default_factory=lambda: dict[tuple[PortKey, str], list[tuple[float, float]]]()
    )
    "(port, result name) → (t_s, value)."

    async def look_forever(self, agents: Sequence[SwitchAgent]) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(WATCH_PERIOD_S)
            for agent in agents:
                for row in agent.control.measurements():
                    for name, (theirs, factor) in MEASURED.items():
                        if row[theirs] is not None:
                            key = ((agent.endpoint.name, row["port"]), name)
                            self.samples.setdefault(key, []).append((loop.time(), factor * row[theirs]["value"]))

    def mean(self, port: PortKey, name: str, start_s: float, end_s: float) -> float | None:
        """Mean of what was seen in the window; of the last value before its end when nothing was; None without any."""
        samples = [(t, v) for t, v in self.samples.get((port, name), []) if t <= end_s + 1e-9]
        inside = [value for t, value in samples if t >= start_s - 1e-9]
        if inside:
            return sum(inside) / len(inside)
        return samples[-1][1] if samples else None


def step_mean(steps: Sequence[tuple[float, float]], start_s: float, end_s: float) -> float:
    """Time-weighted mean over a window of a value that holds from each step to the next. The first step is at its start or before."""
    total = 0.0
    ends = [t for t, _ in steps[1:]] + [end_s]
    for (begin, value), end in zip(steps, ends, strict=True):
        total += value * max(0.0, min(end, end_s) - max(begin, start_s))
    return total / (end_s - start_s)
