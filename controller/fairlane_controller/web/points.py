# SPDX-License-Identifier: Apache-2.0
"""What the page gets of a snapshot: few numbers a port and object for its charts, so that ten minutes are a small file, and the newest one in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlane_controller.live.model import PortRow, Snapshot, SwitchRow
from fairlane_controller.live.shown import (
    BAD,
    STALE_S,
    ObjectTable,
    age,
    brief_objects,
    count,
    known,
    live_text,
    loop_in_words,
    measurements,
    per_second,
    percent,
    rate,
    troubles,
    with_unit,
)  # fmt: skip
from fairlane_controller.program.rows import CAPACITY, CONTROL, DROPS, GOODPUT, QUEUE, plotted

OBJECTS_A_PORT = 12
"""Lines of objects of a kind (flows, VCs) that a port's charts show: those that send most."""
OBJECTS_IN_TABLES = 200
"""Rows of a port's table."""
OBJECTS_IN_TILES = 4
"""Objects of a kind of which a port has few."""
_CHARTS = (QUEUE, GOODPUT, CONTROL, DROPS)


def point_of(snapshot: Snapshot) -> dict[str, Any]:
    """`{"t", "ports": {"s1:3": {…}}}` of the managed ports; None is a gap."""
    return {
        "t": round(snapshot.time_s, 3),
        "ports": {f"{row.switch}:{row.port}": _port(snapshot, row) for row in snapshot.managed_ports},
    }


def _port(snapshot: Snapshot, row: PortRow) -> dict[str, Any]:
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
                snapshot.named(one.key): [_short(one[c.name]) for c in kind.columns if c.plot in _CHARTS]
                for one in snapshot.objects_of(row, kind)[:OBJECTS_A_PORT]
            }
            for kind in snapshot.kinds_at(row)
        },
    }


def picture_of(snapshot: Snapshot) -> dict[str, Any]:
    """What the page shows of the newest snapshot, in words: it knows no program and no unit."""
    loop, problems = loop_in_words(snapshot), troubles(snapshot)
    return {
        "loop": loop,
        "problems": [*problems, *([loop] if loop[0] == BAD else [])],
        "foot": " · ".join(map(_switch, snapshot.switches)),
        "ports": {
            f"{row.switch}:{row.port}": {
                "tiles": _tiles(snapshot, row),
                "objects": _objects(snapshot, row),
                "unit": snapshot.queue_of(row)[2],
                # The columns that are drawn, in the order of the values of a point.
                "kinds": {
                    kind.name: {
                        "label": f"{kind.label or kind.name} " if kind.brief else "",
                        "brief": kind.brief,
                        "columns": [c.to_json() for c in kind.columns if c.plot in _CHARTS],
                    }
                    for kind in snapshot.kinds_at(row)
                },
            }
            for row in snapshot.managed_ports
        },
    }


def _switch(row: SwitchRow) -> str:
    took = "" if row.read_ms is None else f", read in {row.read_ms:.1f} ms"
    return f"{row.switch} {row.grpc} {row.program or 'no program'}{took}"


def _tiles(snapshot: Snapshot, row: PortRow) -> list[tuple[str, str, str, bool]]:
    """Title, value, note, and whether the value is old."""
    program, line_bps = snapshot.program_of(row.switch), row.rate_bps or _value(row.measured, "bw_bps")
    waiting, room, unit = snapshot.queue_of(row)
    part = "" if row.utilisation is None else f"{percent(min(1.0, row.utilisation))} of {rate(line_bps)}"
    tiles = [("sent", rate(row.tx_bps), part, False)]
    tiles.append(("waiting", count(waiting) + (f" {unit}" if waiting is not None else ""), f"of {count(room)}", False))
    brief = [(kind, one) for kind, found in brief_objects(snapshot, row) for one in found[:OBJECTS_IN_TILES]]
    for kind, one in brief:
        columns = known(kind.columns, one.values)
        main = plotted(columns, CONTROL) or next(iter(columns), None)
        if main is not None:
            whose = f", {kind.label or kind.name} {one.key}" if len(brief) > 1 else ""
            rest = [f"{c.title} {live_text(c, one[c.name])}" for c in columns if c is not main]
            tiles.append((main.title + whose, with_unit(main, one[main.name]), ", ".join(rest), False))
    for column in program.columns if program is not None and not brief else ():
        if not column.wide and column.plot not in (QUEUE, CAPACITY):
            tiles.append((column.title, with_unit(column, row.values.get(column.name)), "", False))
    tiles.append(("drops", f"{per_second(row.drops_per_s)} /s", f"{count(row.dropped_packets)} in all", False))
    for column, value, old in measurements(snapshot, row):
        note = "not measured" if value is None else "" if old is None else f"{age(old)} ago"
        tiles.append((column.title, live_text(column, value), note, (old or 0.0) > STALE_S))
    return tiles


def _objects(snapshot: Snapshot, row: PortRow) -> dict[str, Any] | None:
    """The table of the first kind that has objects at the port; None: the program has no kind of which there are many."""
    kinds = [kind for kind in snapshot.kinds_at(row) if not kind.brief]
    kind = next((one for one in kinds if snapshot.objects_of(row, one)), kinds[0] if kinds else None)
    if kind is None:
        return None
    found = snapshot.objects_of(row, kind)
    table = ObjectTable(kind, found[:OBJECTS_IN_TABLES])
    more = f", those that send most of {len(found)}" if len(found) > OBJECTS_IN_TABLES else ""
    columns, queue, full = [column for column in kind.columns if not column.wide], table.queue, table.full
    mark, shares = next(iter(table.marks), None), table.shares()
    bar = [f"queue, and its {mark.title}" if mark is not None else "queue"] if queue is not None else []
    rows: list[dict[str, Any]] = []
    for number, one in enumerate(table.rows):
        limit = one[mark.name] if mark is not None else None
        rows.append(
            {
                "cells": [snapshot.named(one.key), *([""] if bar else []), *(live_text(c, one[c.name]) for c in columns), *shares[number : number + 1]],
                "bar": [(one[queue.name] or 0) / full, None if limit is None else limit / full] if queue is not None else None,
                "idle": table.is_active(one) is False,
                "bad": [len(bar) + 1 + at for at, c in enumerate(columns) if c.plot == DROPS and one[c.name]],
            }
        )  # fmt: skip
    return {
        "title": f"{kind.many} ({len(table.rows)}{more})" if found else f"{kind.many}: none has an entry here",
        "head": [kind.name, *bar, *(column.title for column in columns), *(["share"] if shares else [])],
        "rows": rows,
    }


def _value(measured: Mapping[str, Any] | None, key: str) -> float | None:
    got: Any = measured.get(key) if measured else None
    return got.get("value") if isinstance(got, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


def _round_value(value: float | None) -> int | None:
    return None if value is None else round(value)


def _short(value: float | None) -> float | None:
    return None if value is None else round(value) if value >= 1000 else round(value, 2)
