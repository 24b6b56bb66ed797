# SPDX-License-Identifier: Apache-2.0
"""`fairlane status`, `flows`, `drops`, `describe`, `ports measure` and `log`: what the switches and the loop know now, and why what changed when."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from fairlane_controller.cli.options import (
    RATES_OVER,
    IntervalOption,
    JsonOption,
    OnlyPortArgument,
    PortArgument,
    PortRef,
    Seconds,
    StateOption,
    SwitchOption,
    time_option,
)
from fairlane_controller.cli.output import console, print_json, print_table, say
from fairlane_controller.cli.signals import make_end_event
from fairlane_controller.cli.targets import Targets, known_port, on_switches, resolve
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_file, out_of_range
from fairlane_controller.live.events import EventFilter, EventTail, line_of, read_events
from fairlane_controller.live.model import DROP_COLUMNS, ObjectRow, PortRow, Snapshot
from fairlane_controller.live.pictures import answering, need_none, need_switches, snapshots, take_two, unread
from fairlane_controller.live.shown import PORT, heading_of, loop_in_words, text_of, troubles
from fairlane_controller.program.contract import Program, meaning
from fairlane_controller.program.rows import GOODPUT, Column, Kind
from fairlane_controller.state.ask import ask_backup
from fairlane_controller.state.events import EVENTS_FILE, log_of
from fairlane_controller.state.run_state import find_folder
from fairlane_controller.units import counted

Lines = Iterable[tuple[Sequence[object], Mapping[str, Any]]]
"""Of a table: the cells of its keys, and the values of its columns."""


def _print(title: str, keys: Sequence[str], columns: Iterable[Column], lines: Lines, wide: bool = False, **options: Any) -> None:  # fmt: skip
    shown = [column for column in columns if wide or not column.wide]
    rows = [(*cells, *(text_of(one, values.get(one.name)) for one in shown)) for cells, values in lines]
    print_table(title, (*keys, *map(heading_of, shown)), rows, **options)


@contextlib.contextmanager
def _reading(targets: Targets, port: PortRef | None, interval_s: float) -> Generator[Snapshot]:
    """As `_read`, for a block that shows what switches answer. Raises what is wrong with the others after it."""
    snapshot = asyncio.run(_read(targets, port, interval_s))
    with answering(unread(snapshot), len(snapshot.switches)):
        yield snapshot


async def _read(targets: Targets, port: PortRef | None, interval_s: float) -> Snapshot:
    """A snapshot with rates over `interval_s`; where a port is named, with its rows only."""
    number = known_port(targets, port)
    snapshot = await take_two(targets, interval_s)
    if number is None:
        return snapshot
    rows = {
        key: tuple(one for one in getattr(snapshot, key) if one.port == number) for key in ("ports", "objects", "drops")
    }
    return replace(snapshot, **rows)


@on_switches
def flows_command(
    port: OnlyPortArgument = None,
    interval: IntervalOption = RATES_OVER,
    *,
    targets: Targets,
    as_json: JsonOption = False,
) -> None:
    """Show the objects that the program has at its ports, such as flows: what waits of each, how much may, what it gets, what is refused.

    Rates are over --interval; the fastest of a port stand first. `fairlane describe s1:3` and --json have more columns. The page
    Settings of the site (`make docs`) says what they mean.

    Examples: `fairlane flows`, `fairlane flows --interval 0`, `fairlane flows s1:3 --json`
    """
    with _reading(targets, port, interval) as snapshot:
        found = {kind: snapshot.objects_of_kind(kind.name) for kind in snapshot.kinds if not kind.brief}
        if not found:
            programs = ", ".join(snapshot.programs) or "that runs"
            raise ErrorCode.WRONG_PROGRAM(f"the program {programs} has no flows: see `fairlane status`")
        if as_json:
            print_json([row.to_json() for rows in found.values() for row in rows])
            return
        for kind, rows in found.items():
            _print_objects(snapshot, kind, rows)


def _print_objects(snapshot: Snapshot, kind: Kind, rows: Iterable[ObjectRow], *, wide: bool = False) -> None:
    """The fastest of a port first."""
    if (goodput := kind.plotted(GOODPUT)) is not None:
        rows = sorted(rows, key=lambda row: (row.switch, row.port or 0, -(row[goodput.name] or 0.0)))
    lines = (((*row.place, snapshot.named(row.key)), row.values) for row in rows)
    empty = f"no {kind.name} has an entry"
    _print(kind.title, ("switch", "port", kind.name), kind.columns, lines, wide, empty=empty)


@on_switches
def drops_command(
    port: OnlyPortArgument = None,
    interval: IntervalOption = RATES_OVER,
    *,
    targets: Targets,
    as_json: JsonOption = False,
) -> None:
    """Show the packets that were dropped, by reason: how many since the counters began, and how many a second now.

    Reasons of the program (an entry, a threshold, a bad packet), of the queue and of the link. A port of a reason 1 to 10 is where
    the packet came in, of the others where it should have gone out.

    Examples: `fairlane drops`, `fairlane drops --interval 5s`, `fairlane drops s1:3 --json`
    """
    with _reading(targets, port, interval) as snapshot:
        if as_json:
            print_json(drop_lines(snapshot))
        else:
            _print_drops(snapshot)


def drop_lines(snapshot: Snapshot) -> list[dict[str, Any]]:
    """A line for each row of drops with the meaning of its reason, the fastest first."""
    order = sorted(
        snapshot.drops, key=lambda one: (-(one.per_s or 0.0), -one.packets, one.switch, one.port or 0, one.reason)
    )
    return [{**row.to_json(), "meaning": meaning(snapshot.program_of(row.switch), row.reason, row.by)} for row in order]


def _print_drops(snapshot: Snapshot) -> None:
    lines = drop_lines(snapshot)
    columns = [one for one in DROP_COLUMNS if one.name != "object" or any(line["object"] for line in lines)]
    cells = (((line["switch"], line["port"]), line) for line in lines)
    _print(
        "drops",
        ("switch", "port"),
        [*columns, Column("meaning", "meaning")],
        cells,
        empty="nothing was dropped",
        wrap=True,
    )


INTERVAL = Seconds(2)


@on_switches
def status_command(
    watch: Annotated[bool, typer.Option("--watch", help="Repeat it until Ctrl-C.")] = False,
    interval: Annotated[
        Seconds, time_option("--interval", "-i", help="With --watch: the period.", at_least=0.1, at_most=600)
    ] = INTERVAL,
    *,
    targets: Targets,
    as_json: JsonOption = False,
) -> None:
    """Show the loop and its backup, the switches, each managed port with its settings, measurements and drops, and the last event.

    Exit code 4 when a switch does not answer, or TLS fails; 1 when another process of the topology has died. The others are shown too.

    With --watch --json: one document a line.

    Examples: `fairlane status`, `fairlane status -s s1 --json`, `fairlane status --watch`
    """
    snapshot = asyncio.run(_status(targets, interval if watch else None, as_json))
    if not all(row.reachable for row in snapshot.switches):
        raise typer.Exit(ErrorCode.SWITCH_UNREACHABLE.exit_code)
    if snapshot.loop_error is not None:
        raise typer.Exit(FairlaneError.from_json(snapshot.loop_error).exit_code)
    if snapshot.dead:
        raise typer.Exit(ErrorCode.INTERNAL.exit_code)


async def _status(targets: Targets, interval_s: float | None, as_json: bool) -> Snapshot:
    """Print the status, in a terminal's other screen where there is an interval, until SIGTERM or ^C; returns the only snapshot."""
    screen, folder = Console(highlight=False), targets.folder
    draws = interval_s is not None and screen.is_terminal and not as_json
    taken = snapshots(targets, interval_s or 0.0, make_end_event())
    with Live(console=screen, screen=True, auto_refresh=False) if draws else contextlib.nullcontext() as live:
        async with contextlib.aclosing(taken):
            async for snapshot in taken:
                backup = await ask_backup(folder) if folder is not None else None
                event = next(iter(EventTail(log_of(targets.run), first=1).new()), None)
                more = {"loop_running": snapshot.loop is not None, "backup": backup, "last_event": event}
                if as_json:
                    indent = 2 if interval_s is None else None
                    print(json.dumps({**snapshot.to_json(), **more}, indent=indent, default=str), flush=True)
                else:
                    with console.capture() if live is not None else contextlib.nullcontext() as printed:
                        _print_status(snapshot, backup, event)
                    if live is not None and printed is not None:
                        live.update(Text.from_ansi(printed.get()), refresh=True)
                if interval_s is None:
                    return snapshot
    raise typer.Exit


