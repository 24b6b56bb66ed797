# SPDX-License-Identifier: Apache-2.0
"""`fairlane log`: why did what change when; the control loop's event log."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Annotated, Any

import typer

from fairlane_controller.cli.options import JsonOption, OnlyPortArgument, StateOption, SwitchOption
from fairlane_controller.cli.output import print_json, say
from fairlane_controller.cli.targets import resolve
from fairlane_controller.errors import bad_file, out_of_range
from fairlane_controller.live.events import EventFilter, EventTail, line_of, read_events
from fairlane_controller.state.events import EVENTS_FILE
from fairlane_controller.state.run_state import find_folder

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
