# SPDX-License-Identifier: Apache-2.0
"""What the views of all programs share: what they know of their switch, what they return, and the drop counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from fairlane_controller.live.batch import BatchReader, Reading
from fairlane_controller.live.model import DropRow, FlowRow, PortRow, VcRow
from fairlane_controller.live.rates import RateBook
from fairlane_controller.program.rows import Reason
from fairlane_controller.state.loop_state import LoopState
from fairlane_controller.state.run_state import PortState, SwitchState
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.shared import COUNTER_DROPS, drops_index


@dataclass(frozen=True)
class Place:
    """One switch as the run state knows it."""

    name: str
    state: SwitchState | None = None
    folder: Path | None = None
    loop_state: LoopState | None = None
    "Modes and k; None without a run state."

    @property
    def ports(self) -> Mapping[int, PortState]:
        """Its ports by number; none without a run state."""
        return {port.port: port for port in self.state.ports} if self.state else {}

    def row(self, port: int) -> PortRow:
        """A port's row as far as the run state goes."""
        known = self.ports.get(port)
        return PortRow(
            self.name,
            port,
            interface=known.interface or None if known else None,
            rate_bps=known.rate_bps or None if known else None,
            capacity_packets=known.queue_packets or None if known else None,
        )


@dataclass(frozen=True)
class Sample:
    """One reading of one switch."""

    ports: tuple[PortRow, ...] = ()
    flows: tuple[FlowRow, ...] = ()
    vcs: tuple[VcRow, ...] = ()
    drops: tuple[DropRow, ...] = field(default=())


class View(Protocol):
    """What is asked of one program; made anew with each connection."""

    async def read(self, client: SwitchClient, place: Place, rates: RateBook, batch: BatchReader) -> Sample:
        """One reading; raises FairlaneError."""
        ...


def drop_cells(ports: Iterable[int], reasons: Iterable[int]) -> list[tuple[str, int]]:
    """Cells of the counter `drops`."""
    wanted = [int(reason) for reason in reasons]
    return [(COUNTER_DROPS, drops_index(port, reason)) for port in ports for reason in wanted]


def drop_rows(switch: str, reading: Reading, rates: RateBook, reasons: Mapping[int, Reason]) -> tuple[DropRow, ...]:
    """A row a (port, reason) that has dropped anything."""
    rows: list[DropRow] = []
    for (name, index), cell in sorted(reading.counters.items()):
        if name != COUNTER_DROPS:
            continue
        per_s = rates.per_s((name, index), cell.packet_count)
        if cell.packet_count:
            port, reason = index >> 4, index & 15
            known = reasons.get(reason)
            said = known.name if known is not None else f"reason_{reason}"
            rows.append(DropRow(switch, port, said, cell.packet_count, per_s, "program"))
    return tuple(rows)


def queue_drops(
    switch: str, port: int, drops: Iterable[DropRow], reasons: Mapping[int, Reason]
) -> tuple[int, float | None]:
    """Packets that admission refused at a port, and how many a second."""
    names = {reason.name for reason in reasons.values() if reason.in_queue}
    mine = [row for row in drops if row.switch == switch and row.port == port and row.reason in names]
    known = [row.per_s for row in mine if row.per_s is not None]
    return sum(row.packets for row in mine), sum(known) if known or not mine else None
