# SPDX-License-Identifier: Apache-2.0
"""What the page's history keeps of a snapshot: few numbers a port and object, so that ten minutes of it are a small file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlane_controller.live.model import PortRow, Snapshot
from fairlane_controller.program.rows import CONTROL, DROPS, GOODPUT, QUEUE

OBJECTS_A_PORT = 12
"""Lines of objects of a kind (flows, VCs) that a port's charts show: those that send most."""
OBJECTS_IN_TABLES = 200
"""Rows of a kind that the newest snapshot has."""
_CHARTS = (QUEUE, GOODPUT, CONTROL, DROPS)


def point_of(snapshot: Snapshot) -> dict[str, Any]:
    """`{"t", "ports": {"s1:3": {…}}}` of the managed ports; None is a gap."""
    return {
        "t": round(snapshot.time_s, 3),
        "ports": {f"{row.switch}:{row.port}": _port(snapshot, row) for row in snapshot.managed_ports},
    }


def _port(snapshot: Snapshot, row: PortRow) -> dict[str, Any]:
    program = snapshot.program_of(row.switch)
    drops: dict[str, float] = {}
    for drop in snapshot.drops:
        if drop.switch == row.switch and drop.port == row.port and drop.per_s is not None:
            drops[drop.reason] = round(drops.get(drop.reason, 0.0) + drop.per_s, 2)
    return {
        "waiting": snapshot.queue_of(row)[0],
        "tx": _round_value(row.tx_bps),
        "rate": _round_value(row.rate_bps),
        "bw": _round_value(_value(row.measured, "bw_bps")),
        "marks": snapshot.marks_of(row),
        "drops": drops,
        # kind: {object: values of its columns that are drawn, in their order}
        "objects": {
            kind.name: {
                one.key: [_short(one[c.name]) for c in kind.columns if c.plot in _CHARTS]
                for one in snapshot.objects_of(row, kind)[:OBJECTS_A_PORT]
            }
            for kind in (program.kinds if program is not None else ())
        },
    }


def picture_of(snapshot: Snapshot) -> dict[str, Any]:
    """The newest snapshot whole, but for objects of a kind beyond the first ones."""
    document = snapshot.to_json()
    document["in_all"] = {}
    for kind in snapshot.kinds:
        rows, goodput = document[kind.many], kind.plotted(GOODPUT)
        document["in_all"][kind.name] = len(rows)
        if len(rows) > OBJECTS_IN_TABLES:
            most = sorted(rows, key=lambda row: -((row[goodput.name] or 0.0) if goodput is not None else 0.0))
            document[kind.many] = most[:OBJECTS_IN_TABLES]
    return document


def _value(measured: Mapping[str, Any] | None, key: str) -> float | None:
    got: Any = measured.get(key) if measured else None
    return got.get("value") if isinstance(got, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


def _round_value(value: float | None) -> int | None:
    return None if value is None else round(value)


def _short(value: float | None) -> float | None:
    return None if value is None else round(value) if value >= 1000 else round(value, 2)
