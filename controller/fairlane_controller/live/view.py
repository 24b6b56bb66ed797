# SPDX-License-Identifier: Apache-2.0
"""One reading of one switch, whatever its program: rows of the program, packets sent and dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane_controller.live.model import DropRow, ObjectRow, PortRow
from fairlane_controller.program.contract import Program
from fairlane_controller.program.reading import BatchReading
from fairlane_controller.program.reasons import reasons_of
from fairlane_controller.program.rows import DROP_KIND, Row
from fairlane_controller.program.setup import complete_rows
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.shared import COUNTER_DROPS, COUNTER_PASSED, drops_index

_PORT_TOTALS = (
    "waiting_packets", "waiting_bytes", "capacity_packets", "sent_packets", "sent_bytes", "dropped_packets"
)  # fmt: skip
"""Values that a program may give in place of the core's."""


@dataclass(frozen=True)
class Place:
    """One switch as the run state knows it."""

    name: str
    state: SwitchState | None = None
    folder: Path | None = None
    loop: Mapping[str, Any] | None = None
    "What the control loop's status says of it."
    program: str = ""
    "What its topology names."


@dataclass(frozen=True)
class Sample:
    """One reading of one switch."""

    ports: tuple[PortRow, ...] = ()
    objects: tuple[ObjectRow, ...] = ()
    drops: tuple[DropRow, ...] = ()


async def read_sample(program: Program | None, reading: BatchReading, place: Place, counters: set[str]) -> Sample:
    """One reading of a switch that has these counters; None: an unknown program. Raises FairlaneError."""
    await reading.begin()
    rows = await complete_rows(program, reading, place.state) if program is not None else []
    own = {row.port: row.values for row in rows if not row.kind and row.port is not None}
    states = {port.port: port for port in place.state.ports} if place.state else {}
    ports = sorted({*states, *own})
    drops, sent = await asyncio.gather(
        _drops(program, reading, place.name, ports if COUNTER_DROPS in counters else []),
        reading.counters(COUNTER_PASSED, ports if COUNTER_PASSED in counters else []),
    )
    drops += [_object_drop(place.name, row, reading) for row in rows if row.kind == DROP_KIND and row.values["packets"]]
    knows_drops = any(reason.in_queue for reason in reasons_of(program).values())
    found: list[PortRow] = []
    for port in ports:
        known, values, cell = states.get(port), dict(own.get(port, {})), sent.get(port)
        refused = sum(row.packets for row in drops if row.port == port and row.in_queue) if knows_drops else None
        core: dict[str, Any] = {
            "capacity_packets": known.queue_packets or None if known else None,
            "sent_packets": cell.packet_count if cell else None,
            "sent_bytes": cell.byte_count if cell else None,
            "dropped_packets": refused,
        }
        core |= {name: values.pop(name) for name in _PORT_TOTALS if name in values}
        sent_per_s = reading.per_s(("sent_bytes", port), core["sent_bytes"])
        tx_bps, rate_bps = None if sent_per_s is None else 8 * sent_per_s, known.rate_bps or None if known else None
        row = PortRow(
            place.name,
            port,
            interface=known.interface or None if known else None,
            managed=port in own,
            rate_bps=rate_bps,
            tx_bps=tx_bps,
            utilisation=tx_bps / rate_bps if tx_bps is not None and rate_bps else None,
            drops_per_s=reading.per_s(("dropped_packets", port), core["dropped_packets"]),
            values=values,
            **core,
        )
        found.append(row)
    objects = [
        ObjectRow(place.name, row.port, row.kind, row.key, row.values)
        for row in rows
        if row.kind and row.kind != DROP_KIND
    ]
    return Sample(tuple(found), tuple(objects), tuple(drops))


async def _drops(program: Program | None, reading: BatchReading, switch: str, ports: list[int]) -> list[DropRow]:
    """A row a (port, reason) that has dropped anything, by the counter `drops`."""
    reasons = {number: one for number, one in reasons_of(program).items() if not one.in_rows}
    places = {drops_index(port, number): (port, one) for port in ports for number, one in reasons.items()}
    rows: list[DropRow] = []
    for index, cell in sorted((await reading.counters(COUNTER_DROPS, places)).items()):
        per_s = reading.per_s((COUNTER_DROPS, index), cell.packet_count)
        if cell.packet_count:
            port, one = places[index]
            rows.append(DropRow(switch, port, one.name, cell.packet_count, per_s, "program", in_queue=one.in_queue))
    return rows


def _object_drop(switch: str, row: Row, reading: BatchReading) -> DropRow:
    values = row.values
    per_s = reading.per_s((DROP_KIND, row.port, row.key), values["packets"])
    whose = values["object"]
    return DropRow(switch, row.port, values["reason"], values["packets"], per_s, "program", whose, in_queue=True)
