# SPDX-License-Identifier: Apache-2.0
"""A configuration for all switches that it concerns: checked, numbered, remembered, as entries.

state = gfr_store(folder).get()
plan = make_plan(config, state, now_s, run, "gfr.toml")
change = await change_set(load_program("gfr"), plan, {"s1": client})"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairlane import P4TableEntry, Place, Plan, RunState, Wanted
from fairlane.changes import STATE_FILE, Documents
from fairlane.switch import Entries
from finsy import P4CounterData, P4CounterEntry
from pydantic import BaseModel, ConfigDict, Field

from . import names
from .allocation import Allocation, SlotAssignment, allocate
from .check import check_config
from .config import GfrConfig, PortConfig, VcConfig
from .entries import classify_entries, edge_entries, mark_entries, port_entries
from .model import cells_of_packet
from .paths import path_of, vcs_of

GFR_DOCUMENT = "gfr"
MIN_FRAMES = 2
"""Of MTU: LBO never becomes smaller, or nothing marked would ever be accepted."""


class GfrState(BaseModel):
    """What is in force."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: int = 1
    config: GfrConfig = Field(default_factory=GfrConfig)
    allocation: Allocation = Field(default_factory=Allocation)


def gfr_store(folder: Path | None) -> Documents[GfrState]:
    """The state, in the state file of a folder; `folder` None keeps it in memory only. Raises BAD_FILE when it cannot be understood."""
    return Documents(folder, GFR_DOCUMENT, GfrState, GFR_DOCUMENT)


@dataclass(frozen=True)
class GfrPlan(Plan):
    """A checked configuration with all its numbers; `state` is what is in force once every switch has it."""

    state: GfrState
    before: GfrState = field(default_factory=GfrState)
    reused: tuple[SlotAssignment, ...] = ()
    "Slots that had another VC before."
    run: RunState | None = field(default=None, repr=False)
    active: Mapping[Place, Collection[str]] = field(default_factory=dict[Place, Collection[str]])
    "Active VCs of each port, as a running loop has them; of a port that is not in it all VCs are active."
    lines: Mapping[Place, float] = field(default_factory=dict[Place, float])
    "What the line of a port carries, as a running loop has it."

    def with_loop(self, status: Mapping[str, Any]) -> GfrPlan:
        """With what a running loop has decided meanwhile; `status` by switch."""
        ports = {(switch, port["port"]): port for switch, known in status.items() for port in known["ports"]}
        active = {at: port["active"] for at, port in ports.items()}
        return replace(self, active=active, lines={at: port["capacity_bps"] for at, port in ports.items()})

    def ports(self, switch: str) -> Iterator[tuple[PortConfig, list[VcConfig]]]:
        """The managed ports of a switch, each with its VCs; one that follows its line (`follow_capacity`) with what that carries."""
        crossing = vcs_of(self.state.config, self.run)
        for port in self.state.config.ports:
            if port.switch == switch:
                bps, vcs = self.lines.get(port.place, port.capacity), crossing[port.place]
                follows = port.follow_capacity and bps != port.capacity
                yield scale_to_capacity(port, bps, sum(vc.mcr for vc in vcs)) if follows else port, vcs

    def port_entries(self, switch: str, numbers: Collection[int] | None = None) -> list[P4TableEntry]:
        """The entries of a switch that change with the active VCs and the lines; `numbers`: those of these ports only."""
        allocation, made = self.state.allocation, list[P4TableEntry]()
        for port, vcs in self.ports(switch):
            if numbers is None or port.port in numbers:
                made += port_entries(port, vcs, self.active.get(port.place), allocation)
        return made

    def entries(self, switch: str) -> list[P4TableEntry]:
        """Every entry of GFR's tables that a switch should have; none for a switch that the configuration does not name."""
        config, allocation, made = self.state.config, self.state.allocation, self.port_entries(switch)
        if switch not in config.switches:
            return []
        made += mark_entries(config.clp_dscp)
        capacities = {port.place: port.capacity for port in config.ports}
        for vc in config.vcs:
            vc_id, edges = allocation.vc_ids[vc.name], [edge for edge in vc.edge if edge.switch == switch]
            capacity = min(capacities[place] for place in path_of(config, vc, self.run)) if edges else 0.0
            for edge in edges:
                made += edge_entries(edge.ingress_port, vc, vc_id, capacity)
            for match in vc.match:
                if match.switch == switch:
                    made += classify_entries(match, vc_id)
        return made

    @property
    def concerned(self) -> tuple[str, ...]:
        """The switches that have, or had, entries of it."""
        names = sorted({*self.state.config.switches, *self.before.config.switches})
        there = {switch.name for switch in self.run.switches} if self.run is not None else names
        return tuple(name for name in names if name in there)

    def wanted(self, switch: str, current: Entries) -> Wanted:
        """The entries of every VC, and what lets slots that had another VC count from 0; a switch without VCs keeps its current entries."""
        if switch not in self.concerned:
            return Wanted(list(current.values()))
        slots = [assignment.slot for assignment in self.reused if assignment.switch == switch]
        cells = [slot * names.VERDICTS_A_SLOT + cell for slot in slots for cell in range(names.VERDICTS_A_SLOT)]
        resets = [~P4CounterEntry(names.COUNTER_VERDICTS, index=cell, data=P4CounterData()) for cell in cells]
        return Wanted(self.entries(switch), resets)

    @property
    def documents(self) -> dict[str, Any]:
        """The whole configuration with its numbers; nothing where it is in force already."""
        return {} if self.state.config == self.before.config else {GFR_DOCUMENT: self.state.model_dump(mode="json")}

    @property
    def documents_back(self) -> dict[str, Any]:
        """What is to be remembered when it is undone: as before, but slots that had a VC meanwhile are no new ones."""
        allocation = self.before.allocation.model_copy(update={"used": self.state.allocation.used})
        return {GFR_DOCUMENT: self.before.model_copy(update={"allocation": allocation}).model_dump(mode="json")}