def _print_status(snapshot: Snapshot, backup: dict[str, Any] | None, event: dict[str, Any] | None) -> None:
    programs = {row.program: "" for row in snapshot.switches if row.program}
    for row in snapshot.switches:
        if row.program:
            programs[row.program] += f" {row.switch}"
    title = f" ({snapshot.title})" if snapshot.title else ""
    name = f"topology {snapshot.topology}{title}" if snapshot.topology else "switches by address"
    flows = [row.details["flows"] for row in snapshot.loop or () if row.details.get("flows") is not None]
    loop = loop_in_words(snapshot)[1] + (f", {counted(sum(flows), 'flow')}" if flows else "")
    about = (name, snapshot.target, *(f"{one} on{switches}" for one, switches in programs.items()))
    say(f"{', '.join(filter(None, about))}; {loop}")
    if backup:
        away = [entry["switch"] for entry in backup["switches"] if entry["error"]]
        note = f", but does not reach {', '.join(away)}" if away else ""
        say(f"backup: process {backup['pid']} waits to take over{note}")
    for _, problem in troubles(snapshot):
        say(problem)
    for program in snapshot.programs.values():
        _print_ports(snapshot, program)
    if event:
        say(f"last event {line_of(event)}")


def _print_ports(snapshot: Snapshot, program: Program, *, wide: bool = False) -> None:
    """A row a port, or a row a class of it where the program has such; the age is that of the oldest measurement that is shown."""
    kind = next((one for one in program.kinds if one.brief), None)
    measured = program.measured[:2]
    ages = [Column("age_s", "age", "s")] if measured else []
    totals = PORT["sent_bytes"], PORT["dropped_packets"]
    own = [one for one in (kind or program).columns if kind is None or one.title != kind.short]
    columns = (*own, PORT["capacity_packets"], *measured, *ages, *totals)
    lines: list[tuple[Sequence[object], Mapping[str, Any]]] = []
    for port in snapshot.managed_ports:
        if snapshot.program_of(port.switch) is program:
            got = {one.name: port.estimate(one.name) for one in measured}
            oldest_s = max((round(one["age_s"], 1) for one in got.values() if one), default=None)
            values = {**vars(port), **port.values, "age_s": oldest_s}
            values |= {name: one.get("value") for name, one in got.items()}
            objects = snapshot.objects_of(port, kind) if kind is not None else ()
            lines += [((*port.place, one.key), values | dict(one.values)) for one in objects]
            if not objects:
                lines.append(((*port.place, *([""] if kind else [])), values))
    _print(program.ports_title, ("switch", "port", *([kind.short] if kind else [])), columns, lines, wide)


