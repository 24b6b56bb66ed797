# SPDX-License-Identifier: Apache-2.0
"""`fairlane log`: why did what change when; the control loop's event log."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Annotated, Any

import typer
from rich.text import Text

from fairlane_controller.cli.complete import complete_event, complete_object
from fairlane_controller.cli.options import JsonOption, OnlyPortArgument, StateOption, SwitchOption
from fairlane_controller.cli.output import console, error_console, print_json
from fairlane_controller.cli.targets import resolve
from fairlane_controller.errors import ErrorCode, FairlaneError, out_of_range
from fairlane_controller.live.events import EventFilter, EventTail, parse_since, place_of, read_events, sentence_of
from fairlane_controller.state.events import EVENTS_FILE
from fairlane_controller.state.run_state import find_folder

FOLLOW_PERIOD_S = 0.2
DEFAULT_LAST = 20
MAX_LAST = 1_000_000

_STYLES = {
    "threshold": "green", "tuned": "cyan", "decision": "dim", "link_changed": "magenta", "error": "red", "disconnected": "red",
    "restored": "yellow", "took_over": "yellow", "changed": "bold",
}  # fmt: skip


def log_command(
    port: OnlyPortArgument = None,
    last: Annotated[int | None, typer.Option("--last", help=f"So many; default {DEFAULT_LAST}, all with --since.", metavar="N")] = None,
    since: Annotated[str | None, typer.Option("--since", help="5m, 90s, 1h ago; or 2026-01-31T12:03:07 UTC.", metavar="TIME")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")] = False,
    event: Annotated[list[str] | None, typer.Option("--event", "-e", help="Only these; repeatable.", metavar="EVENT", autocompletion=complete_event)] = None,
    of: Annotated[str | None, typer.Option("--object", help="Only of this object of a port, by its name.", metavar="NAME", autocompletion=complete_object)] = None,
    switch: SwitchOption = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Show the event log: time (UTC), place, event, and why. With --json all inputs; with --follow one JSON object a line.

    Examples: `fairlane log`, `fairlane log --since 5m --event threshold`, `fairlane log s1:3 -f`
    """
    if last is not None and not 1 <= last <= MAX_LAST:
        raise out_of_range("--last", last, 1, MAX_LAST)
    folder = find_folder(state)
    if switch or (port and port.switch):
        switch = [endpoint.name for endpoint in resolve(str(folder), switch, port).endpoints]
    after = parse_since(since) if since is not None else None
    wanted = EventFilter(tuple(event or ()), tuple(switch or ()), port.number if port else None, of, after)
    path = folder / EVENTS_FILE
    if not path.exists() and not follow:
        raise FairlaneError(ErrorCode.BAD_FILE, f"there is no event log yet ({path}): `fairlane run` writes one")
    # The tail begins before the file is read, so that no event falls between them.
    tail = EventTail(path, first=0)
    if follow:
        tail.new()
    count = last if last is not None or since is not None else DEFAULT_LAST
    events = read_events(path, wanted, count, check_names=not follow)
    if as_json and not follow:
        print_json(events)
        return
    print_events(events, as_json)
    if not events and not follow:
        error_console.print("no such event", markup=False)
    if follow:
        with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
            asyncio.run(_follow(tail, wanted, events, as_json))


def print_events(events: list[dict[str, Any]], as_json: bool) -> None:
    for event in events:
        if as_json:
            print(json.dumps(event, default=str), flush=True)
            continue
        name = str(event["event"])
        line = Text()
        line.append(str(event.get("time", ""))[11:23] + "  ", "dim")
        line.append(f"{place_of(event):<10} ")
        line.append(f"{name:<14} ", _STYLES.get(name, ""))
        line.append(("(dry run) " if event.get("dry_run") else "") + sentence_of(event))
        console.print(line, soft_wrap=True)


async def _follow(tail: EventTail, wanted: EventFilter, told: list[dict[str, Any]], as_json: bool) -> None:
    while True:
        print_events([event for event in tail.new() if wanted.takes(event) and event not in told], as_json)
        told = []  # only what came while the file was read can be there twice
        await asyncio.sleep(FOLLOW_PERIOD_S)
