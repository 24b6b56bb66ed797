# SPDX-License-Identifier: Apache-2.0
"""`fairlane flows`, `measure` and `p4 table`: what the switches and the loop know."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from fairlane_controller.cli.options import (
    RATES_OVER,
    IntervalOption,
    JsonOption,
    OnlyPortArgument,
    StateOption,
    SwitchOption,
)
from fairlane_controller.cli.output import console, print_json, print_table, shows_wide
from fairlane_controller.cli.targets import known_port, resolve
from fairlane_controller.live.model import ObjectRow, Snapshot
from fairlane_controller.live.pictures import need_objects, take_two
from fairlane_controller.live.shown import heading_of, text_of
from fairlane_controller.program.rows import DROPS, GOODPUT, QUEUE, Kind
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.names import resolve_name


def flows_command(
    port: OnlyPortArgument = None,
    interval: IntervalOption = RATES_OVER,
    every: Annotated[bool, typer.Option("--all", "-a", help="Also those that send nothing now.")] = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what the program keeps for each flow or VC: what waits of each, how much may, what it gets, what is refused.

    Rates are over --interval. In a terminal only those that send are shown, the fastest first; --json has all. What the columns
    mean is said in docs/metrics.md.

    Examples: `fairlane flows`, `fairlane flows --all --interval 0`, `fairlane flows s1:3 --json`
    """
    targets = resolve(state, switch, port)
    number = known_port(targets, port)
    snapshot, _ = asyncio.run(take_two(targets, interval))
    kinds = [kind for kind in need_objects(snapshot).kinds if not kind.brief]
    rows = {
        kind.name: [row for row in snapshot.objects_of_kind(kind.name) if number is None or row.port == number]
        for kind in kinds
    }
    if as_json:
        print_json([row.to_json() for kind in kinds for row in rows[kind.name]])
        return
    for kind in kinds:
        print_objects(snapshot, kind, rows[kind.name], hides_idle=bool(interval) and not every)


def print_objects(snapshot: Snapshot, kind: Kind, rows: list[ObjectRow], *, hides_idle: bool) -> None:
    """Those of a port that send most first; `hides_idle`: only those that have something to send."""
    busy = rows
    if hides_idle:
        signs = [column.name for column in kind.columns if column.plot in (QUEUE, GOODPUT, DROPS)]
        busy = [row for row in rows if any(row[sign] for sign in signs)]
        goodput = kind.plotted(GOODPUT)
        if goodput is not None:
            busy.sort(key=lambda row: (row.switch, row.port or 0, -(row[goodput.name] or 0.0)))
    columns = [column for column in kind.columns if shows_wide() or not column.wide]
    table = [
        (row.switch, row.port, snapshot.named(row.key), *(text_of(one, row[one.name]) for one in columns))
        for row in busy
    ]
    empty = f"no {kind.name} sends now" if rows else f"no {kind.name} has an entry"
    print_table(kind.title, ("switch", "port", kind.name, *map(heading_of, columns)), table, empty=empty)
    if len(busy) < len(rows):
        console.print(f"{len(rows) - len(busy)} more with nothing to send (--all shows them)", markup=False)


def table_command(
    name: Annotated[str | None, typer.Argument(help="Table, short or full name; without: list the tables.")] = None,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tables of the switches, or show the entries of one.

    Examples: `fairlane p4 table`, `fairlane p4 table policy --json`
    """
    targets = resolve(state, switch)

    async def work() -> list[dict[str, Any]]:
        lists = await asyncio.gather(*(_table(e, name) for e in targets.endpoints))
        return [row for rows in lists for row in rows]

    rows = asyncio.run(work())
    if as_json:
        print_json(rows)
    elif name is None:
        print_table("tables", ("switch", "table", "size"), [(r["switch"], r["table"], r["size"]) for r in rows])
    else:
        cells = [(r["switch"], r["match"], r["action"]) for r in rows]
        print_table(f"table {name}", ("switch", "match", "action"), cells, empty="no entry")


async def _table(endpoint: Endpoint, name: str | None) -> list[dict[str, Any]]:
    async with SwitchClient(endpoint) as client:
        if name is None:
            sizes = {t.alias: t.size for t in client.switch.p4info.tables}
            return [{"switch": endpoint.name, "table": t, "size": sizes[t]} for t in client.table_names()]
        schema = client.switch.p4info
        if client.has_pipeline:
            name = resolve_name("table", name, [table.name for table in schema.tables])
        return [
            {
                "switch": endpoint.name,
                "match": entry.match_str(schema),
                "action": entry.action_str(schema),
                "priority": entry.priority,
            }
            for entry in await client.read_table(name)
        ]
