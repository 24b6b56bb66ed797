# SPDX-License-Identifier: Apache-2.0
"""`fairlane drops`: what was dropped where, why, and how fast."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from fairlane_controller.cli.options import (
    RATES_OVER,
    IntervalOption,
    JsonOption,
    OnlyPortArgument,
    StateOption,
    SwitchOption,
)
from fairlane_controller.cli.output import print_json, print_table
from fairlane_controller.cli.targets import known_port, resolve
from fairlane_controller.live.drop_list import DropLine, drop_lines
from fairlane_controller.live.pictures import need_switches, take_two
from fairlane_controller.units import format_per_s


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
    lines = [line for line in drop_lines(need_switches(after), before) if number is None or line.port == number]
    if now:
        lines = [line for line in lines if line.per_s]
    if as_json:
        print_json([line.to_json() for line in lines])
        return
    print_drops(lines, "nothing is dropped" if now else "nothing was dropped")


def print_drops(lines: list[DropLine], empty: str) -> None:
    """A line a reason."""
    with_object = any(line.object for line in lines)
    columns = ["switch", "port", *(["of"] if with_object else []), "reason", "packets", "rate", "by", "meaning"]
    rows = [
        [one.switch, one.port, *([one.object] if with_object else []), one.reason, one.packets, format_per_s(one.per_s), one.by, one.meaning]
        for one in lines
    ]  # fmt: skip
    print_table("drops", columns, rows, empty=empty, wrap=True)
