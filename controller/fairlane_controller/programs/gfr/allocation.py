# SPDX-License-Identifier: Apache-2.0
"""Numbers that VCs have in the switches: an id in the network, a slot and a queue on each port; given once and kept.

A slot counts cells that wait (`vc_cells`). One that a deleted VC leaves is given to another VC only after a grace in which
its last frames have left the queue, so no VC inherits another's cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.gfr.config import GfrConfig
from fairlane_controller.programs.gfr.model import drain_time_s
from fairlane_controller.programs.gfr.names import VC_IDS, VC_SLOTS
from fairlane_controller.programs.gfr.paths import Place, vcs_of
from fairlane_controller.state.run_state import RunState

GRACE_S = 1.0
"""Added to the time that a full buffer takes to drain: the entry's own way to the switch."""


class Seat(BaseModel):
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
    seats: tuple[Seat, ...] = ()
    freed: tuple[Seat, ...] = ()
    "Of deleted VCs, until `free_at_s`."
    used: dict[str, int] = Field(default_factory=dict)
    "Switch: slots from 0 to below this had a VC at some time."

    def seat(self, switch: str, port: int, vc: str) -> Seat | None:
        """The VC's seat on a port, or None."""
        return next((seat for seat in self.seats if seat.key == (switch, port, vc)), None)

    def seats_by_key(self) -> dict[tuple[str, int, str], Seat]:
        """Every seat by (switch, port, VC)."""
        return {seat.key: seat for seat in self.seats}


@dataclass(frozen=True)
class Allocated:
    """A new allocation and what is new in it."""

    allocation: Allocation
    reused: tuple[Seat, ...]
    "Seats new to their VC whose slots had one before: what these have counted is not theirs."


def allocate(config: GfrConfig, before: Allocation, now_s: float, run: RunState | None = None) -> Allocated:
    """Allocate slots for a configuration; current allocations stay. Raises OUT_OF_RANGE when a switch has no free slot.

    `now_s` must be of one clock over all calls (the wall clock for what is stored in a file).
    """
    names = [vc.name for vc in config.vcs]
    ids = {name: before.vc_ids[name] for name in names if name in before.vc_ids}
    # A deleted VC's id is not another's in the same change: its entries are deleted and not modified into the other's.
    spare_ids = _unused(set(before.vc_ids.values()), 1, VC_IDS)
    for name in names:
        if name not in ids:
            ids[name] = next(spare_ids)
    held = before.seats_by_key()
    freed = [seat for seat in before.freed if seat.free_at_s is not None and seat.free_at_s > now_s]
    wanted = [(*place, vc.name) for place, vcs in vcs_of(config, run).items() for vc in vcs]
    seats = [held[key] for key in wanted if key in held]
    kept = {seat.key for seat in seats}
    for seat in before.seats:
        if seat.key not in kept:
            freed.append(seat.model_copy(update={"free_at_s": now_s + _grace_s(config, (seat.switch, seat.port))}))
    fresh = _seat_new([key for key in wanted if key not in kept], seats, freed)
    used = dict(before.used)
    for seat in fresh:
        used[seat.switch] = max(used.get(seat.switch, 0), seat.slot + 1)
    reused = tuple(seat for seat in fresh if seat.slot < before.used.get(seat.switch, 0))
    return Allocated(Allocation(vc_ids=ids, seats=tuple(seats + fresh), freed=tuple(freed), used=used), reused)


def _seat_new(wanted: list[tuple[str, int, str]], seats: list[Seat], freed: list[Seat]) -> list[Seat]:
    """Seats for those that have none; a VC that comes back within the grace gets its own again. Takes from `freed`."""
    slots = {
        switch: _unused({s.slot for s in (*seats, *freed) if s.switch == switch}, 0, VC_SLOTS)
        for switch, _, _ in wanted
    }
    queues = {
        (switch, port): _unused({s.queue for s in (*seats, *freed) if (s.switch, s.port) == (switch, port)}, 1, VC_SLOTS + 2)
        for switch, port, _ in wanted
    }  # fmt: skip
    own = {seat.key: seat for seat in freed}
    made: list[Seat] = []
    for key in wanted:
        switch, port, vc = key
        again = own.get(key)
        if again is not None:
            freed.remove(again)
            made.append(again.model_copy(update={"free_at_s": None}))
            continue
        slot = next(slots[switch], None)
        queue = next(queues[switch, port], None)
        if slot is None or queue is None:
            raise FairlaneError(
                ErrorCode.OUT_OF_RANGE,
                f"switch {switch} has no slot left for VC {vc}: there are {VC_SLOTS}, those of deleted VCs come back after a second or two",
            )
        made.append(Seat(switch=switch, port=port, vc=vc, slot=slot, queue=queue))
    return made


def _unused(taken: set[int], first: int, end: int) -> Iterator[int]:
    """Numbers from `first` on that are not taken."""
    return (number for number in range(first, end) if number not in taken)


def _grace_s(config: GfrConfig, place: Place) -> float:
    port = config.port(*place)
    return GRACE_S + (drain_time_s(port.qmax_cells, port.capacity) if port is not None else GRACE_S)
