# SPDX-License-Identifier: Apache-2.0
"""A configuration for all switches that it concerns: checked, numbered, as entries.

plan = make_plan(state, gfr_store(folder).get(), run, "gfr.toml")
change = await change_set(load_program("gfr"), plan, {"s1": client})"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlane import ErrorCode, Numbering, P4TableEntry, Place, Plan, RunState, Wanted
from fairlane.switch import Entries
from fairlane.text import bad_config
from finsy import P4CounterData, P4CounterEntry

from . import names
from .check import problems_of
from .config import GfrState, ManagedPort, Numbers, VcConfig
from .entries import classify_entries, edge_entries, fit_to_line, mark_entries, port_entries


@dataclass(frozen=True)
class GfrPlan(Plan):
    """A checked configuration with all its numbers; `state` is what is in force once every switch has it."""

    state: GfrState
    before: GfrState = field(default_factory=GfrState)
    run: RunState | None = field(default=None, repr=False)
    active: Mapping[Place, Collection[str]] = field(default_factory=dict[Place, Collection[str]])
    "Active VCs of each port, as a running loop has them; of a port that is not in it all VCs are active."
    lines: Mapping[Place, float] = field(default_factory=dict[Place, float])
    "Bit/s that the lines of ports carry, where a running loop has measured another rate than the configured capacity."

    def ports(self, switch: str) -> Iterator[tuple[ManagedPort, list[VcConfig]]]:
        """The managed ports of a switch and their VCs; a port with `follow_capacity` has what follows from the rate of its line."""
        crossing = self.state.vcs_of()
        for port in self.state.ports:
            if port.switch == switch:
                vcs, line_bps = crossing[port.place], self.lines.get(port.place) if port.follow_capacity else None
                yield (port if line_bps is None else fit_to_line(port, vcs, line_bps)), vcs

    def port_entries(self, switch: str, numbers: Collection[int] | None = None) -> list[P4TableEntry]:
        """The entries of a switch that change with the active VCs and its lines; `numbers`: those of these ports only."""
        made = list[P4TableEntry]()
        for port, vcs in self.ports(switch):
            if numbers is None or port.port in numbers:
                made += port_entries(port, vcs, self.active.get(port.place), self.state)
        return made

    def entries(self, switch: str) -> list[P4TableEntry]:
        """Every entry of GFR's tables that a switch should have; none for a switch that the configuration does not name."""
        if switch not in self.state.switches:
            return []
        made = [*self.port_entries(switch), *mark_entries()]
        for vc in self.state.vcs:
            vc_id, capacity = self.state.numbers[""][vc.name], min(port.capacity for port in self.state.path_of(vc))
            for at, ingress_port in vc.edges:
                made += edge_entries(ingress_port, vc, vc_id, capacity) if at == switch else ()
            for match in vc.match:
                made += classify_entries(match, vc_id) if match.switch == switch else ()
        return made

    @property
    def concerned(self) -> tuple[str, ...]:
        """The switches that have, or had, entries of it."""
        named = sorted(self.state.switches | self.before.switches)
        there = {switch.name for switch in self.run.switches} if self.run is not None else named
        return tuple(name for name in named if name in there)

    def wanted(self, switch: str, current: Entries) -> Wanted:
        """The entries of every VC, and what lets slots that had another VC count from 0; a switch without VCs keeps its current entries."""
        if switch not in self.concerned:
            return Wanted(list(current.values()))
        old, used = self.before.numbers.get(switch, {}), self.before.used.get(switch, 0)
        new = {key: slot for key, slot in self.state.numbers.get(switch, {}).items() if key not in old}
        slots = [slot for slot in new.values() if slot < used]
        cells = [slot * names.VERDICTS_A_SLOT + cell for slot in slots for cell in range(names.VERDICTS_A_SLOT)]
        resets = [~P4CounterEntry(names.COUNTER_VERDICTS, index=cell, data=P4CounterData()) for cell in cells]
        return Wanted(self.entries(switch), resets)

    @property
    def documents(self) -> dict[str, Any]:
        """The whole configuration with its numbers; nothing where it is in force already."""
        return {} if self.state == self.before else {names.PROGRAM: self.state.model_dump(mode="json")}

    @property
    def documents_back(self) -> dict[str, Any]:
        """What is to be remembered when it is undone: as before, but slots that had a VC meanwhile are no new ones."""
        return {names.PROGRAM: self.before.model_copy(update={"used": self.state.used}).model_dump(mode="json")}


def make_plan(wanted: GfrState, before: GfrState, run: RunState | None, source: str) -> GfrPlan:
    """Check a configuration and number its VCs. Writes nothing.

    Args:
        wanted: The new configuration; its numbers are not used.
        before: What is in force.
        run: The topology, where it is known.
        source: Where the configuration stands, for errors.

    Raises:
        FairlaneError: BAD_FILE, or OUT_OF_RANGE when no number is left for a VC.
    """
    if problems := problems_of(wanted, run):
        raise bad_config(source, problems)
    numbers = number_vcs(wanted, before.numbers)
    used = {
        at: max([before.used.get(at, 0), *(number + 1 for number in given.values())]) for at, given in numbers.items()
    }
    return GfrPlan(wanted.model_copy(update={"numbers": numbers, "used": before.used | used}), before, run)


def number_vcs(state: GfrState, before: Numbers) -> Numbers:
    """Give each VC its numbers; what has one keeps it.

    A number of a deleted VC is not another's in the same change: entries are deleted, and not modified into those of the other VC.

    Args:
        state: The configuration.
        before: The numbers that are given.

    Raises:
        FairlaneError: OUT_OF_RANGE when no number is free.
    """
    scopes: dict[str, tuple[range, list[str]]] = {"": (range(1, names.VC_IDS), [vc.name for vc in state.vcs])}
    for (switch, port), vcs in state.vcs_of().items():
        slots = scopes.setdefault(switch, (range(names.VC_SLOTS), []))[1]
        slots += [f"{switch}:{port} {vc.name}" for vc in vcs]
        scopes[f"{switch}:{port}"] = range(1, names.VC_SLOTS + 2), [vc.name for vc in vcs]
    made: Numbers = {}
    for scope, (numbers, keys) in scopes.items():
        numbering = Numbering(numbers, before.get(scope, {}).items())
        given = {key: numbering.give(key) for key in keys}
        if without := [key for key, number in given.items() if number is None]:
            problem = f"VC {without[0].split()[-1]}: all {len(numbers)} numbers of {scope or 'the network'} are in use"
            raise ErrorCode.OUT_OF_RANGE(problem)
        made[scope] = {key: number for key, number in given.items() if number is not None}
    return made
