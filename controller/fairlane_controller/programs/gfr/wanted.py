# SPDX-License-Identifier: Apache-2.0
"""A configuration of a topology as the core compares and writes it, beside a loop that follows VCs and lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from finsy import P4TableEntry

from fairlane_controller.program import contract
from fairlane_controller.program.contract import Wanted
from fairlane_controller.programs.gfr.config import GfrConfig
from fairlane_controller.programs.gfr.deploy import Plan
from fairlane_controller.programs.gfr.entries import Active, port_entries
from fairlane_controller.programs.gfr.line import scale_to_capacity
from fairlane_controller.programs.gfr.paths import Place, vcs_of
from fairlane_controller.switch.entities import Entries


@dataclass(frozen=True)
class FilePlan(contract.Plan):
    """A plan beside what is in force."""

    plan: Plan
    in_force: GfrConfig
    active: Active | None = None
    "Active VCs of each port, as a running loop has them; without one all are."
    lines: dict[Place, float] = field(default_factory=dict[Place, float])
    "What the line of a port carries, as a running loop has it."

    def with_loop(self, status: Mapping[str, Any]) -> FilePlan:
        """With what a running loop has decided meanwhile; `status` by switch."""
        ports = {(switch, port["port"]): port for switch, known in status.items() for port in known["ports"]}
        active = {at: port["active"] for at, port in ports.items()}
        return replace(self, active=active, lines={at: port["capacity_bps"] for at, port in ports.items()})

    def wanted(self, switch: str, current: Entries) -> Wanted:
        """The entries of every VC; a switch without VCs keeps its current entries."""
        if switch not in self.plan.switches:
            return Wanted(list(current.values()))
        entries = [
            *_on_measured_lines(self.plan, switch, self.active, self.lines),
            *self.plan.entries(switch, self.active),
        ]
        return Wanted(entries, self.plan.resets(switch))

    @property
    def documents(self) -> Mapping[str, Any]:
        """The whole configuration with its numbers; nothing where it is in force already."""
        return {} if self.plan.state.config == self.in_force else self.plan.documents

    @property
    def documents_back(self) -> Mapping[str, Any]:
        """As `Plan` of `deploy.py` has it."""
        return self.plan.documents_back


def _on_measured_lines(plan: Plan, switch: str, active: Active | None, lines: dict[Place, float]) -> list[P4TableEntry]:
    """Entries of ports whose configuration lets the loop follow the line (`follow_capacity`), as the loop has them."""
    made: list[P4TableEntry] = []
    crossing = vcs_of(plan.state.config, plan.run)
    for port in plan.state.config.ports:
        bps = lines.get(port.place, port.capacity)
        if port.switch != switch or not port.follow_capacity or bps == port.capacity:
            continue
        vcs = crossing[port.place]
        on_line = scale_to_capacity(port, bps, sum(vc.mcr for vc in vcs))
        made += port_entries(plan.state.allocation, on_line, vcs, active.get(port.place) if active else None)
    return made
