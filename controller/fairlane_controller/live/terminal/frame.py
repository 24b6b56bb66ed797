# SPDX-License-Identifier: Apache-2.0
"""The whole screen of `fairlane watch`: head, managed ports, one port in detail, the last events; fits 80 columns by 24 lines and uses what is wider."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from fairlane_controller.live.events import Event, place_of, sentence_of
from fairlane_controller.live.model import ObjectRow, PortRow, Snapshot
from fairlane_controller.live.shown import (
    BAD,
    GOOD,
    STALE_S,
    WARN,
    age,
    brief_objects,
    count,
    known,
    live_text,
    loop_in_words,
    measurements,
    object_table,
    per_second,
    percent,
    rate,
    text_of,
    troubles,
    with_unit,
)
from fairlane_controller.program.rows import Column, Kind

WIDE = 110
TRAIL = 240
"""Samples of a port's queue that are kept for its sparkline."""
_STYLES = {GOOD: "green", WARN: "yellow", BAD: "red"}
KEYS = "q quit  p pause  ↑↓ port  a all ports"

PortKey = tuple[str, int]


@dataclass
class WatchView:
    """What is on the screen."""

    snapshot: Snapshot
    trails: dict[PortKey, deque[float | None]] = field(default_factory=dict[PortKey, deque[float | None]])
    "What waited at each port, in the unit of its program."
    events: Sequence[Event] = ()
    selected: PortKey | None = None
    paused: bool = False
    all_ports: bool = False
    keys: bool = True
    "Whether there is a keyboard."

    def take(self, snapshot: Snapshot) -> None:
        """A new snapshot: the trails grow."""
        self.snapshot = snapshot
        for row in snapshot.ports:
            trail = self.trails.setdefault(row.place, deque(maxlen=TRAIL))
            trail.append(snapshot.queue_of(row)[0])

    def ports(self) -> list[PortRow]:
        """The ports in the list; those that nobody manages only where asked for, or where there is nothing else."""
        managed = [row for row in self.snapshot.ports if row.managed]
        return list(self.snapshot.ports) if self.all_ports or not managed else managed

    def find_detail_port(self) -> PortRow | None:
        """The port in detail: the selected one, else the first of the list."""
        ports = self.ports()
        return next((row for row in ports if row.place == self.selected), ports[0] if ports else None)

    def move(self, step: int) -> None:
        """Select the port `step` further down the list."""
        ports, chosen = self.ports(), self.find_detail_port()
        if chosen is not None:
            self.selected = ports[(ports.index(chosen) + step) % len(ports)].place


