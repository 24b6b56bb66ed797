# SPDX-License-Identifier: Apache-2.0
"""`fairlane ena show|mark|unmark`: ports that are the far side of a satellite link, and what came of it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from fairlane_controller import history
from fairlane_controller.cli.dry import DryResult, DryRunOption, dry_result, tell_dry
from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.cli.targets import JsonOption, StateOption, SwitchOption, Targets, resolve
from fairlane_controller.cli.typed import typed
from fairlane_controller.ena.apply import far_side_ports, set_far_side
from fairlane_controller.ena.reads import read_far_side
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.dry import DryClient
from fairlane_controller.units import counted

ena_app = typer.Typer(help="ENA: the switch names corrupted segments for receivers that cannot.", no_args_is_help=True)

PortArgument = Annotated[int, typer.Argument(help="Port of the switch.", metavar="PORT")]


@ena_app.command("show")
def show(state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False) -> None:
    """Show each far-side port: segments that were named, ACKs that carried a name, and what went without.

    Example: `fairlane ena show`
    """
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
def mark(port: PortArgument, dry_run: DryRunOption = False, state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False) -> None:  # fmt: skip
    """Make a port of one switch the far side of a satellite link, while it carries traffic.

    Example: `fairlane ena mark 3 -s s1`
    """
    _change(resolve(state, switch), port, present=True, dry_run=dry_run, as_json=as_json)


@ena_app.command("unmark")
def unmark(port: PortArgument, dry_run: DryRunOption = False, state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False) -> None:  # fmt: skip
    """Let a port of one switch be as any other again.

    Example: `fairlane ena unmark 3 -s s1`
    """
    _change(resolve(state, switch), port, present=False, dry_run=dry_run, as_json=as_json)


def _change(targets: Targets, port: int, *, present: bool, dry_run: bool, as_json: bool) -> None:
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

    async def put(client: SwitchClient) -> tuple[list[int], int]:
        held = await far_side_ports(client)
        return held, await set_far_side(client, sorted({*held, port} if present else {*held} - {port}))

    async def dry() -> DryResult:
        async with DryClient(endpoint) as client:
            await put(client)
            return dry_result(client)

    async def work() -> int:
        async with history.changing(targets.folder, typed()) as made, SwitchClient(endpoint, write=True) as client:
            held, written = await put(client)
            made.undo = [{"op": "far_side_put", "switch": endpoint.name, "ports": held}]
        return written

    if dry_run:
        tell_dry([asyncio.run(dry())], as_json)
        return
    written = asyncio.run(work())
    if as_json:
        print_json({"switch": endpoint.name, "port": port, "far_side": present, "written": written})
        return
    what = "a far side" if present else "no far side"
    console.print(f"{endpoint.name}: port {port} is {what}; {counted(written, 'entry')} written", markup=False)