@on_switches
def measure_command(*, targets: Targets, as_json: JsonOption = False) -> None:
    """Show what the running loop measures of each managed port: bandwidth, delay, …

    Examples: `fairlane ports measure`, `fairlane ports measure --json`
    """
    with _reading(targets, None, 0.0) as snapshot:
        if snapshot.loop_error is not None:
            raise FairlaneError.from_json(snapshot.loop_error)
        if snapshot.loop is None:
            raise ErrorCode.NO_LOOP("ports are measured by the running loop: start it with `fairlane run`")
        if as_json:
            rows = [row for row in snapshot.ports if row.measured is not None]
            print_json([{"switch": row.switch, "port": row.port, **(row.measured or {})} for row in rows])
        else:
            _print_measured(snapshot)


def _print_measured(snapshot: Snapshot) -> None:
    """One line a value: with how much it may be wrong, how many observations it is of, and how old the last one is."""
    columns = ("switch", "port", "what", "value", "± 95 %", "observations", "age", "by")
    found = [(port, snapshot.program_of(port.switch)) for port in snapshot.ports]
    lines = [line for port, program in found for line in _lines(port, program)]
    print_table("measured", columns, lines, empty="nothing yet")
    needs = {program.measuring_needs: None for program in snapshot.programs.values() if program.measuring_needs}
    if any(line[3] == "-" for line in lines):
        say(". ".join(["-: not known yet", *needs]))