def render(view: WatchView, width: int, height: int | None) -> RenderableType:
    """The screen in `width` columns and `height` lines; None: as many lines as it takes."""
    width = max(width, 40)
    parts: list[RenderableType] = _head(view, width)
    left = None if height is None else height - len(parts)
    ports, chosen = view.ports(), view.find_detail_port()
    shown = ports if left is None else _window(ports, chosen, max(1, (left - 12) // 2))
    some = "" if len(shown) == len(ports) else f": {len(shown)} of {len(ports)}"
    parts.append(_rule(("ports" if view.all_ports else "managed ports") + some))
    if ports:
        parts.append(_port_table(view, shown, width))
    else:
        parts.append(Text("no port is known: run `fairlane config init`", style="yellow"))
    if left is not None:
        left -= 2 + len(shown) if ports else 2
    events = _latest_events(view.events)
    events = events[-(8 if left is None else max(2, min(len(events), left // 3))) :]
    if chosen is not None:
        about = describe(view.snapshot, chosen, width)
        line = f", {rate(chosen.rate_bps)}" if chosen.rate_bps else ""
        parts += [_rule(f"{chosen.name}{f' {chosen.interface}' if chosen.interface else ''}{line}"), *about]
        room = None if left is None else max(1, left - 1 - len(about) - 2 - (1 + len(events)))
        parts += rows_of(view.snapshot, chosen, width, room)
    parts += [_rule("events"), *(_event(event, width) for event in events)]
    if not events:
        parts.append(Text("none yet", "dim"))
    return Group(*parts)


def _rule(title: str) -> Rule:
    return Rule(Text(title), align="left", style="dim")


def _one_line(*parts: str | tuple[str, str]) -> Text:
    """Texts, or each with its style, in one line, cut where there is no room."""
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _head(view: WatchView, width: int) -> list[RenderableType]:
    snapshot = view.snapshot
    state, words = loop_in_words(snapshot)
    title = _one_line(
        (f" {snapshot.topology or 'no topology'} ", "bold reverse"),
        (f" {snapshot.title}" if snapshot.title else "", "bold"),
        (f" {snapshot.target} · " if snapshot.target else " ", "dim"),
        (words + ("" if snapshot.loop or snapshot.loop_error else " runs"), _STYLES[state]),
    )
    every = "" if snapshot.interval_s is None or width < 70 else f"every {snapshot.interval_s:.1f} s "
    clock = time.strftime("%H:%M:%S", time.localtime(snapshot.time_s))
    switches, well = _one_line(), [s for s in snapshot.switches if s.error is None and s.program is not None]
    for program in sorted({str(s.program) for s in well}):
        names = [s.switch for s in well if s.program == program]
        listed = " ".join(names) if len(names) <= 8 else f"{' '.join(names[:7])} … {names[-1]} ({len(names)})"
        switches.append("● ", "green").append(listed).append(f" {program}  ", "dim")
    keys = (KEYS if view.keys and width >= 70 else "", "dim")
    return [
        _sides(title, _one_line(("PAUSED ", "bold yellow") if view.paused else (every, "dim"), clock)),
        _sides(switches, _one_line(keys)),
        *(_one_line((f"✗ {problem}", "bold red")) for _, problem in troubles(snapshot)[:6]),
    ]


def _sides(left: Text, right: Text) -> Table:
    grid = Table.grid(expand=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_row(left, right)
    return grid


def _port_table(view: WatchView, ports: Sequence[PortRow], width: int) -> Table:
    wide = width >= WIDE
    own = [column for column in view.snapshot.columns if not column.wide and not column.plot][: 3 if wide else 1]
    spare = width - (100 if wide else 77)
    line_width = max(4, min(16, 6 + spare // 4))
    queue_width = max(6, min(24, 8 + spare // 4))
    trail_width = max(6, min(60, 10 + spare // 2))
    headings = (
        "",
        "port",
        "sent" if wide else "sent bit/s",
        "of line",
        "",
        "queue",
        "",
        "lately",
        "drops/s",
        *(column.title for column in own),
    )
    table = _plain_table(headings, {2, 4, 6, 8})
    chosen = view.find_detail_port()
    for row in ports:
        waiting, capacity, _ = view.snapshot.queue_of(row)
        trail = list(view.trails.get(row.place, ()))
        top = max([v for v in trail[-trail_width:] if v is not None], default=0.0)
        here = chosen is not None and chosen.place == row.place and len(view.ports()) > 1
        full = (row.utilisation or 0) > 0.95
        marks = {float(mark): "yellow" for mark in view.snapshot.marks_of(row).values() if mark}
        table.add_row(
            Text("▸" if here else " ", "bold"),
            Text(row.name, "bold" if row.managed else "dim"),
            rate(row.tx_bps, unit=wide),
            bar(row.utilisation, 1.0, line_width, style="green" if full else "blue"),
            percent(row.utilisation),
            bar(waiting, capacity or max(top, 1.0), queue_width, marks=marks),
            f"{count(waiting)}/{count(capacity)}",
            sparkline(trail, trail_width, full=max(top, 4.0)),
            Text(per_second(row.drops_per_s), "red" if row.drops_per_s else ""),
            *(Text(text_of(column, row.values.get(column.name))) for column in own),
        )
    return table


def _plain_table(headings: Sequence[str], right: Container[int]) -> Table:
    """A table without lines; `right`: the columns that are aligned so."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", expand=False)
    for number, name in enumerate(headings):
        table.add_column(name, justify="right" if number in right else "left", no_wrap=True, overflow="ellipsis")
    return table


def _event(event: Event, width: int) -> Text:
    name = str(event.get("event"))
    text = _one_line(
        (_clock(str(event.get("time", ""))), "dim"),
        f" {place_of(event):<5} ",
        (name, "red" if name in ("error", "disconnected", "flow_refused") else "cyan"),
        (" (dry run)" if event.get("dry_run") else "", "yellow"),
        f" {sentence_of(event)}",
    )
    text.truncate(width, overflow="ellipsis")
    return text


def _latest_events(events: Sequence[Event]) -> list[Event]:
    """The events; of those that come every second (`tuned`) only the newest of each port, so that there is space for the others."""
    newest = {place_of(event): event for event in events if event.get("event") == "tuned"}
    return [event for event in events if event.get("event") != "tuned" or newest[place_of(event)] is event]


def _clock(moment: str) -> str:
    """Local time of an ISO time; what cannot be understood stays as it is."""
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%H:%M:%S")
    except ValueError:
        return moment[:8]


def _window(rows: list[PortRow], chosen: PortRow | None, room: int) -> list[PortRow]:
    """At most `room` rows around the chosen one."""
    at = rows.index(chosen) if chosen in rows else 0
    first = max(0, min(at - room // 2, len(rows) - room))
    return rows[first : first + room]


BRIEF_LINES = 2
"""Lines of a kind of which a port has few."""


def describe(snapshot: Snapshot, row: PortRow, width: int) -> list[Text]:
    """What the program says of the port, and what is measured."""
    program, lines = snapshot.program_of(row.switch), list[Text]()
    for kind, found in brief_objects(snapshot, row):
        lines += [_line(f"{kind.short} {one.key}: ", kind.columns, one.values) for one in found[:BRIEF_LINES]]
        if len(found) > BRIEF_LINES:
            lines[-1].append(f" · {len(found) - BRIEF_LINES} more {kind.title}", "dim")
    if program is not None and row.values and not lines:
        lines.append(_line("", program.columns, row.values))
    if row.measured is not None:
        lines.append(_measured(snapshot, row, width))
    return lines


def _line(start: str, columns: Sequence[Column], values: Mapping[str, Any]) -> Text:
    """`class 0: threshold 5 packets · weight 1 · …`: what is known."""
    return _one_line(
        start + " · ".join(f"{one.title} {with_unit(one, values[one.name])}" for one in known(columns, values))
    )


def _measured(snapshot: Snapshot, row: PortRow, width: int) -> Text:
    text = _one_line()
    for column, value, old in measurements(snapshot, row):
        style = "dim" if value is None else ""
        text.append(" · " if text else "").append(f"{column.title} {live_text(column, value)}", style)
        if old is not None and (width >= 100 or old >= 1.0):
            text.append(f" ({age(old)})", "yellow" if old > STALE_S else "dim")
    return text


def rows_of(snapshot: Snapshot, row: PortRow, width: int, room: int | None) -> list[RenderableType]:
    """The port's objects; at most `room` lines besides the header (None: all)."""
    parts: list[RenderableType] = []
    for kind in snapshot.kinds_at(row):
        found = snapshot.objects_of(row, kind)
        if not found and not kind.brief:
            parts.append(Text(f"no {kind.name} has an entry here", "dim"))
        if not found or kind.brief:
            continue
        shown, cut = [one for one in snapshot.objects if one in found], 0  # rows that stay where they are
        if room is not None and len(found) > room:
            shown = found[: max(1, room - 1)]
            cut = len(found) - len(shown)
        parts.append(_table(snapshot, kind, shown, width))
        if cut:
            parts.append(Text(f"… and {cut} more, which send less", "dim"))
    return parts


def _table(snapshot: Snapshot, kind: Kind, rows: Sequence[ObjectRow], width: int) -> Table:
    """Name, queue and what it is compared with as a bar, then the other columns that there is room for."""
    objects = object_table(snapshot, kind, rows, narrow=width < 130, unit=width >= 100)
    headings = (kind.name, *([objects.bar] if objects.bar else []), *objects.headings)
    table = _plain_table(headings, range(2 if objects.bar else 1, len(headings)))
    name_width = max(8, min(34 if width < 100 else 46, max(len(one.name) for one in objects.lines) + 2))
    bar_width = max(6, min(40, width - name_width - 11 * len(objects.headings)))
    for one in objects.lines:
        dot = {None: "", False: "○ ", True: "● "}[one.is_active]
        cells = [Text(dot + _middle(one.name, name_width - len(dot)), "dim" if one.is_active is False else "")]
        if objects.bar:
            cells.append(bar(one.queue, objects.full, bar_width, marks=dict.fromkeys(one.marks, "bold yellow")))
        table.add_row(*cells, *(Text(text, "red" if at in one.bad else "") for at, text in enumerate(one.cells)))
    return table


def _middle(text: str, width: int) -> str:
    """The text in `width` columns, its middle left out where it is longer."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


def bar(
    value: float | None, full: float, width: int, *, style: str = "cyan", marks: Mapping[float, str] | None = None
) -> Text:
    """`width` cells, of which `value`/`full` are filled to an eighth; a mark (value → style) is a line at its place."""
    cells = [("·", "dim")] * width
    if value is not None and full > 0 and cells:
        whole, part = divmod(round(8 * width * min(1.0, max(0.0, value / full))), 8)
        cells[:whole] = [("█", style)] * whole
        if part:
            cells[whole] = (_EIGHTHS[part], style)
        if value > 1.05 * full:
            cells[-1] = ("▶", style)
    for at, mark_style in (marks or {}).items():
        if full > 0 and 0 <= at <= full and cells:
            place = min(width - 1, max(0, round(width * at / full) - (at == full)))
            cells[place] = ("┃" if cells[place][0] == "·" else "╂", mark_style)
    return Text.assemble(*cells, no_wrap=True)


def sparkline(values: Sequence[float | None], width: int, full: float | None = None, style: str = "cyan") -> Text:
    """The last `width` values, the newest at the right; `full` is the top (the largest value unless given)."""
    shown = list(values)[-width:]
    known = [v for v in shown if v is not None]
    top = full if full else max(known, default=0.0)
    cells = [(" " * (width - len(shown)), "")]
    for value in shown:
        part = min(1.0, value / top) if value is not None and top > 0 else 0.0
        level = "·" if value is None else _LEVELS[max(0, min(7, int(8 * part - 1e-9)))]
        cells.append((level, style if part > 0 else "dim"))
    return Text.assemble(*cells, no_wrap=True)
