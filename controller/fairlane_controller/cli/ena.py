# SPDX-License-Identifier: Apache-2.0
"""`fairlane ena show|mark|unmark`: ports that are the far side of a satellite link, and what came of it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.cli.targets import JsonOption, StateOption, SwitchOption, Targets, resolve
from fairlane_controller.ena.apply import far_side_ports, set_far_side
from fairlane_controller.ena.reads import read_far_side
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import SwitchClient

ena_app = typer.Typer(help="ENA: the switch names corrupted segments for receivers that cannot.", no_args_is_help=True)

PortArgument = Annotated[int, typer.Argument(help="Port of the switch.", metavar="PORT")]


@ena_app.command("show")
def show(state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False) -> None:
    """Show each far-side port: segments that were named, ACKs that carried a name, and what went without."""
    targets = resolve(state, switch)

    async def work() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for endpoint in targets.endpoints:
            async with SwitchClient(endpoint) as client:
                rows += await read_far_side(client)
        return rows

    rows = asyncio.run(work())
    if as_json:
        print_json(rows)
        return
    columns = (
        "switch",
        "port",
        "corrupted, named",
        "by their gap",
        "ACKs that name one",
        "no room",
        "no place",
        "dropped",
    )
    print_table("far sides of satellite links", columns, [tuple(r.values()) for r in rows], empty="no port is one")


@ena_app.command("mark")
def mark(port: PortArgument, state: StateOption = None, switch: SwitchOption = None) -> None:
    """Make a port of one switch the far side of a satellite link, while it carries traffic."""
    _change(resolve(state, switch), port, present=True)


@ena_app.command("unmark")
def unmark(port: PortArgument, state: StateOption = None, switch: SwitchOption = None) -> None:
    """Let a port of one switch be as any other again."""
    _change(resolve(state, switch), port, present=False)


def _change(targets: Targets, port: int, *, present: bool) -> None:
    if len(targets.endpoints) != 1:
        names = ", ".join(endpoint.name for endpoint in targets.endpoints)
        raise FairlaneError(ErrorCode.BAD_INPUT, f"a port is one switch's: name it with --switch (there are {names})")
    (endpoint,) = targets.endpoints
    known = (
        [one.port for s in targets.run.switches if s.name == endpoint.name for one in s.ports] if targets.run else []
    )
    if present and known and port not in known:
        numbers = ", ".join(str(number) for number in known)
        raise FairlaneError(ErrorCode.BAD_INPUT, f"switch {endpoint.name} has no port {port}; valid: {numbers}")

    async def work() -> int:
        async with SwitchClient(endpoint, write=True) as client:
            held = await far_side_ports(client)
            return await set_far_side(client, sorted({*held, port} if present else {*held} - {port}))

    written = asyncio.run(work())
    what = "a far side" if present else "no far side"
    console.print(f"{endpoint.name}: port {port} is {what}; {written} entries written", markup=False)
