# SPDX-License-Identifier: Apache-2.0
"""A configuration for all switches that it concerns: checked, numbered, remembered, compared with what they have.

state = GfrStore(folder).state
plan = make_plan(config, state, now_s, run, "gfr.toml")
change = await change_set(load_program("gfr"), plan, {"s1": client})"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairlane import Plan, RunState, Wanted
from fairlane.changes import STATE_FILE, Documents
from fairlane.switch import Entries
from finsy import P4CounterData, P4CounterEntry, P4TableEntry
from pydantic import BaseModel, ConfigDict, Field

from . import names as program
from .allocation import Allocation, SlotAssignment, allocate
from .check import check_config
from .config import GfrConfig
from .entries import Active, port_entries, switch_entries
from .line import scale_to_capacity
from .paths import Place, vcs_of

GFR_DOCUMENT = "gfr"


class GfrState(BaseModel):
    """What is in force."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: int = 1
    config: GfrConfig = Field(default_factory=GfrConfig)
    allocation: Allocation = Field(default_factory=Allocation)


class GfrStore(Documents[GfrState]):
    """The state, in the state file of a folder; `folder` None keeps it in memory only."""

    def __init__(self, folder: Path | None) -> None:
        """Raises BAD_FILE when it cannot be understood."""
        super().__init__(folder, GFR_DOCUMENT, GfrState, GFR_DOCUMENT)

    @property
    def state(self) -> GfrState:
        """What is in force now."""
        return self.get()

    def put(self, state: GfrState) -> None:
        """Replace it."""
        self.write({"": state})


@dataclass(frozen=True)
class GfrPlan(Plan):
    """A checked configuration with all its numbers; `state` is what is in force once every switch has it."""

    state: GfrState
    switches: tuple[str, ...]
    "The switches that have, or had, entries of it."
    before: GfrState = field(default_factory=GfrState)
    reused: tuple[SlotAssignment, ...] = ()
    run: RunState | None = field(default=None, repr=False)
    active: Active | None = None
    "Active VCs of each port, as a running loop has them; None: all are."
    lines: Mapping[Place, float] = field(default_factory=dict[Place, float])
    "What the line of a port carries, as a running loop has it."

    def with_loop(self, status: Mapping[str, Any]) -> GfrPlan:
        """With what a running loop has decided meanwhile; `status` by switch."""
        ports = {(switch, port["port"]): port for switch, known in status.items() for port in known["ports"]}
        active = {at: port["active"] for at, port in ports.items()}
        return replace(self, active=active, lines={at: port["capacity_bps"] for at, port in ports.items()})

    def entries(self, switch: str) -> list[P4TableEntry]:
        """What a switch is to have; of ports that follow their line (`follow_capacity`) what that carries."""
        return [
            *self._on_lines(switch),
            *switch_entries(self.state.config, self.state.allocation, switch, self.run, self.active),
        ]

    def _on_lines(self, switch: str) -> list[P4TableEntry]:
        made: list[P4TableEntry] = []
        crossing = vcs_of(self.state.config, self.run)
        for port in self.state.config.ports:
            bps = self.lines.get(port.place, port.capacity)
            if port.switch != switch or not port.follow_capacity or bps == port.capacity:
                continue
            vcs = crossing[port.place]
            on_line = scale_to_capacity(port, bps, sum(vc.mcr for vc in vcs))
            active = self.active.get(port.place) if self.active else None
            made += port_entries(self.state.allocation, on_line, vcs, active)
        return made

    @property
    def concerned(self) -> tuple[str, ...]:
        """The switches that have, or had, entries of it."""
        return self.switches

    def wanted(self, switch: str, current: Entries) -> Wanted:
        """The entries of every VC; a switch without VCs keeps its current entries."""
        if switch not in self.switches:
            return Wanted(list(current.values()))
        return Wanted(self.entries(switch), self._resets(switch))

    @property
    def documents(self) -> dict[str, Any]:
        """The whole configuration with its numbers; nothing where it is in force already."""
        return {} if self.state.config == self.before.config else {GFR_DOCUMENT: self.state.model_dump(mode="json")}

    @property
    def documents_back(self) -> dict[str, Any]:
        """What is to be remembered when it is undone: as before, but slots that had a VC meanwhile are no new ones."""
        allocation = self.before.allocation.model_copy(update={"used": self.state.allocation.used})
        return {GFR_DOCUMENT: self.before.model_copy(update={"allocation": allocation}).model_dump(mode="json")}

    def _resets(self, switch: str) -> list[Any]:
        """Updates that let the verdicts of slots that had another VC begin anew."""
        return [
            ~P4CounterEntry(
                program.COUNTER_VERDICTS, index=assignment.slot * program.VERDICTS_A_SLOT + cell, data=P4CounterData()
            )
            for assignment in self.reused
            if assignment.switch == switch
            for cell in range(program.VERDICTS_A_SLOT)
        ]


def make_plan(config: GfrConfig, before: GfrState, now_s: float, run: RunState | None, source: str) -> GfrPlan:
    """Check a configuration and number its VCs; raises BAD_FILE with `source` in its text, or OUT_OF_RANGE. Writes nothing."""
    check_config(config, source, run)
    allocation, reused = allocate(config, before.allocation, now_s, run)
    switches = tuple(sorted({*config.switches, *before.config.switches}))
    if run is not None:
        there = {switch.name for switch in run.switches}
        switches = tuple(name for name in switches if name in there)
    return GfrPlan(GfrState(config=config, allocation=allocation), switches, before, reused, run)


def plan_in_force(state: GfrState, run: RunState) -> GfrPlan:
    """The plan of what is remembered; raises BAD_FILE when the topology cannot have it any more."""
    return make_plan(state.config, state, time.time(), run, f"{run.folder / STATE_FILE}: {GFR_DOCUMENT}")
