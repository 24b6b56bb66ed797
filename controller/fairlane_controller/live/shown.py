# SPDX-License-Identifier: Apache-2.0
"""A snapshot in words: values of columns by their units, the state of loop and switches, a port's objects and measurements.

`watch`, the page and the tables of commands show these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from fairlane_controller.live.model import PORT_COLUMNS, ObjectRow, PortRow, Snapshot
from fairlane_controller.program.rows import CAPACITY, DROPS, QUEUE, Column, Kind
from fairlane_controller.units import format_per_s, format_rate, format_size, format_time, rounded

STALE_S = 3.0
"""An older measurement is marked."""
BRIEF_MAX = 4
"""Objects of a kind of which a port has few that are shown."""
_BY_UNIT = {"bit/s": format_rate, "s": format_time, "bytes": format_size, "/s": format_per_s}


def text_of(column: Column, value: Any) -> str:
    """`1.98 Mbit/s`, `7.26 ms`, `1,200`, `yes`; `-` for None. A count has no unit: the heading has it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        words = cast("Mapping[str, Any]", value).items()
        return ", ".join(f"{key} {one}" for key, one in words) or "none"
    if not isinstance(value, (int, float)):
        return str(value)
    if column.unit in _BY_UNIT:
        return _BY_UNIT[column.unit](rounded(value, 4))
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def with_unit(column: Column, value: Any) -> str:
    """`5 packets`, `2 Mbit/s`."""
    unit = f" {column.unit}" if column.unit in ("packets", "cells") and value is not None else ""
    return text_of(column, value) + unit


def heading_of(column: Column) -> str:
    """The heading of a table's column: with the unit where the values have none."""
    return f"{column.title} ({column.unit})" if column.unit == "cells" else column.title


def percent(value: float | None) -> str:
    """`99 %`; `-` for None."""
    return "-" if value is None else f"{100 * value:.0f} %"


# ---- the whole topology ----------------------------------------------------------------------------------------------

GOOD, WARN, BAD = "good", "warn", "bad"


def loop_in_words(snapshot: Snapshot) -> tuple[str, str]:
    """GOOD, WARN or BAD, and what the control loop does."""
    if snapshot.loop_error is not None:
        return BAD, f"loop: {snapshot.loop_error.get('message')}"
    if snapshot.loop is None:
        return WARN, "no control loop"
    lost = [row.switch for row in snapshot.loop if not row.connected]
    if any(row.details.get("dry_run") for row in snapshot.loop):
        return WARN, "loop in dry run"
    return (WARN, f"loop waits for {', '.join(lost)}") if lost else (GOOD, "loop runs")


def troubles(snapshot: Snapshot) -> list[tuple[str, str]]:
    """BAD or WARN, and a sentence: processes that have died, switches that do not answer or have no program."""
    found = [(BAD, dead.message) for dead in snapshot.dead]
    for row in snapshot.switches:
        message = row.error["message"] if row.error else f"{row.switch} has no program yet: run `fairlane config init`"
        if not row.reachable:
            found.append((BAD, f"{row.switch} is gone: {message}"))
        elif row.error is not None or row.program is None:
            found.append((WARN, message))
    return found


# ---- one port --------------------------------------------------------------------------------------------------------


PORT = {column.name: column for column in PORT_COLUMNS}
Fact = tuple[str, str, str, bool]
"""Title, value, note, and whether the value is old."""


def facts_of(snapshot: Snapshot, row: PortRow) -> list[Fact]:
    """What is known of a port: what it sends, what waits, what it drops; settings of the program; what the loop measures."""
    program, (waiting, room, unit) = snapshot.program_of(row.switch), snapshot.queue_of(row)
    names = ("tx_bps", "rate_bps", "drops_per_s", "dropped_packets")
    count = PORT["waiting_packets"]
    sent, line, drops, dropped = (text_of(PORT[name], getattr(row, name)) for name in names)
    brief = [
        (kind, one)
        for kind in snapshot.kinds_at(row)
        if kind.brief
        for one in snapshot.objects_of(row, kind)[:BRIEF_MAX]
    ]
    values = [(kind.columns, one.values, f"{kind.short} {one.key}" if len(brief) > 1 else "") for kind, one in brief]
    if not values:
        values = [(tuple(one for one in program.columns if one.plot not in (QUEUE, CAPACITY)), row.values, "")]
    facts: list[Fact] = [
        ("sent", sent, f"{percent(row.utilisation)} of {line}", False),
        ("waiting", f"{text_of(count, waiting)} {unit}", f"of {text_of(count, room)}", False),
        ("drops", drops, f"{dropped} in all", False),
    ]
    for columns, by_name, whose in values:
        for column in columns:
            if not column.wide and by_name.get(column.name) is not None:
                facts.append((column.title, with_unit(column, by_name[column.name]), whose, False))
    for column in program.measured:
        if got := row.estimate(column.name):
            note = f"{format_time(round(got['age_s'], 1))} ago"
            facts.append((column.title, with_unit(column, got["value"]), note, got["age_s"] > STALE_S))
    return facts


@dataclass(frozen=True)
class ObjectLine:
    """An object in a table of those of its kind."""

    name: str
    cells: tuple[str, ...]
    bad: tuple[int, ...]
    "Which cells say that packets are lost."


def object_table(
    snapshot: Snapshot, kind: Kind, rows: Iterable[ObjectRow], *, narrow: bool = False
) -> tuple[list[str], list[ObjectLine]]:
    """Objects of a kind as a table.

    Args:
        snapshot: What they are of.
        kind: Their kind.
        rows: The objects.
        narrow: Show only what charts show.

    Returns:
        The headings after that of the name, and the lines.
    """
    columns = [one for one in kind.columns if not one.wide]
    if narrow:
        columns = [one for one in columns if one.plot] or columns
    lines: list[ObjectLine] = []
    for row in rows:
        bad = tuple(at for at, one in enumerate(columns) if one.plot == DROPS and row[one.name])
        lines.append(ObjectLine(snapshot.named(row.key), tuple(text_of(one, row[one.name]) for one in columns), bad))
    return [heading_of(one) for one in columns], lines
