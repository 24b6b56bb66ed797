# SPDX-License-Identifier: Apache-2.0
"""Call admission (GFR paper): on no port of a VC's path may the minimum rates sum up to more than C_GFR."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairlane import RunState
from fairlane.text import format_rate

from .config import GfrConfig
from .paths import vcs_of


@dataclass(frozen=True)
class PortLoad:
    """What one managed port has promised."""

    switch: str
    port: int
    index: int
    "Of the port in the configuration."
    capacity_bps: float
    mcr_bps: float
    "Sum over its VCs."
    vcs: tuple[str, ...]

    @property
    def free_bps(self) -> float:
        """C_GFR - sum of MCR: what a further VC may ask for; below 0 it is promised twice."""
        return self.capacity_bps - self.mcr_bps

    @property
    def admitted(self) -> bool:
        """Whether the sum of MCR is within C_GFR."""
        return self.free_bps >= -1e-6 * self.capacity_bps


def loads(config: GfrConfig, run: RunState | None = None) -> list[PortLoad]:
    """The load of each managed port, in the order of the configuration."""
    crossing = vcs_of(config, run)
    made: list[PortLoad] = []
    for index, port in enumerate(config.ports):
        mine = crossing[port.place]
        total = math.fsum(vc.mcr for vc in mine)
        made.append(PortLoad(port.switch, port.port, index, port.capacity, total, tuple(vc.name for vc in mine)))
    return made


def refusals(config: GfrConfig, run: RunState | None = None) -> list[str]:
    """One sentence for each port whose MCRs do not fit, with what they sum up to and by how much that is too much."""
    return [
        f"ports[{load.index}].capacity: the MCRs of {len(load.vcs)} VCs sum up to {format_rate(load.mcr_bps)} on "
        f"{load.switch}:{load.port}, {format_rate(-load.free_bps)} more than its capacity of {format_rate(load.capacity_bps)}"
        for load in loads(config, run)
        if not load.admitted
    ]
