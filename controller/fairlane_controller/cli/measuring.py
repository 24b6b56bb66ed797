# SPDX-License-Identifier: Apache-2.0
"""Measurements for `fairlane ports measure`: the loop's where one runs, else a listening time of our own; and how they are shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fairlane_controller.cli.options import JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.types import Seconds, time_option
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.shown import text_of
from fairlane_controller.program.contract import Program
from fairlane_controller.program.registry import check_program, find_program, load_program
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import LISTENER_ID, Endpoint, SwitchClient
from fairlane_controller.switch.difference import read_entries

LISTEN = Seconds(3)


def measure_command(
    state: StateOption = None,
    switch: SwitchOption = None,
    duration: Annotated[
        Seconds, time_option("--for", help="Without a loop: listen this long.", at_least=0.1, at_most=600)
    ] = LISTEN,
    as_json: JsonOption = False,
) -> None:
    """Show what is measured of each managed port (bandwidth, delay, …): from the running loop, or by listening for a while.

    Examples: `fairlane ports measure`, `fairlane ports measure --for 5s --json`
    """
    rows, programs = asyncio.run(measure(resolve(state, switch), duration))
    if as_json:
        print_json(rows)
        return
    print_measured(rows, programs)


Measured = tuple[list[dict[str, Any]], dict[str, Program]]
"""One row a managed port, and the program of each switch."""


async def measure(targets: Targets, listen_s: float) -> Measured:
    """What a running loop measures, else what comes in `listen_s` seconds."""
    folder = targets.loop_folder
    if folder is not None:
        program = load_program(targets.need_run().program)
        names = {e.name: program for e in targets.endpoints}
        return [row for row in await ask(folder, {"op": "measure"}) if row["switch"] in names], names
    found = await asyncio.gather(*(_listen(one, targets.run, listen_s) for one in targets.endpoints))
    programs = {one.name: program for one, (_, program) in zip(targets.endpoints, found, strict=True)}
    return [row for rows, _ in found for row in rows], programs


async def _listen(endpoint: Endpoint, run: RunState | None, listen_s: float) -> tuple[list[dict[str, Any]], Program]:
    states = next((one.ports for one in run.switches if one.name == endpoint.name), ()) if run is not None else ()
    rates = {port.port: float(port.rate_bps) for port in states if port.rate_bps}
    t_d = run is None or run.target != "bmv2"
    async with SwitchClient(endpoint, write=True, election_id=LISTENER_ID, require_primary=False) as client:
        program = _measuring(client, load_program(run.program) if run is not None else None)
        ports = program.ports_of(endpoint.name, await read_entries(client, program.tables))
        listen = program.load(program.listener)
        found = await listen(client, ports, rates, listen_s, includes_t_d=t_d)
    return [{"switch": endpoint.name, "port": port, **one} for port, one in found.items()], program


def _measuring(client: SwitchClient, program: Program | None) -> Program:
    """The switch's program; NO_LOOP or WRONG_PROGRAM where nobody can measure its ports without a loop."""
    tables = client.table_names()
    if program is not None:
        check_program(program, tables)
    program = program or find_program(tables)
    if program is not None and program.listener:
        return program
    if program is not None and program.control:
        raise FairlaneError(
            ErrorCode.NO_LOOP, f"ports of {program.name} are measured by the running loop: start it with `fairlane run`"
        )
    name = program.name if program is not None else client.program
    raise FairlaneError(ErrorCode.WRONG_PROGRAM, f"{client.endpoint} runs the program {name}, which measures nothing")


def print_measured(rows: list[dict[str, Any]], programs: Mapping[str, Program]) -> None:
    """One line a value: with how much it may be wrong, how many observations it is of, and how old the last one is."""
    columns = ("switch", "port", "what", "value", "± 95 %", "observations", "age", "by")
    lines = [line for row in rows for line in _lines(row, programs[row["switch"]])]
    print_table("measured", columns, lines, empty="no port is managed")
    if any(line[3] == "-" for line in lines):
        needs = {program.measuring_needs: None for program in programs.values() if program.measuring_needs}
        console.print(". ".join(["-: not known yet", *needs]), markup=False, soft_wrap=True)


def _lines(row: dict[str, Any], program: Program) -> Iterator[tuple[object, ...]]:
    """A port's; what is not known has a dash."""
    place = row["switch"], row["port"]
    for column in program.measured:
        if column.name not in row:
            continue
        value, source = row[column.name], column.source
        if (said := row.get(f"{column.quantity}_source")) is not None:
            source = program.meanings.get(said, said) or "-"
        several = isinstance(value, dict) and "value" not in value
        estimates: dict[str, Any] = {f" of {key}": one for key, one in value.items()} if several else {"": value}  # pyright: ignore[reportUnknownVariableType]
        for whose, one in estimates.items():
            cells = ("-", "-", "-", "-")
            if one is not None:
                texts = (text_of(column, one[key]) for key in ("value", "uncertainty"))
                cells = (*texts, one["count"], f"{one['age_s']:.1f} s")
            yield *place, column.title + whose, *cells, source
    if row.get("waiting_packets") is not None:
        yield *place, "waiting", f"{row['waiting_packets']} packets", "-", "-", "-", "reports"
