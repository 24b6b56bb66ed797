# SPDX-License-Identifier: Apache-2.0
"""A snapshot in words: values of columns by their units, the state of loop and switches, a port's objects and measurements.

`watch`, the page and the tables of commands show these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from fairlane_controller.live.model import ObjectRow, PortRow, Snapshot
from fairlane_controller.program.rows import CONTROL, DROPS, GOODPUT, QUEUE, Column, Kind
from fairlane_controller.units import format_per_s, format_rate, format_size, format_time, rounded

STALE_S = 3.0
"""An older measurement is marked."""
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


live_text = text_of


def with_unit(column: Column, value: Any) -> str:
    """`5 packets`, `2 Mbit/s`."""
    unit = f" {column.unit}" if column.unit in ("packets", "cells") and value is not None else ""
    return text_of(column, value) + unit


def heading_of(column: Column) -> str:
    """The heading of a table's column: with the unit where the values have none."""
    return f"{column.title} ({column.unit})" if column.unit == "cells" else column.title


def count(value: float | None) -> str:
    """`12`, `1,234`; `-` for None."""
    return "-" if value is None else f"{value:,.0f}"


def per_second(value: float | None) -> str:
    """`0`, `2`, `5.9`, `153`; `-` for None."""
    return "-" if value is None else f"{rounded(value):,g}"


def rate(value_bps: float | None) -> str:
    """`1.98 Mbit/s`; `-` for None."""
    return format_rate(rounded(value_bps))


def percent(value: float | None) -> str:
    """`99 %`; `-` for None."""
    return "-" if value is None else f"{100 * value:.0f} %"


def age(seconds: float | None) -> str:
    """`0.2 s`, `12 s`; empty for None."""
    return "" if seconds is None else format_time(round(seconds, 1 if seconds < 10 else 0))


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


def known(columns: Iterable[Column], values: Mapping[str, Any]) -> list[Column]:
    """The columns that have a value and are for every width."""
    return [column for column in columns if not column.wide and values.get(column.name) is not None]


def brief_objects(snapshot: Snapshot, row: PortRow) -> list[tuple[Kind, tuple[ObjectRow, ...]]]:
    """The port's objects of those kinds of which it has few."""
    found = [(kind, snapshot.objects_of(row, kind)) for kind in snapshot.kinds_at(row) if kind.brief]
    return [(kind, objects) for kind, objects in found if objects]


def measurements(snapshot: Snapshot, row: PortRow) -> Iterator[tuple[Column, float | None, float | None]]:
    """What the loop measures at the port, and how many seconds old it is; a value that it does not know yet is None."""
    program, measured = snapshot.program_of(row.switch), row.measured
    for column in program.measured if program is not None and measured is not None else ():
        if got := row.estimate(column.name):
            yield column, got["value"], got.get("age_s")
        elif not column.wide and measured is not None and measured.get(column.name, 0) is None:
            yield column, None, None


@dataclass(frozen=True)
class ObjectLine:
    """An object in a table of those of its kind."""

    name: str
    is_active: bool | None
    "Whether it sends; None where its program does not say."
    queue: float | None
    "What waits: a bar."
    marks: tuple[float, ...]
    "What the bar is compared with."
    cells: tuple[str, ...]
    bad: tuple[int, ...]
    "Which cells say that packets are lost."


@dataclass(frozen=True)
class ObjectTable:
    """Objects of a kind at a port: the name, where the kind has a queue its bar, and a cell a heading."""

    headings: tuple[str, ...]
    bar: str
    "The heading of the bars; empty: there are none."
    full: float
    "The value of a whole bar."
    lines: tuple[ObjectLine, ...]


def object_table(snapshot: Snapshot, kind: Kind, rows: Sequence[ObjectRow], *, narrow: bool = False) -> ObjectTable:
    """The objects as a table; `narrow`: only what charts show."""
    queue, goodput = kind.plotted(QUEUE), kind.plotted(GOODPUT)
    marks = [c for c in kind.columns if queue is not None and c.plot == CONTROL and c.unit == queue.unit]
    compared = [*([queue] if queue is not None else []), *marks]
    rest = [c for c in kind.columns if not c.wide and c not in compared and c.value_type is not bool]
    if narrow and any(column.plot for column in rest):
        rest = [column for column in rest if column.plot]
    active = next((c.name for c in kind.columns if c.value_type is bool and not c.wide), "")
    total = sum(row[goodput.name] or 0.0 for row in rows) if goodput is not None else 0.0
    lines: list[ObjectLine] = []
    for row in rows:
        cells = ["/".join(count(row[one.name]) for one in compared)] if compared else []
        bad = tuple(len(cells) + at for at, one in enumerate(rest) if one.plot == DROPS and row[one.name])
        cells += [text_of(one, row[one.name]) for one in rest]
        if goodput is not None:
            cells.append(percent(row[goodput.name] / total if row[goodput.name] is not None and total else None))
        limits = tuple(float(row[one.name]) for one in marks if row[one.name])
        waiting = row[queue.name] if queue is not None else None
        lines.append(ObjectLine(snapshot.named(row.key), row[active], waiting, limits, tuple(cells), bad))
    full = 1.25 * max([value for row in rows for one in compared if (value := row[one.name])] + [4])
    headings = (*([""] if compared else []), *map(heading_of, rest), *(["share"] if goodput is not None else []))
    bar = "queue" + "".join(f" ┃ {mark.title}" for mark in marks) if queue is not None else ""
    return ObjectTable(headings, bar, full, tuple(lines))
