# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch`: the live view in a terminal, or JSON lines for pipes."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Annotated

import typer
from rich.console import Console

from fairlane_controller.cli.lazy import LazyCommand, lazy_app
from fairlane_controller.cli.options import JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import console
from fairlane_controller.cli.signals import make_end_event
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.types import Seconds, time_option
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.events import EventTail
from fairlane_controller.live.pictures import snapshots
from fairlane_controller.live.source import LiveSource
from fairlane_controller.live.terminal import watch
from fairlane_controller.state.events import EVENTS_FILE

PeriodOption = Annotated[
    Seconds, time_option("--interval", "-i", help="Between two snapshots.", at_least=0.1, at_most=60)
]
PERIOD = Seconds(0.5)
_HERE, _ELSEWHERE = "fairlane_controller.cli", "Elsewhere than in the terminal"


COMMANDS = [
    LazyCommand("web", f"{_HERE}.web:web_command", "The same as a live page in the browser.", _ELSEWHERE),
    LazyCommand("metrics", f"{_HERE}.web:metrics_command", "Prometheus metrics of all of it.", _ELSEWHERE),
    LazyCommand("export", f"{_HERE}.export:export_command", "A time series in a file: CSV, Parquet, JSON lines.", _ELSEWHERE),
]  # fmt: skip
watch_app = lazy_app(COMMANDS, invoke_without_command=True, no_args_is_help=False)


@watch_app.callback()
def watch_command(
    ctx: typer.Context,
    state: StateOption = None,
    switch: SwitchOption = None,
    interval: PeriodOption = PERIOD,
    once: Annotated[bool, typer.Option("--once", help="With --json: one snapshot, then end.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Watch ports, queues, objects of the program, drops and decisions live. Keys: q quit, p pause, arrows choose the port, a all ports.

    With --json: one snapshot a line, until Ctrl-C.
    """
    if ctx.invoked_subcommand is not None:
        return
    targets = resolve(state, switch)
    if as_json:
        asyncio.run(_print_snapshots(targets, interval, once))
    elif once or not console.is_terminal:
        text = "watch draws in a terminal; elsewhere use `fairlane status`, or `fairlane watch --json`"
        raise FairlaneError(ErrorCode.BAD_INPUT, text)
    else:
        tail = EventTail(targets.folder / EVENTS_FILE if targets.folder else None, first=300)
        asyncio.run(watch(LiveSource(targets), tail, Console(highlight=False), interval))


async def _print_snapshots(targets: Targets, interval_s: float, once: bool) -> None:
    async with contextlib.aclosing(snapshots(targets, interval_s, make_end_event())) as taken:
        await anext(taken)  # the next one has rates
        async for snapshot in taken:
            print(json.dumps(snapshot.to_json(), default=str), flush=True)
            if once:
                return
