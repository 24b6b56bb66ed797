# SPDX-License-Identifier: Apache-2.0
"""One port in detail: its values and measurements in a few lines, its objects in a table, by what its program says that there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fairlane_controller.live.model import PortRow, Snapshot
from fairlane_controller.live.shown import (
    STALE_S,
    ObjectTable,
    age,
    brief_objects,
    count,
    heading_of,
    known,
    live_text,
    measurements,
    with_unit,
)
from fairlane_controller.live.terminal.shapes import bar
from fairlane_controller.program.rows import DROPS, Column

BRIEF_LINES = 2
"""Lines of a kind of which a port has few."""


def describe(snapshot: Snapshot, row: PortRow, width: int) -> list[Text]:
    """What the program says of the port, and what is measured."""
    program, lines = snapshot.program_of(row.switch), list[Text]()
    for kind, found in brief_objects(snapshot, row):
        lines += [
            _line(f"{kind.label or kind.name} {one.key}: ", kind.columns, one.values) for one in found[:BRIEF_LINES]
        ]
        if len(found) > BRIEF_LINES:
            lines[-1].append(f" · {len(found) - BRIEF_LINES} more {kind.title}", "dim")
    if program is not None and row.values and not lines:
        lines.append(_line("", program.columns, row.values))
    if row.measured is not None:
        lines.append(_measured(snapshot, row, width))
    return lines


def _line(start: str, columns: Sequence[Column], values: Mapping[str, Any]) -> Text:
    """`class 0: threshold 5 packets · weight 1 · …`: what is known."""
    parts = [f"{one.title} {with_unit(one, values[one.name])}" for one in known(columns, values)]
    return Text(start + " · ".join(parts), no_wrap=True, overflow="ellipsis")


def _measured(snapshot: Snapshot, row: PortRow, width: int) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    for column, value, old in measurements(snapshot, row):
        text.append(" · " if text else "").append(
            f"{column.title} {live_text(column, value)}", "dim" if value is None else ""
        )
        if old is not None and (width >= 100 or old >= 1.0):
            text.append(f" ({age(old)})", "yellow" if old > STALE_S else "dim")
    return text


def rows_of(snapshot: Snapshot, row: PortRow, width: int, room: int | None) -> list[RenderableType]:
    """The port's objects; at most `room` lines besides the header (None: all)."""
    parts: list[RenderableType] = []
    for kind in snapshot.kinds_at(row):
        found = snapshot.objects_of(row, kind)
        if kind.brief:
            continue
        if not found:
            parts.append(Text(f"no {kind.name} has an entry here", "dim"))
        elif room is None or len(found) <= room:
            shown = [one for one in snapshot.objects if one in found]  # rows that stay where they are
            parts.append(_table(snapshot, ObjectTable(kind, shown), width))
        else:
            parts.append(_table(snapshot, ObjectTable(kind, found[: max(1, room - 1)]), width))
            parts.append(Text(f"… and {len(found) - max(1, room - 1)} more, which send less", "dim"))
    return parts


def _table(snapshot: Snapshot, objects: ObjectTable, width: int) -> Table:
    """Name, queue and what it is compared with as a bar, then the other columns that there is room for."""
    kind, queue, marks = objects.kind, objects.queue, objects.marks
    rest = [c for c in kind.columns if not c.wide and c not in (queue, *marks) and c.value_type is not bool]
    if width < 130 and any(column.plot for column in rest):
        rest = [column for column in rest if column.plot]
    shares = objects.shares() if queue is not None and marks else []
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", expand=False)
    bars = ["queue" + "".join(f" ┃ {mark.title}" for mark in marks), ""] if queue is not None else []
    names: list[str] = [kind.name, *bars, *map(heading_of, rest), *(["share"] if shares else [])]
    for number, name in enumerate(names):
        justify = "left" if number <= (1 if bars else 0) else "right"
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")
    name_width = max(8, min(34 if width < 100 else 46, max(len(snapshot.named(row.key)) for row in objects.rows) + 2))
    bar_width = max(6, min(40, width - name_width - 10 - 11 * (len(rest) + bool(shares))))
    full = objects.full
    for number, row in enumerate(objects.rows):
        dot = {None: "", False: "○ ", True: "● "}[objects.is_active(row)]
        name = _middle(snapshot.named(row.key), name_width - len(dot))
        cells: list[RenderableType] = [Text(dot + name, "dim" if dot == "○ " else "")]
        if queue is not None:
            limits = [row[mark.name] for mark in marks]
            lines = {float(limit): "bold yellow" for limit in limits if limit}
            cells += [
                bar(row[queue.name], full, bar_width, marks=lines),
                "/".join(map(count, (row[queue.name], *limits))),
            ]
        for column in rest:
            text = live_text(column, row[column.name], unit=width >= 100)
            cells.append(Text(text, "red" if column.plot == DROPS and row[column.name] else ""))
        table.add_row(*cells, *shares[number : number + 1])
    return table


def _middle(text: str, width: int) -> str:
    """The text in `width` columns, its middle left out where it is longer."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
