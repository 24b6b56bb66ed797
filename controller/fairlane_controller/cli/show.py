# SPDX-License-Identifier: Apache-2.0
"""`fairlane status`, `flows`, `drops`, `describe` and `p4 table`: what the switches and the loop know now."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from fairlane_controller.cli.log import print_events
from fairlane_controller.cli.measuring import print_measured
from fairlane_controller.cli.options import (
    RATES_OVER,
    IntervalOption,
    JsonOption,
    OnlyPortArgument,
    PortArgument,
    StateOption,
    SwitchOption,
)
from fairlane_controller.cli.output import console, print_json, print_table, shows_wide
from fairlane_controller.cli.signals import make_end_event
from fairlane_controller.cli.targets import Targets, known_port, resolve
from fairlane_controller.cli.types import Seconds, time_option
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.events import EventFilter, EventTail, place_of, read_events, sentence_of
from fairlane_controller.live.model import ObjectRow, PortRow, Snapshot, SwitchRow
from fairlane_controller.live.pictures import drop_lines, need_objects, need_switches, take_two
from fairlane_controller.live.shown import heading_of, text_of
from fairlane_controller.live.source import LiveSource
from fairlane_controller.program.contract import Program
from fairlane_controller.program.rows import DROPS, GOODPUT, QUEUE, Column, Kind
from fairlane_controller.state.ask import ask_backup
from fairlane_controller.state.events import EVENTS_FILE
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.names import resolve_name
from fairlane_controller.units import counted, format_per_s, format_size, format_time, rounded


def flows_command(
    port: OnlyPortArgument = None,
    interval: IntervalOption = RATES_OVER,
    every: Annotated[bool, typer.Option("--all", "-a", help="Also those that send nothing now.")] = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the objects that the program has at its ports, such as flows: what waits of each, how much may, what it gets, what is refused.

    Rates are over --interval. In a terminal only those that send are shown, the fastest first; --json has all. The page
    Settings of the site (`make docs`) says what the columns mean.

    Examples: `fairlane flows`, `fairlane flows --all --interval 0`, `fairlane flows s1:3 --json`
    """
    targets = resolve(state, switch, port)
    number = known_port(targets, port)
    snapshot, _ = asyncio.run(take_two(targets, interval))
    kinds = [kind for kind in need_objects(snapshot).kinds if not kind.brief]
    rows = {
        kind.name: [row for row in snapshot.objects_of_kind(kind.name) if number is None or row.port == number]
        for kind in kinds
    }
    if as_json:
        print_json([row.to_json() for kind in kinds for row in rows[kind.name]])
        return
    for kind in kinds:
        print_objects(snapshot, kind, rows[kind.name], hides_idle=bool(interval) and not every)


def print_objects(snapshot: Snapshot, kind: Kind, rows: list[ObjectRow], *, hides_idle: bool) -> None:
    """Those of a port that send most first; `hides_idle`: only those that have something to send."""
    busy = rows
    if hides_idle:
        signs = [column.name for column in kind.columns if column.plot in (QUEUE, GOODPUT, DROPS)]
        busy = [row for row in rows if any(row[sign] for sign in signs)]
        if (goodput := kind.plotted(GOODPUT)) is not None:
            busy.sort(key=lambda row: (row.switch, row.port or 0, -(row[goodput.name] or 0.0)))
    columns = _shown(kind.columns)
    table = [(row.switch, row.port, snapshot.named(row.key), *_cells(columns, row.values)) for row in busy]
    empty = f"no {kind.name} sends now" if rows else f"no {kind.name} has an entry"
    print_table(kind.title, ("switch", "port", kind.name, *map(heading_of, columns)), table, empty=empty)
    if len(busy) < len(rows):
        console.print(f"{len(rows) - len(busy)} more with nothing to send (--all shows them)", markup=False)


def _shown(columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if shows_wide() or not column.wide]


def _cells(columns: list[Column], values: Mapping[str, Any]) -> list[str]:
    return [text_of(column, values.get(column.name)) for column in columns]


