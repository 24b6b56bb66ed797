# SPDX-License-Identifier: Apache-2.0
"""One port in detail: its values and measurements in a few lines, its objects in a table, by what its program says that there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fairlane_controller.live.model import ObjectRow, PortRow, Snapshot
from fairlane_controller.live.terminal import shapes
from fairlane_controller.live.values import heading_of, text_of
from fairlane_controller.program.rows import CONTROL, DROPS, GOODPUT, QUEUE, Column, Kind

STALE_S = 3.0
"""An older measurement is shown in yellow."""
BRIEF_LINES = 2
"""Lines of a kind of which a port has few."""


def describe(snapshot: Snapshot, row: PortRow, width: int) -> list[Text]:
    """What the program says of the port, and what is measured."""
    program, lines = snapshot.program_of(row.switch), list[Text]()
    for kind in program.kinds if program is not None else ():
        found = snapshot.objects_of(row, kind) if kind.brief else ()
        lines += [
            _line(f"{kind.label or kind.name} {one.key}: ", kind.columns, one.values) for one in found[:BRIEF_LINES]
        ]
        if len(found) > BRIEF_LINES:
            lines[-1].append(f" · {len(found) - BRIEF_LINES} more {kind.title}", "dim")
    if program is not None and row.values and not lines:
        lines.append(_line("", program.columns, row.values))
    if program is not None and row.measured is not None:
        lines.append(_measured(program.measured, row.measured, width))
    return lines


def _line(start: str, columns: Sequence[Column], values: Mapping[str, Any]) -> Text:
    """`class 0: threshold 5 packets · weight 1 · …`: what is known."""
    parts = [_value(one, values[one.name]) for one in columns if not one.wide and values.get(one.name) is not None]
    return Text(start + " · ".join(parts), no_wrap=True, overflow="ellipsis")


def _value(column: Column, value: Any) -> str:
    unit = f" {column.unit}" if column.unit in ("packets", "cells") else ""
    return f"{column.title} {text_of(column, value)}{unit}"


def _measured(columns: Sequence[Column], measured: Mapping[str, Any], width: int) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    for column in columns:
        value: Any = measured.get(column.name)
        if value is None and (column.wide or column.name not in measured):
            continue
        if value is None:
            text.append(" · " if text else "").append(f"{column.title} -", "dim")
        elif "value" in value:
            text.append(" · " if text else "").append(f"{column.title} {_cell(column, value['value'], 100)}")
            old = value.get("age_s")
            if old is not None and (width >= 100 or float(old) >= 1.0):
                text.append(f" ({shapes.age(float(old))})", "yellow" if float(old) > STALE_S else "dim")
    return text


def rows_of(snapshot: Snapshot, row: PortRow, width: int, room: int | None) -> list[RenderableType]:
    """The port's objects; at most `room` lines besides the header (None: all)."""
    program = snapshot.program_of(row.switch)
    kinds = [kind for kind in program.kinds if not kind.brief] if program is not None else []
    parts: list[RenderableType] = []
    for kind in kinds:
        found = snapshot.objects_of(row, kind)
        if not found:
            parts.append(Text(f"no {kind.name} has an entry here", "dim"))
        elif room is None or len(found) <= room:
            shown = [one for one in snapshot.objects if one in found]  # rows that stay where they are
            parts.append(_table(snapshot, kind, shown, width))
        else:
            parts.append(_table(snapshot, kind, found[: max(1, room - 1)], width))
            parts.append(Text(f"… and {len(found) - max(1, room - 1)} more, which send less", "dim"))
    return parts


def _table(snapshot: Snapshot, kind: Kind, rows: Sequence[ObjectRow], width: int) -> Table:
    """Name, queue and what it is compared with as a bar, then the other columns that there is room for."""
    queue, goodput = kind.plotted(QUEUE), kind.plotted(GOODPUT)
    marks = [c for c in kind.columns if queue is not None and c.plot == CONTROL and c.unit == queue.unit]
    first = [column for column in (queue, *marks) if column is not None]
    rest = [c for c in kind.columns if not c.wide and c not in first and c.value_type is not bool]
    if width < 130 and any(column.plot for column in rest):
        rest = [column for column in rest if column.plot]
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", expand=False)
    share = [goodput] if goodput is not None and queue is not None and marks else []
    bars = ["queue" + "".join(f" ┃ {mark.title}" for mark in marks), ""] if queue is not None else []
    for number, name in enumerate([kind.name, *bars, *map(heading_of, rest), *("share" for _ in share)]):
        justify = "left" if number <= (1 if bars else 0) else "right"
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")
    name_width = max(8, min(34 if width < 100 else 46, max(len(snapshot.named(row.key)) for row in rows) + 2))
    bar_width = max(6, min(40, width - name_width - 10 - 11 * (len(rest) + len(share))))
    full = 1.25 * max([value for row in rows for one in first if (value := row[one.name])] + [4])
    total = sum(row[goodput.name] or 0.0 for row in rows) if goodput is not None else 0.0
    active = next((column.name for column in kind.columns if column.value_type is bool and not column.wide), None)
    for row in rows:
        dot = "" if active is None else "○ " if row[active] is False else "● "
        cells: list[RenderableType] = [
            Text(dot + _middle(snapshot.named(row.key), name_width - len(dot)), "dim" if dot == "○ " else "")
        ]
        if queue is not None:
            limits = [row[mark.name] for mark in marks]
            bar_marks = {float(limit): "bold yellow" for limit in limits if limit}
            cells.append(shapes.bar(row[queue.name], full, bar_width, marks=bar_marks))
            cells.append("/".join(shapes.count(value) for value in (row[queue.name], *limits)))
        cells += [_cell(column, row[column.name], width) for column in rest]
        cells += [
            shapes.percent(row[one.name] / total if row[one.name] is not None and total else None) for one in share
        ]
        table.add_row(*cells)
    return table


def _cell(column: Column, value: Any, width: int) -> Text:
    if column.plot == DROPS:
        return Text(shapes.per_second(value), "red" if value else "")
    return Text(shapes.rate(value, unit=width >= 100) if column.unit == "bit/s" else text_of(column, value))


def _middle(text: str, width: int) -> str:
    """The text in `width` columns, its middle left out where it is longer."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
