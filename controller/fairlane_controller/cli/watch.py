# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch`: the live view in a terminal; one frame, or JSON lines, for pipes."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer
from rich.console import Console

from fairlane_controller.cli.output import PIPE_COLUMNS, error_console
from fairlane_controller.cli.targets import JsonOption, StateOption, SwitchOption, Targets, resolve
from fairlane_controller.errors import out_of_range
from fairlane_controller.live.events import EventTail
from fairlane_controller.live.source import LiveSource
from fairlane_controller.live.terminal.app import watch_live, watch_once
from fairlane_controller.live.terminal.frame import render
from fairlane_controller.state.events import EVENTS_FILE
from fairlane_controller.units import parse_time

MIN_INTERVAL_S, MAX_INTERVAL_S = 0.1, 60.0


def parse_interval(text: str) -> float:
    """Seconds of `--interval`; BAD_INPUT or OUT_OF_RANGE."""
    interval_s = parse_time(text, "--interval")
    if not MIN_INTERVAL_S <= interval_s <= MAX_INTERVAL_S:
        raise out_of_range("--interval", text, f"{MIN_INTERVAL_S:g}s", f"{MAX_INTERVAL_S:g}s")
    return interval_s


def watch_command(
    state: StateOption = None,
    switch: SwitchOption = None,
    interval: Annotated[str, typer.Option("--interval", "-i", help="Between two pictures.", metavar="TIME")] = "0.5s",
    once: Annotated[bool, typer.Option("--once", help="One picture, then end.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Watch queues, thresholds, flows, VCs, drops and decisions live. Keys: q quit, p pause, arrows choose the port, a all ports.

    Without a terminal it prints one picture. With --json: one snapshot a line, until Ctrl-C, or one with --once.
    """
    interval_s = parse_interval(interval)
    targets = resolve(state, switch)
    console = Console(highlight=False)
    if as_json:
        asyncio.run(_json_lines(targets, interval_s, once))
        return
    if not once and not console.is_terminal:
        error_console.print(
            "fairlane watch: standard output is no terminal: one picture (as with --once)", markup=False
        )
        once = True
    asyncio.run(_once(targets, interval_s) if once else _live(targets, console, interval_s))


def _tail(targets: Targets) -> EventTail:
    return EventTail(targets.folder / EVENTS_FILE if targets.folder else None, first=300)


async def _once(targets: Targets, interval_s: float) -> None:
    async with LiveSource(targets) as source:
        view = await watch_once(source, _tail(targets), interval_s)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_COLUMNS)
    console.print(render(view, console.width, None))


async def _live(targets: Targets, console: Console, interval_s: float) -> None:
    async with LiveSource(targets) as source:
        await watch_live(source, _tail(targets), console, interval_s)


async def _json_lines(targets: Targets, interval_s: float, once: bool) -> None:
    """The first line has rates too: it is the second snapshot."""
    async with LiveSource(targets) as source:
        await source.snapshot()
        while True:
            await asyncio.sleep(interval_s)
            print(json.dumps((await source.snapshot()).to_json(), default=str), flush=True)
            if once:
                return
