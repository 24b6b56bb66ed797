# SPDX-License-Identifier: Apache-2.0
"""`fairlane status`: is everything as it should be? Loop and backup, switches, managed ports, how old the measurements are, the last event."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from fairlane_controller.cli.options import JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import console, print_json, print_table, shows_wide
from fairlane_controller.cli.signals import make_end_event
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.types import Seconds, time_option
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.events import EventTail, place_of, sentence_of
from fairlane_controller.live.model import PortRow, Snapshot, SwitchRow
from fairlane_controller.live.shown import heading_of, text_of
from fairlane_controller.live.source import LiveSource
from fairlane_controller.program.contract import Program
from fairlane_controller.program.rows import Column
from fairlane_controller.state.ask import ask_backup
from fairlane_controller.state.events import EVENTS_FILE
from fairlane_controller.units import counted, format_size, format_time, rounded

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
    seen = asyncio.run(_watch(targets, interval, as_json) if watch else _look_once(targets))
    if not watch:
        if seen.snapshot.loop_error is not None:
            raise FairlaneError.from_json(dict(seen.snapshot.loop_error))
        if as_json:
            print_json(seen.to_json())
        else:
            _print_status(seen)
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


async def _look_once(targets: Targets) -> _Seen:
    async with LiveSource(targets) as source:
        return await _look(source, targets.folder)


async def _watch(targets: Targets, interval_s: float, as_json: bool) -> _Seen:
    """Draw what is seen in the terminal's other screen, or print it, again and again until SIGTERM or ^C; returns what was seen last."""
    ended, screen = make_end_event(), Console(highlight=False)
    draws = screen.is_terminal and not as_json
    with Live(console=screen, screen=True, auto_refresh=False) if draws else contextlib.nullcontext() as live:
        async with LiveSource(targets) as source:
            while True:
                seen = await _look(source, targets.folder)
                if as_json:
                    print(json.dumps(seen.to_json(), default=str), flush=True)
                elif live is None:
                    _print_status(seen)
                else:
                    with console.capture() as printed:
                        _print_status(seen)
                    live.update(Text.from_ansi(printed.get()), refresh=True)
                with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
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
    columns = [
        column for column in (kind.columns if kind is not None else program.columns) if shows_wide() or not column.wide
    ]
    measured = program.measured[:MAX_MEASURED]
    ages = ["age"] if measured else []
    of_ports = ("capacity", *(one.title for one in measured), *ages, "sent", "dropped")
    rows: list[tuple[object, ...]] = []
    for port in snapshot.managed_ports:
        if snapshot.program_of(port.switch) is not program:
            continue
        objects = snapshot.objects_of(port, kind) if kind is not None else ()
        if not objects:
            key = ("",) if kind is not None else ()
            rows.append((port.switch, port.port, *key, *_cells(columns, port.values), *_port_cells(port, measured)))
        for number, one in enumerate(objects):
            of_port = _port_cells(port, measured) if number == 0 else ("",) * len(of_ports)
            rows.append((port.switch, port.port, one.key, *_cells(columns, one.values), *of_port))
    if rows:
        label = (kind.label or kind.name,) if kind is not None else ()
        print_table(program.ports_title, ("switch", "port", *label, *map(heading_of, columns), *of_ports), rows)


def _print_hosts(snapshot: Snapshot, port: PortRow) -> None:
    """Who sends to whom through a port."""
    pairs = [f"{pair} ({times})" if times > 1 else pair for pair, times in snapshot.hosts_of(port).items()]
    if pairs:
        more = f" and {len(pairs) - MAX_PAIRS} more" if len(pairs) > MAX_PAIRS else ""
        _say(f"{port.switch}:{port.port} carries {', '.join(pairs[:MAX_PAIRS])}{more}")


def _cells(columns: list[Column], values: Mapping[str, Any]) -> list[str]:
    return [text_of(column, values.get(column.name)) for column in columns]


def _port_cells(port: PortRow, measured: Sequence[Column]) -> tuple[object, ...]:
    """What is of a whole port; the age is that of the oldest measurement that is shown."""
    estimates = [(port.measured or {}).get(column.name) for column in measured]
    ages = [float(one["age_s"]) for one in estimates if one]
    return (
        port.capacity_packets,
        *(text_of(one, estimate and estimate["value"]) for one, estimate in zip(measured, estimates, strict=True)),
        *([format_time(round(max(ages), 1)) if ages else None] if measured else []),
        format_size(rounded(port.sent_bytes)),
        port.dropped_packets,
    )