def _lines(port: PortRow, program: Program) -> Iterator[tuple[object, ...]]:
    row: dict[str, Any] = {**(port.measured or {})}
    for column in program.measured:
        if column.name not in row:
            continue
        value, source = row[column.name], row.get(f"{column.quantity}_source")
        by = column.source if source is None else program.meanings.get(source, source)
        several: dict[str, Any] = {"": value} if value is None or "value" in value else value
        for key, one in several.items():
            cells = ("-",) * 4
            if one is not None:
                texts = (text_of(column, one[name]) for name in ("value", "uncertainty"))
                cells = (*texts, one["count"], f"{one['age_s']:.1f} s")
            yield *port.place, f"{column.title} of {key}" if key else column.title, *cells, by or "-"


LAST_EVENTS = 5


@on_switches
def describe_command(
    port: PortArgument,
    interval: IntervalOption = RATES_OVER,
    *,
    targets: Targets,
    as_json: JsonOption = False,
) -> None:
    """Show all that is known of one port: the port and its queues, settings, measurements, objects of the program, drops, last events.

    Examples: `fairlane describe s1:3`, `fairlane describe s1:3 --json`
    """
    from fairlane_controller.cli.ports import (
        PolledPort,
        poll_ports,
        print_ports,
        print_queues,
    )  # with all that changes a port

    name, number = targets.one(port).name, known_port(targets, port)

    async def read() -> tuple[Snapshot, list[PolledPort]]:
        snapshot = need_switches(await _read(targets, port, interval))
        polled, problems = await poll_ports(targets, snapshot, queues=True)
        need_none(problems)
        return snapshot, polled

    one, polled = asyncio.run(read())
    found = [row for row in polled if row[1].port == number]
    if not one.ports and not found:
        raise ErrorCode.UNKNOWN_NAME(f"{name} has no port {number}")
    path, wanted = log_of(targets.run), EventFilter(switches=(name,), port=number)
    events = read_events(path, wanted, LAST_EVENTS, check_names=False) if path is not None else []
    if as_json:
        settings = next((row.to_json() for _, row, _ in found), None)
        print_json({**one.to_json(), "port": settings, "events": events})
        return
    print_ports(found)
    print_queues(found)
    for program in one.programs.values():
        _print_ports(one, program, wide=True)
    _print_measured(one)
    for kind in one.kinds:
        if not kind.brief:
            _print_objects(one, kind, one.objects_of_kind(kind.name), wide=True)
    _print_drops(one)
    print_events(events, False)


FOLLOW_PERIOD_S = 0.2
DEFAULT_LAST = 20
MAX_LAST = 1_000_000


def log_command(
    port: OnlyPortArgument = None,
    last: Annotated[int, typer.Option("--last", help="So many.", metavar="N")] = DEFAULT_LAST,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")] = False,
    event: Annotated[list[str] | None, typer.Option("--event", "-e", help="Only these; repeatable.", metavar="EVENT")] = None,
    switch: SwitchOption = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Show the event log: time (UTC), place, event, and why. With --json all inputs; with --follow one JSON object a line.

    Examples: `fairlane log`, `fairlane log --last 100 --event threshold`, `fairlane log s1:3 -f`
    """
    if not 1 <= last <= MAX_LAST:
        raise out_of_range("--last", last, 1, MAX_LAST)
    folder = find_folder(state)
    if switch or (port and port.switch):
        switch = [endpoint.name for endpoint in resolve(str(folder), switch, port).endpoints]
    wanted = EventFilter(tuple(event or ()), tuple(switch or ()), port.number if port else None)
    path = folder / EVENTS_FILE
    if not path.exists() and not follow:
        raise bad_file(f"there is no event log yet ({path}): `fairlane run` writes one")
    # The tail begins before the file is read, so that no event falls between them.
    tail = EventTail(path, first=0)
    if follow:
        tail.new()
    events = read_events(path, wanted, last, check_names=not follow)
    if not follow:
        if as_json:
            print_json(events)
        elif not events:
            say("no such event", error=True)
        else:
            print_events(events, False)
        return
    print_events(events, as_json)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            print_events([one for one in tail.new() if wanted.takes(one) and one not in events], as_json)
            events = []  # only what came while the file was read can be there twice
            time.sleep(FOLLOW_PERIOD_S)


def print_events(events: list[dict[str, Any]], as_json: bool) -> None:
    """A line for each event, for people or as JSON."""
    for event in events:
        if as_json:
            print(json.dumps(event, default=str), flush=True)
        else:
            say(line_of(event))
