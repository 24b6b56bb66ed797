# SPDX-License-Identifier: Apache-2.0
"""`fairlane flows`, `vcs`, `measure` and `table`: what the switches and the loop know."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from fairlane_controller.cli.live_options import IntervalOption, OnlyPortOption, check_port, parse_interval
from fairlane_controller.cli.measuring import measure, print_measured
from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.cli.targets import JsonOption, StateOption, SwitchOption, Targets, resolve
from fairlane_controller.live.pictures import need_switches, take_two
from fairlane_controller.live.values import heading_of, text_of
from fairlane_controller.program.rows import DROPS, GOODPUT, QUEUE
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.names import resolve_name
from fairlane_controller.units import parse_time


def flows_command(
    interval: IntervalOption = "1s",
    port: OnlyPortOption = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="Also flows that send nothing now.")] = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the flows that have an entry: what waits of each, how much may (its threshold), what arrives, what is admitted, what is refused.

    Rates are over --interval. In a terminal only flows that send are shown, the fastest first; --json has all, by slot.

    Examples: `fairlane flows`, `fairlane flows --all --interval 0`, `fairlane flows -s s1 -p 3 --json`
    """
    _show_objects("flow", resolve(state, switch), interval, port, every=every, as_json=as_json)


def vcs_command(
    interval: IntervalOption = "1s",
    port: OnlyPortOption = None,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show each VC at each managed port: its MCR and w_i, what it gets (r_i), what waits (Q_i), what is refused, and whether MCR is met.

    MCR met: `yes`, `no` (with the part it gets), `asks less` (it sends less and loses nothing), `idle`. Changes: `fairlane vc`.

    Examples: `fairlane vcs`, `fairlane vcs --interval 5s`, `fairlane vcs --json`
    """
    _show_objects("vc", resolve(state, switch), interval, port, every=True, as_json=as_json)


def _show_objects(name: str, targets: Targets, interval: str, port: int | None, *, every: bool, as_json: bool) -> None:
    """The objects of a kind: those of a port that send most first; without `every` only those that have something to send."""
    interval_s = parse_interval(interval)
    check_port(targets, port)
    snapshot, _ = asyncio.run(take_two(targets, interval_s))
    rows = [row for row in need_switches(snapshot, name).of_kind(name) if port is None or row.port == port]
    if as_json:
        print_json([row.to_json() for row in rows])
        return
    kind = next(kind for kind in snapshot.kinds if kind.name == name)
    busy = rows
    if interval_s and not every:
        signs = [column.name for column in kind.columns if column.plot in (QUEUE, GOODPUT, DROPS)]
        busy = [row for row in rows if any(row[sign] for sign in signs)]
        goodput = kind.plotted(GOODPUT)
        if goodput is not None:
            busy.sort(key=lambda row: (row.switch, row.port or 0, -(row[goodput.name] or 0.0)))
    columns = [column for column in kind.columns if not column.wide]
    table = [(row.switch, row.port, row.key, *(text_of(one, row[one.name]) for one in columns)) for row in busy]
    empty = f"no {name} sends now" if rows else f"no {name} has an entry"
    print_table(kind.title, ("switch", "port", name, *map(heading_of, columns)), table, empty=empty)
    if len(busy) < len(rows):
        console.print(f"{len(rows) - len(busy)} more with nothing to send (--all shows them)", markup=False)


def measure_command(
    state: StateOption = None,
    switch: SwitchOption = None,
    duration: Annotated[str, typer.Option("--for", help="Without a loop: listen this long.", metavar="TIME")] = "3s",
    as_json: JsonOption = False,
) -> None:
    """Show BW, T_res, τ, T_ACK, L_D and N_C of each managed port: from the running loop, or by listening for a while.

    Examples: `fairlane measure`, `fairlane measure --for 5s --json`
    """
    rows = asyncio.run(measure(resolve(state, switch), parse_time(duration, "--for")))
    if as_json:
        print_json(rows)
        return
    print_measured(rows)


def table_command(
    name: Annotated[str | None, typer.Argument(help="Table, short or full name; without: list the tables.")] = None,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tables of the switches, or show the entries of one.

    Examples: `fairlane table`, `fairlane table policy --json`
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
