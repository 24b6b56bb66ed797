# SPDX-License-Identifier: Apache-2.0
"""The screen of `fairlane watch`: head, ports, one port in detail, the last events. rich fits it into the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.bar import Bar
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from fairlane_controller.live.events import Event, EventTail, line_of, place_of
from fairlane_controller.live.model import ObjectRow, PortRow, Snapshot
from fairlane_controller.live.sampler import Sampler
from fairlane_controller.live.shown import (
    BAD,
    GOOD,
    PORT,
    WARN,
    facts_of,
    loop_in_words,
    object_table,
    percent,
    text_of,
    troubles,
)
from fairlane_controller.live.source import LiveSource
from fairlane_controller.program.rows import Kind

WIDE = 110
"""Columns of a terminal that has room for more columns of a table."""
TRAIL = 16
"""Samples of a port's queue in its sparkline."""
_STYLES = {GOOD: "green", WARN: "yellow", BAD: "red"}
_LEVELS = "▁▂▃▄▅▆▇█"

Queues = dict[tuple[str, int], "float | None"]
"""What waits at each port, in the unit of its program."""


def queues_of(snapshot: Snapshot) -> Queues:
    """What a sparkline shows of a snapshot."""
    return {row.place: snapshot.queue_of(row)[0] for row in snapshot.ports}


@dataclass
class WatchView:
    """What is on the screen."""

    snapshot: Snapshot
    trail: Sequence[Queues] = ()
    "The newest last."
    events: Sequence[Event] = ()
    selected: tuple[str, int] | None = None
    paused: bool = False
    all_ports: bool = False

    def ports(self) -> tuple[PortRow, ...]:
        """The ports in the list; unmanaged ones only with the key `a`, or where there are no others."""
        return self.snapshot.ports if self.all_ports else self.snapshot.managed_ports or self.snapshot.ports

    def chosen(self) -> PortRow | None:
        """The port in detail: the selected one, else the first of the list."""
        ports = self.ports()
        return next((row for row in ports if row.place == self.selected), ports[0] if ports else None)

    def press(self, key: str) -> None:
        """Do what a key asks for."""
        ports, chosen = self.ports(), self.chosen()
        if key == "pause":
            self.paused = not self.paused
        elif key == "all":
            self.all_ports = not self.all_ports
        elif chosen is not None:
            self.selected = ports[(ports.index(chosen) + (-1 if key == "up" else 1)) % len(ports)].place


