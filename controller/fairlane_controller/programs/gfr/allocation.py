# SPDX-License-Identifier: Apache-2.0
"""Numbers that VCs have in the switches: an id in the network, a slot and a queue on each port; each is given once.

A slot counts cells that wait (`vc_cells`). One that a deleted VC leaves is given to another VC only after a grace in which
its last frames have left the queue, so no VC inherits another's cells.
"""

from __future__ import annotations

from typing import Any

from fairlane import ErrorCode, FairlaneError, Numbering, Place, RunState
from pydantic import BaseModel, ConfigDict, Field

from .config import GfrConfig
from .model import CELL_LINE_BITS
from .names import VC_IDS, VC_SLOTS
from .paths import vcs_of

Key = tuple[str, int, str]
"""(switch, port, VC)."""
GRACE_S = 1.0
"""Added to the time that a full buffer takes to drain: the entry's own way to the switch."""


class SlotAssignment(BaseModel):
    """What a VC has on one egress port."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    switch: str
    port: int
    vc: str
    slot: int = Field(ge=0, lt=VC_SLOTS)
    "Of the switch."
    queue: int = Field(ge=1)
    "Of the port; 0 is for frames of no VC."
    free_at_s: float | None = None
    "Of a deleted VC: when slot and queue may be given again, in seconds of the caller's clock."

    @property
    def key(self) -> Key:
        """(switch, port, VC)."""
        return self.switch, self.port, self.vc


class Allocation(BaseModel):
    """All numbers that are given."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    vc_ids: dict[str, int] = Field(default_factory=dict)
    assignments: tuple[SlotAssignment, ...] = ()
    freed: tuple[SlotAssignment, ...] = ()
    "Of deleted VCs, until `free_at_s`."
    used: dict[str, int] = Field(default_factory=dict)
    "Switch: slots from 0 to below this had a VC at some time."

    def assignments_by_key(self) -> dict[Key, SlotAssignment]:
        """Every assignment by (switch, port, VC)."""
        return {assignment.key: assignment for assignment in self.assignments}


def allocate(
    config: GfrConfig, before: Allocation, now_s: float, run: RunState | None = None
) -> tuple[Allocation, tuple[SlotAssignment, ...]]:
    """Allocate slots for a configuration; current allocations stay.

    Args:
        config: The new configuration.
        before: What is given now.
        now_s: Seconds of one clock over all calls (the wall clock for what is stored in a file).
        run: The topology, for paths of VCs that its routes say.

    Returns:
        The new allocation, and assignments new to their VC whose slots had one before: what these have counted is not theirs.

    Raises:
        FairlaneError: OUT_OF_RANGE when no number is free.
    """
    crossing, before_by_key = vcs_of(config, run), before.assignments_by_key()
    # An assignment that rests is its VC's still: one that comes back meanwhile gets its own again.
    resting = {one.key: one for one in before.freed if one.free_at_s is not None and one.free_at_s > now_s}
    current = resting | before_by_key
    slots, queues = dict[str, Numbering[Key]](), dict[Place, Numbering[Key]]()
    for place in crossing:
        on_switch = [one for one in current.values() if one.switch == place[0]]
        slots[place[0]] = Numbering(range(VC_SLOTS), [(one.key, one.slot) for one in on_switch])
        mine = [(one.key, one.queue) for one in on_switch if one.port == place[1]]
        queues[place] = Numbering(range(1, VC_SLOTS + 2), mine)
    used, assignments, reused = dict(before.used), list[SlotAssignment](), list[SlotAssignment]()
    for (switch, port), vcs in crossing.items():
        for vc in vcs:
            key = (switch, port, vc.name)
            slot = _give(slots[switch], key, vc.name, f"{VC_SLOTS} slots of switch {switch}")
            queue = _give(queues[switch, port], key, vc.name, f"{VC_SLOTS + 1} queues of {switch}:{port}")
            assignments.append(SlotAssignment(switch=switch, port=port, vc=vc.name, slot=slot, queue=queue))
            if key not in before_by_key and slot < before.used.get(switch, 0):
                reused.append(assignments[-1])
            used[switch] = max(used.get(switch, 0), slot + 1)
            current.pop(key, None)
    freed = [
        one if key in resting else one.model_copy(update={"free_at_s": now_s + _grace_s(config, key)})
        for key, one in current.items()
    ]
    # A deleted VC's id is not another's in the same change: its entries are deleted and not modified into the other's.
    ids = Numbering(range(1, VC_IDS), before.vc_ids.items())
    vc_ids = {vc.name: _give(ids, vc.name, vc.name, f"{VC_IDS - 1} ids") for vc in config.vcs}
    return Allocation(vc_ids=vc_ids, assignments=tuple(assignments), freed=tuple(freed), used=used), tuple(reused)


def _give(numbers: Numbering[Any], key: str | Key, vc: str, all_numbers: str) -> int:
    number = numbers.give(key)
    if number is None:
        problem = f"VC {vc}: all {all_numbers} are in use; those of deleted VCs are free again after a second or two"
        raise FairlaneError(ErrorCode.OUT_OF_RANGE, problem)
    return number


def _grace_s(config: GfrConfig, key: Key) -> float:
    """The longest that a frame may wait in the port's buffer (QMAX·424/C_GFR), and a second."""
    port = config.port(*key[:2])
    return GRACE_S + (port.qmax_cells * CELL_LINE_BITS / port.capacity if port is not None else GRACE_S)
