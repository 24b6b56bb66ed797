# SPDX-License-Identifier: Apache-2.0
"""`fairlane ports measure`: what the running loop measures."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from fairlane_controller.cli.options import JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.cli.targets import resolve
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.model import PortRow, Snapshot
from fairlane_controller.live.pictures import need_switches, take_two
from fairlane_controller.live.shown import text_of
from fairlane_controller.program.contract import Program


def measure_command(state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False) -> None:
    """Show what the running loop measures of each managed port: bandwidth, delay, …

    Examples: `fairlane ports measure`, `fairlane ports measure --json`
    """
    snapshot = need_switches(asyncio.run(take_two(resolve(state, switch), 0))[0])
    if snapshot.loop_error is not None:
        raise FairlaneError.from_json(dict(snapshot.loop_error))
    if snapshot.loop is None:
        raise FairlaneError(ErrorCode.NO_LOOP, "ports are measured by the running loop: start it with `fairlane run`")
    if as_json:
        rows = [row for row in snapshot.ports if row.measured is not None]
        print_json([{"switch": row.switch, "port": row.port, **(row.measured or {})} for row in rows])
    else:
        print_measured(snapshot)


def print_measured(snapshot: Snapshot) -> None:
    """One line a value: with how much it may be wrong, how many observations it is of, and how old the last one is."""
    columns = ("switch", "port", "what", "value", "± 95 %", "observations", "age", "by")
    found = [(port, snapshot.program_of(port.switch)) for port in snapshot.ports]
    lines = [line for port, program in found if program is not None for line in _lines(port, program)]
    print_table("measured", columns, lines, empty="nothing yet")
    needs = {program.measuring_needs: None for program in snapshot.programs.values() if program.measuring_needs}
    if any(line[3] == "-" for line in lines):
        console.print(". ".join(["-: not known yet", *needs]), markup=False, soft_wrap=True)


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
