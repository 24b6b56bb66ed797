# SPDX-License-Identifier: Apache-2.0
"""Numbers that VCs have in the switches: an id in the network, a slot and a queue on each port; given once and kept.

A slot counts cells that wait (`vc_cells`). One that a deleted VC leaves is given to another VC only after a grace in which
its last frames have left the queue, so no VC inherits another's cells.
"""

from __future__ import annotations

from fairlane import ErrorCode, FairlaneError, Numbering, RunState
from pydantic import BaseModel, ConfigDict, Field

from .config import GfrConfig
from .model import drain_time_s
from .names import VC_IDS, VC_SLOTS
from .paths import Place, vcs_of

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
    def key(self) -> tuple[str, int, str]:
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

    def assignments_by_key(self) -> dict[tuple[str, int, str], SlotAssignment]:
        """Every assignment by (switch, port, VC)."""
        return {assignment.key: assignment for assignment in self.assignments}


def allocate(
    config: GfrConfig, before: Allocation, now_s: float, run: RunState | None = None
) -> tuple[Allocation, tuple[SlotAssignment, ...]]:
    """Allocate slots for a configuration; current allocations stay. Raises OUT_OF_RANGE when a switch has no free slot.

    `now_s` must be of one clock over all calls (the wall clock for what is stored in a file).

    Returns:
        The new allocation, and assignments new to their VC whose slots had one before: what these have counted is not theirs.
    """
    crossing, before_by_key = vcs_of(config, run), before.assignments_by_key()
    # An assignment that rests is its VC's still: one that comes back meanwhile gets its own again.
    resting = {
        assignment.key: assignment
        for assignment in before.freed
        if assignment.free_at_s is not None and assignment.free_at_s > now_s
    }
    current = resting | before_by_key
    slots = {
        switch: Numbering(
            range(VC_SLOTS), [(key, assignment.slot) for key, assignment in current.items() if key[0] == switch]
        )
        for switch, _ in crossing
    }
    queues = {
        place: Numbering(
            range(1, VC_SLOTS + 2), [(key, assignment.queue) for key, assignment in current.items() if key[:2] == place]
        )
        for place in crossing
    }
    used, assignments, reused = dict(before.used), list[SlotAssignment](), list[SlotAssignment]()
    for (switch, port), vcs in crossing.items():
        for vc in vcs:
            key = (switch, port, vc.name)
            slot, queue = slots[switch].give(key), queues[switch, port].give(key)
            if slot is None or queue is None:
                raise FairlaneError(
                    ErrorCode.OUT_OF_RANGE,
                    f"switch {switch} has no slot left for VC {vc.name}: there are {VC_SLOTS}, those of deleted VCs come back after a second or two",
                )
            assignments.append(SlotAssignment(switch=switch, port=port, vc=vc.name, slot=slot, queue=queue))
            if key not in before_by_key and slot < before.used.get(switch, 0):
                reused.append(assignments[-1])
            used[switch] = max(used.get(switch, 0), slot + 1)
            current.pop(key, None)
    freed = [
        assignment if key in resting else assignment.model_copy(update={"free_at_s": now_s + _grace_s(config, key[:2])})
        for key, assignment in current.items()
    ]
    # A deleted VC's id is not another's in the same change: its entries are deleted and not modified into the other's.
    ids = Numbering(range(1, VC_IDS), before.vc_ids.items())
    vc_ids = {vc.name: number for vc in config.vcs if (number := ids.give(vc.name)) is not None}
    return Allocation(vc_ids=vc_ids, assignments=tuple(assignments), freed=tuple(freed), used=used), tuple(reused)


def _grace_s(config: GfrConfig, place: Place) -> float:
    port = config.port(*place)
    return GRACE_S + (drain_time_s(port.qmax_cells, port.capacity) if port is not None else GRACE_S)