def make_plan(config: GfrConfig, before: GfrState, now_s: float, run: RunState | None, source: str) -> GfrPlan:
    """Check a configuration and number its VCs. Writes nothing.

    Args:
        config: The new configuration.
        before: What is in force.
        now_s: As of `allocate`.
        run: The topology, where it is known.
        source: Where the configuration stands, for errors.

    Raises:
        FairlaneError: BAD_FILE, or OUT_OF_RANGE when no number is left for a VC.
    """
    check_config(config, source, run)
    allocation, reused = allocate(config, before.allocation, now_s, run)
    return GfrPlan(GfrState(config=config, allocation=allocation), before, reused, run)


def plan_in_force(state: GfrState, run: RunState) -> GfrPlan:
    """The plan of what is remembered; raises BAD_FILE when the topology cannot have it any more."""
    return make_plan(state.config, state, time.time(), run, f"{run.folder / STATE_FILE}: {GFR_DOCUMENT}")


def scale_to_capacity(port: PortConfig, capacity_bps: float, mcr_bps: float) -> PortConfig:
    """The port on a line that carries another rate than configured.

    w_i share that rate. Where it is less than configured, LBO and HBO hold as much time as before, not as many cells, and never less
    than two frames.

    Args:
        port: As configured.
        capacity_bps: What the line carries.
        mcr_bps: The sum of its VCs' MCR, which the new capacity is at least.
    """
    capacity = max(capacity_bps, mcr_bps)
    part = min(1.0, capacity / port.capacity)
    floor = MIN_FRAMES * cells_of_packet(port.mtu_bytes or 1500)
    lbo = min(port.lbo_cells, max(round(port.lbo_cells * part), floor))
    hbo = min(port.hbo_cells, max(round(port.hbo_cells * part), lbo + 1))
    return port.model_copy(update={"capacity": capacity, "lbo_cells": lbo, "hbo_cells": hbo})