def render(view: WatchView, width: int, height: int) -> RenderableType:
    """The screen for so many columns and lines; what it has no room for is at its end."""
    snapshot, ports, chosen = view.snapshot, view.ports(), view.chosen()
    room, wide = max(1, (height - 12) // 2), width >= WIDE
    first = max(0, min(ports.index(chosen) - room // 2, len(ports) - room)) if chosen is not None else 0
    shown = ports[first : first + room]
    some = "" if len(shown) == len(ports) else f": {len(shown)} of {len(ports)}"
    parts = [*_head(view), _rule(("ports" if view.all_ports else "managed ports") + some)]
    parts.append(_port_table(view, shown, wide) if shown else Text("no port is known: run `fairlane config init`"))
    if chosen is not None:
        facts = (f"{title} {value}{note and f' ({note})'}" for title, value, note, _ in facts_of(snapshot, chosen)[3:])
        parts += [_rule(f"{chosen.name} {chosen.interface or ''}"), Text(" · ".join(facts))]
    newest = {place_of(event): event for event in view.events if event.get("event") == "tuned"}
    events = [one for one in view.events if one.get("event") != "tuned" or newest[place_of(one)] is one]
    parts += [_rule("events"), *(_one_line(line_of(event)) for event in events[-5:])]
    for kind in snapshot.kinds_at(chosen) if chosen is not None else ():
        if not kind.brief and chosen is not None:
            found = snapshot.objects_of(chosen, kind)
            parts += [_rule(f"{kind.many}: {len(found)}"), _objects(snapshot, kind, found[:height], wide)]
    return Group(*parts)


def _rule(title: str) -> Rule:
    return Rule(Text(title), align="left", style="dim")


def _one_line(*parts: str | tuple[str, str]) -> Text:
    """Texts, or each with its style, in one line, cut where there is no room."""
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _head(view: WatchView) -> list[RenderableType]:
    snapshot = view.snapshot
    state, words = loop_in_words(snapshot)
    switches = (f"{row.switch} {row.program}" for row in snapshot.switches if not row.error and row.program)
    title = (
        ("PAUSED " if view.paused else "", "bold yellow"),
        (f" {snapshot.topology or 'no topology'} ", "bold reverse"),
        f" {snapshot.title}  {snapshot.target or ''}  ",
        (words + ("" if snapshot.loop or snapshot.loop_error else " runs"), _STYLES[state]),
        time.strftime("  %H:%M:%S  ", time.localtime(snapshot.time_s)),
        ("q quit  p pause  ↑↓ port  a all", "dim"),
    )
    problems = (_one_line((f"✗ {problem}", "bold red")) for _, problem in troubles(snapshot)[:6])
    return [_one_line(*title), _one_line((" · ".join(switches), "dim")), *problems]


def _table(*headings: str, ratios: Sequence[str] = (), left: Sequence[str] = ()) -> Table:
    """A table without lines as wide as the screen; columns in `ratios` take what the others leave."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", expand=True)
    for name in headings:
        side = "left" if name in ratios or name in left else "right"
        table.add_column(name, justify=side, no_wrap=True, ratio=1 if name in ratios else None)
    return table


def _port_table(view: WatchView, ports: Sequence[PortRow], wide: bool) -> Table:
    own = [one for one in view.snapshot.columns if not one.wide and not one.plot][: 3 if wide else 1]
    titles, count = [one.title for one in own], PORT["waiting_packets"]
    table = _table(
        "port",
        "sent",
        "line",
        "%",
        "queue",
        "full",
        "lately",
        "drops/s",
        *titles,
        ratios=("line", "queue"),
        left=("port",),
    )
    for row in ports:
        waiting, capacity, _ = view.snapshot.queue_of(row)
        trail = [queues.get(row.place) for queues in view.trail][-TRAIL:]
        top = max([value for value in trail if value is not None], default=0.0)
        style = "reverse" if row is view.chosen() and len(view.ports()) > 1 else ""
        table.add_row(
            Text(row.name, style),
            text_of(PORT["tx_bps"], row.tx_bps),
            Bar(1.0, 0.0, row.utilisation or 0.0, color="blue"),
            percent(row.utilisation),
            Bar(capacity or max(top, 1.0), 0.0, waiting or 0.0, color="cyan"),
            f"{text_of(count, waiting)}/{text_of(count, capacity)}",
            sparkline(trail, TRAIL, max(top, 4.0)),
            Text(text_of(PORT["drops_per_s"], row.drops_per_s), "red" if row.drops_per_s else ""),
            *(text_of(column, row.values.get(column.name)) for column in own),
        )
    return table


def sparkline(values: Sequence[float | None], width: int, full: float) -> Text:
    """A level a value, `·` for one that is not known, the newest at the right; `full` is the top."""
    cells = ("·" if value is None else _LEVELS[max(0, min(7, int(8 * value / full - 1e-9)))] for value in values)
    return Text("".join(cells).rjust(width), "cyan", no_wrap=True)


def _objects(snapshot: Snapshot, kind: Kind, rows: Iterable[ObjectRow], wide: bool) -> RenderableType:
    headings, lines = object_table(snapshot, kind, sorted(rows, key=lambda one: one.key), narrow=not wide)
    table = _table(kind.name, *headings, ratios=(kind.name,))
    for line in lines:
        table.add_row(line.name, *(Text(text, "red" if at in line.bad else "") for at, text in enumerate(line.cells)))
    return table


async def watch(source: LiveSource, tail: EventTail, console: Console, interval_s: float) -> None:
    """Draw until `q`, ^C or SIGTERM.

    Args:
        source: Whose snapshots.
        tail: The event log.
        console: The terminal.
        interval_s: Seconds between two snapshots; more where that takes too much of a core.
    """
    view: WatchView | None = None
    events: deque[Event] = deque(maxlen=300)
    this, ends = asyncio.current_task(), False

    def draw() -> None:
        if view is not None:
            live.update(render(view, *console.size), refresh=True)

    def press(key: str) -> None:
        nonlocal ends
        if key == "quit" and this is not None:
            if not ends:  # once: a second time would cancel the end of the connections
                this.cancel()
            ends = True
        elif view is not None:
            view.press(key)
            draw()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, press, "quit")
    with Live(console=console, screen=True, auto_refresh=False) as live, keyboard(press):
        async with Sampler(source, queues_of, interval_s, TRAIL * interval_s) as sampler:
            with contextlib.suppress(asyncio.CancelledError):
                async for _ in sampler.follow():
                    if sampler.latest is None:
                        raise sampler.problem or RuntimeError("a sample has neither a snapshot nor a problem")
                    view = view or WatchView(sampler.latest)
                    if not view.paused:
                        events.extend(tail.new())
                        view.snapshot, view.events = sampler.latest, events
                        view.trail = [queues for _, queues in sampler.history]
                        draw()


_KEYS: dict[bytes, str] = {b"\x1b[A": "up", b"\x1b[B": "down", b"q": "quit", b"p": "pause", b"a": "all"}


@contextlib.contextmanager
def keyboard(press: Callable[[str], Any]) -> Generator[None]:
    """Call `press` with the name of each key while inside; not where standard input is no terminal. Needs a running event loop."""
    try:
        number = sys.stdin.fileno()
        before = termios.tcgetattr(number)
    except (termios.error, OSError, ValueError):
        yield
        return
    loop = asyncio.get_running_loop()

    def read() -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = os.read(number, 64)
        if not data:
            loop.remove_reader(number)
        for key in re.findall(rb"(?s)\x1b\[.|.", data):  # several come at once where drawing is slow
            if key in _KEYS:
                press(_KEYS[key])

    try:
        tty.setcbreak(number)
        loop.add_reader(number, read)
        yield
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)