def table_command(
    name: Annotated[str | None, typer.Argument(help="Table, short or full name; without: list the tables.")] = None,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tables of the switches, or show the entries of one.

    Examples: `fairlane p4 table`, `fairlane p4 table policy --json`
    """

    async def work() -> list[dict[str, Any]]:
        lists = await asyncio.gather(*(_table(e, name) for e in resolve(state, switch).endpoints))
        return [row for rows in lists for row in rows]

    rows = asyncio.run(work())
    if as_json:
        print_json(rows)
        return
    columns = ("switch", "table", "size") if name is None else ("switch", "match", "action")
    cells = [[row[column] for column in columns] for row in rows]
    print_table("tables" if name is None else f"table {name}", columns, cells, empty="no entry")


async def _table(endpoint: Endpoint, name: str | None) -> list[dict[str, Any]]:
    async with SwitchClient(endpoint) as client:
        if name is None:
            sizes = {t.alias: t.size for t in client.switch.p4info.tables}
            return [{"switch": endpoint.name, "table": t, "size": sizes[t]} for t in client.table_names()]
        schema = client.switch.p4info
        if client.has_pipeline:
            name = resolve_name("table", name, [table.name for table in schema.tables])
        return [
            {
                "switch": endpoint.name,
                "match": one.match_str(schema),
                "action": one.action_str(schema),
                "priority": one.priority,
            }
            for one in await client.read_table(name)
        ]


def drops_command(
    port: OnlyPortArgument = None,
    interval: IntervalOption = RATES_OVER,
    now: Annotated[bool, typer.Option("--now", help="Only what drops during the interval.")] = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the packets that were dropped, by reason: how many since the counters began, and how many a second now.

    Reasons of the program (an entry, a threshold, a bad packet), of the queue and of the link. A port of a reason 1 to 10 is where
    the packet came in, of the others where it should have gone out.

    Examples: `fairlane drops`, `fairlane drops --interval 5s --now`, `fairlane drops s1:3 --json`
    """
    targets = resolve(state, switch, port)
    number = known_port(targets, port)
    after, before = asyncio.run(take_two(targets, interval))
    lines = [line for line in drop_lines(need_switches(after), before) if number is None or line["port"] == number]
    if now:
        lines = [line for line in lines if line["per_s"]]
    if as_json:
        print_json(lines)
    else:
        print_drops(lines, "nothing is dropped" if now else "nothing was dropped")


def print_drops(lines: list[dict[str, Any]], empty: str) -> None:
    """A line a reason."""
    keys = {
        "switch": "switch",
        "port": "port",
        "of": "object",
        "reason": "reason",
        "packets": "packets",
        "rate": "rate",
        "by": "by",
        "meaning": "meaning",
    }
    if not any(line["object"] for line in lines):
        del keys["of"]
    rows = [[(one | {"rate": format_per_s(one["per_s"])})[key] for key in keys.values()] for one in lines]
    print_table("drops", [*keys], rows, empty=empty, wrap=True)


MAX_PAIRS = 8
"""Pairs of hosts in a line."""
MAX_MEASURED = 2
"""The first ones of what a program measures."""
INTERVAL = Seconds(2)


def status_command(
    watch: Annotated[bool, typer.Option("--watch", help="Look again and again, until Ctrl-C.")] = False,
    interval: Annotated[
        Seconds, time_option("--interval", "-i", help="With --watch: between two looks.", at_least=0.1, at_most=600)
    ] = INTERVAL,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the loop and its backup, the switches, each managed port with its settings, measurements and drops, and the last event.

    Exit code 4 when a switch does not answer, or TLS fails; 1 when another process of the topology has died. What the others say is shown all the same.

    With --watch --json: one document a line.

    Examples: `fairlane status`, `fairlane status -s s1 --json`, `fairlane status --watch`
    """
    targets = resolve(state, switch)
    seen = asyncio.run(_watch(targets, interval if watch else None, as_json))
    if not watch and as_json:
        print_json(seen.to_json())
    snapshot = seen.snapshot
    if not all(row.reachable for row in snapshot.switches):
        raise typer.Exit(ErrorCode.SWITCH_UNREACHABLE.exit_code)
    if snapshot.dead:
        raise typer.Exit(ErrorCode.INTERNAL.exit_code)


@dataclass(frozen=True)
class _Seen:
    """The topology, the loop's backup, the newest event."""

    snapshot: Snapshot
    backup: dict[str, Any] | None
    event: dict[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        more = {"loop_running": self.snapshot.loop is not None, "backup": self.backup, "last_event": self.event}
        return {**self.snapshot.to_json(), **more}


async def _look(source: LiveSource, folder: Path | None) -> _Seen:
    snapshot = await source.snapshot()
    backup = await ask_backup(folder) if folder is not None else None
    newest = EventTail(folder / EVENTS_FILE if folder else None, first=1).new()
    return _Seen(snapshot, backup, next(iter(newest), None))


async def _watch(targets: Targets, interval_s: float | None, as_json: bool) -> _Seen:
    """Draw what is seen in the terminal's other screen, or print it, again and again until SIGTERM or ^C; returns what was seen last.

    Without an interval once, and what is wrong with the loop is raised.
    """
    ended, screen = make_end_event(), Console(highlight=False)
    draws = interval_s is not None and screen.is_terminal and not as_json
    with Live(console=screen, screen=True, auto_refresh=False) if draws else contextlib.nullcontext() as live:
        async with LiveSource(targets) as source:
            while True:
                seen = await _look(source, targets.folder)
                if interval_s is None and seen.snapshot.loop_error is not None:
                    raise FairlaneError.from_json(dict(seen.snapshot.loop_error))
                if not as_json:
                    with console.capture() if live is not None else contextlib.nullcontext() as printed:
                        _print_status(seen)
                    if live is not None and printed is not None:
                        live.update(Text.from_ansi(printed.get()), refresh=True)
                elif interval_s is not None:
                    print(json.dumps(seen.to_json(), default=str), flush=True)
                with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                    if interval_s is not None:
                        await asyncio.wait_for(ended.wait(), interval_s)
                    return seen


def _say(text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)


def _print_status(seen: _Seen) -> None:
    snapshot, backup, event = seen.snapshot, seen.backup, seen.event
    names = sorted({row.program for row in snapshot.switches if row.program})
    known = any(row.reachable for row in snapshot.switches)
    programs = ", ".join(names) or ("no program" if known else "program unknown")
    title = f" ({snapshot.title})" if snapshot.title else ""
    name = f"topology {snapshot.topology}{title}" if snapshot.topology else "switches by address"
    about = [name, snapshot.target, programs]
    _say(f"{', '.join(part for part in about if part)}; control loop {_loop(snapshot)}")
    if backup:
        away = [entry["switch"] for entry in backup["switches"] if entry["error"]]
        note = f", but does not reach {', '.join(away)}" if away else ""
        _say(f"backup: process {backup['pid']} waits to take over{note}")
    for dead in snapshot.dead:
        _say(dead.message)
    for entry in snapshot.loop or ():
        if entry.error:
            _say(f"loop: {entry.error['message']}")
    for row in snapshot.switches:
        _print_switch(snapshot, row)
    for program in snapshot.programs.values():
        print_program_ports(snapshot, program)
    for port in snapshot.managed_ports:
        _print_hosts(snapshot, port)
    if event:
        what, why = " ".join(part for part in (place_of(event), event["event"]) if part), sentence_of(event)
        _say(f"last event {str(event.get('time', ''))[11:19]} UTC {what}{f': {why}' if why else ''}")


def _loop(snapshot: Snapshot) -> str:
    if snapshot.loop is None:
        return "does not run: settings stay as they are (start it with `fairlane run`)"
    away = [row.switch for row in snapshot.loop if not row.connected]
    switches = counted(len(snapshot.loop), "switch")
    reaches = f"does not reach {', '.join(away)}" if away else f"reaches {len(snapshot.loop)} of {switches}"
    flows = [row.flows for row in snapshot.loop if row.flows is not None]
    return f"runs, {reaches}" + (f", {counted(sum(flows), 'flow')}" if flows else "")


def _print_switch(snapshot: Snapshot, row: SwitchRow) -> None:
    program = snapshot.program_of(row.switch)
    managed = [port for port in snapshot.managed_ports if port.switch == row.switch]
    if row.error is not None:
        _say(f"{row.switch}: {row.error['message']}")
    elif row.program is None:
        _say(f"{row.switch}: no program yet; run `fairlane config init`")
    elif program is None:
        _say(f"{row.switch}: ready; nothing is known of the program {row.program}; see `fairlane p4 table`")
    elif not managed:
        _say(f"{row.switch}: ready; {program.ports_title}: none")


def print_program_ports(snapshot: Snapshot, program: Program) -> None:
    """A row a port, or a row a class of it where the program has such; what is of the whole port stands in the first."""
    kind = next((one for one in program.kinds if one.brief), None)
    columns, measured = _shown(program.columns if kind is None else kind.columns), program.measured[:MAX_MEASURED]
    label = () if kind is None else (kind.short,)
    of_ports = ("capacity", *(one.title for one in measured), *(["age"] if measured else []), "sent", "dropped")
    rows: list[tuple[object, ...]] = []
    for port in snapshot.managed_ports:
        if snapshot.program_of(port.switch) is program:
            of_port = _port_cells(port, measured)
            objects = snapshot.objects_of(port, kind) if kind is not None else ()
            for key, values in [(one.key, one.values) for one in objects] or [("", port.values)]:
                rows.append((port.switch, port.port, *([key] if label else []), *_cells(columns, values), *of_port))
                of_port = ("",) * len(of_ports)
    if rows:
        print_table(program.ports_title, ("switch", "port", *label, *map(heading_of, columns), *of_ports), rows)


def _print_hosts(snapshot: Snapshot, port: PortRow) -> None:
    """Who sends to whom through a port."""
    if pairs := [f"{pair} ({times})" if times > 1 else pair for pair, times in snapshot.hosts_of(port).items()]:
        more = f" and {len(pairs) - MAX_PAIRS} more" if len(pairs) > MAX_PAIRS else ""
        _say(f"{port.name} carries {', '.join(pairs[:MAX_PAIRS])}{more}")


def _port_cells(port: PortRow, measured: Sequence[Column]) -> tuple[object, ...]:
    """What is of a whole port; the age is that of the oldest measurement that is shown."""
    estimates = [port.estimate(column.name) for column in measured]
    ages = [float(one["age_s"]) for one in estimates if one]
    return (
        port.capacity_packets,
        *(text_of(column, one.get("value")) for column, one in zip(measured, estimates, strict=True)),
        *([format_time(round(max(ages), 1)) if ages else None] if measured else []),
        format_size(rounded(port.sent_bytes)),
        port.dropped_packets,
    )


LAST_EVENTS = 5


def describe_command(
    port: PortArgument,
    interval: IntervalOption = RATES_OVER,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show all that is known of one port: the port and its queues, settings, measurements, objects of the program, drops, last events.

    Examples: `fairlane describe s1:3`, `fairlane describe s1:3 --json`
    """
    from fairlane_controller.cli.ports import poll_ports, print_ports  # with all that changes a port

    targets = resolve(state, switch, port)
    name, number = targets.one("a port is").name, known_port(targets, port)

    async def read() -> Any:
        return await asyncio.gather(poll_ports(targets, True, interval), take_two(targets, interval))

    looked, (after, before) = asyncio.run(read())
    one, earlier = _only(need_switches(after), (name, number)), _only(before, (name, number)) if before else None
    found = [polled for polled in looked if polled[1].port == number]
    if not one.ports and not found:
        raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"{name} has no port {number}")
    path, wanted = targets.folder / EVENTS_FILE if targets.folder else None, EventFilter(switches=(name,), port=number)
    events = read_events(path, wanted, LAST_EVENTS, check_names=False) if path is not None else []
    if as_json:
        settings = next((polled.to_json() for _, polled, _ in found), None)
        print_json({**one.to_json(), "port": settings, "events": events})
        return
    print_ports(found, queues=True)
    for program in one.programs.values():
        print_program_ports(one, program)
    measured = [{"switch": row.switch, "port": row.port, **row.measured} for row in one.ports if row.measured]
    if measured and (program := one.program_of(name)) is not None:
        print_measured(measured, {name: program})
    for kind in one.kinds:
        if not kind.brief:
            print_objects(one, kind, list(one.objects_of_kind(kind.name)), hides_idle=False)
    print_drops(drop_lines(one, earlier), "nothing was dropped")
    print_events(events, False)


def _only(snapshot: Snapshot, place: tuple[str, int | None]) -> Snapshot:
    """The snapshot with the rows of one port."""

    def of_port(rows: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(row for row in rows if row.place == place)

    return replace(
        snapshot, ports=of_port(snapshot.ports), objects=of_port(snapshot.objects), drops=of_port(snapshot.drops)
    )
