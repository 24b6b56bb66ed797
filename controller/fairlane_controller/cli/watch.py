# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch`: the live view in a terminal; one frame, or JSON lines, for pipes."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer
from rich.console import Console

from fairlane_controller.cli.lazy import LazyCommand, lazy_app
from fairlane_controller.cli.options import JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import console, error_console
from fairlane_controller.cli.signals import make_end_event
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.types import Seconds, time_option
from fairlane_controller.live.events import EventTail
from fairlane_controller.live.source import LiveSource
from fairlane_controller.live.terminal import render, watch_live, watch_once
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
    once: Annotated[bool, typer.Option("--once", help="One frame, then end.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Watch ports, queues, objects of the program, drops and decisions live. Keys: q quit, p pause, arrows choose the port, a all ports.

    Without a terminal it prints one frame. With --json: one snapshot a line, until Ctrl-C, or one with --once.
    """
    if ctx.invoked_subcommand is not None:
        return
    if not once and not as_json and not console.is_terminal:
        error_console.print("fairlane watch: standard output is no terminal: one frame (as with --once)", markup=False)
        once = True
    asyncio.run(_watch(resolve(state, switch), interval, once, as_json))


async def _watch(targets: Targets, interval_s: float, once: bool, as_json: bool) -> None:
    tail = EventTail(targets.folder / EVENTS_FILE if targets.folder else None, first=300)
    async with LiveSource(targets) as source:
        if as_json:
            await source.snapshot()  # the next one has rates
            while True:
                await asyncio.sleep(interval_s)
                print(json.dumps((await source.snapshot()).to_json(), default=str), flush=True)
                if once:
                    return
        elif once:
            console.print(render(await watch_once(source, tail, interval_s), console.width))
        else:
            await watch_live(source, tail, Console(highlight=False), interval_s, make_end_event())
