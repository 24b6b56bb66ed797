# SPDX-License-Identifier: Apache-2.0
"""`fairlane ena show|mark|unmark`: ports that are the far side of a satellite link, and what came of it."""

from __future__ import annotations

import asyncio
from typing import Any

from fairlane import Config, ErrorCode, FairlaneError, change_set, load_program, read_rows
from fairlane.changes import Sites
from fairlane.cli import (
    App,
    DryRunOption,
    JsonOption,
    Planned,
    PortArgument,
    StateOption,
    SwitchOption,
    Targets,
    carry_out,
    console,
    print_json,
    print_table,
    resolve,
)
from fairlane.switch import SwitchClient, check_port
from fairlane.text import counted

app = App(help="ENA: the switch names corrupted segments for receivers that cannot.")
ENA = load_program("ena")


@app.command("show")
def show(state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False) -> None:
    """Show each far-side port: segments that were named, ACKs that carried a name, and what went without.

    Example: `fairlane ena show`
    """
    targets = resolve(state, switch)

    async def work() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for endpoint in targets.endpoints:
            async with SwitchClient(endpoint) as client:
                found = await read_rows(client, ENA)
            rows += [{"switch": endpoint.name, "port": row.port, **row.values} for row in found]
        return rows

    rows = asyncio.run(work())
    if as_json:
        print_json(rows)
        return
    columns = ("switch", "port", *(column.title for column in ENA.columns))
    print_table("far sides of satellite links", columns, [tuple(r.values()) for r in rows], empty="no port is one")


@app.command("mark")
def mark(port: PortArgument, dry_run: DryRunOption = False, state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False) -> None:  # fmt: skip
    """Make a port of one switch the far side of a satellite link, while it carries traffic.

    Example: `fairlane ena mark s1:3`
    """
    _change(resolve(state, switch, port), port.number, far_side=True, dry_run=dry_run, as_json=as_json)


@app.command("unmark")
def unmark(port: PortArgument, dry_run: DryRunOption = False, state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False) -> None:  # fmt: skip
    """Let a port of one switch be as any other again.

    Example: `fairlane ena unmark s1:3`
    """
    _change(resolve(state, switch, port), port.number, far_side=False, dry_run=dry_run, as_json=as_json)


def _change(targets: Targets, port: int, *, far_side: bool, dry_run: bool, as_json: bool) -> None:
    endpoint = targets.one("a port is")
    problems = targets.run.unknown_place("", endpoint.name, check_port(port)) if targets.run and far_side else []
    if problems:
        raise FairlaneError(ErrorCode.BAD_INPUT, problems[0].removeprefix(".port: "))
    config = Config({(endpoint.name, port): ENA.Settings.model_validate({"far_side": far_side})})
    plan = ENA.plan(config, targets.run)

    async def planned(sites: Sites) -> Planned:
        return Planned(await change_set(ENA, plan, {endpoint.name: await sites.reader(endpoint.name)}))

    made = carry_out(targets, planned, dry_run=dry_run, as_json=as_json)
    if made is None:
        return
    written = sum(made[0].written.values())
    if as_json:
        print_json({"switch": endpoint.name, "port": port, "far_side": far_side, "written": written})
        return
    what = "a far side" if far_side else "no far side"
    console.print(f"{endpoint.name}: port {port} is {what}; {counted(written, 'entry')} written", markup=False)
