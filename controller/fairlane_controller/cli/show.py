# SPDX-License-Identifier: Apache-2.0
"""`fairlane flows`, `measure` and `table`: what the switches and the loop know."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from fairlane_controller.cli.live_options import IntervalOption, OnlyPortOption, check_port, parse_interval
from fairlane_controller.cli.measuring import measure, print_measured
from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.cli.targets import JsonOption, StateOption, SwitchOption, resolve
from fairlane_controller.live.model import FlowRow
from fairlane_controller.live.pictures import need_switches, take_two
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.names import resolve_name
from fairlane_controller.units import format_per_s, format_rate, format_time, parse_time, rounded


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
    interval_s = parse_interval(interval)
    targets = resolve(state, switch)
    check_port(targets, port)
    snapshot, _ = asyncio.run(take_two(targets, interval_s))
    rows = [flow for flow in need_switches(snapshot, "qthresh").flows if port is None or flow.port == port]
    if as_json:
        by_slot = sorted(rows, key=lambda flow: (flow.switch, flow.slot))
        print_json([{**flow.to_json(), "rate_bps": flow.offered_bps} for flow in by_slot])
        return
    quiet = 0
    if interval_s and not every:
        sending = [flow for flow in rows if flow.offered_bps or flow.waiting_packets]
        quiet = len(rows) - len(sending)
        rows = sending
    rows.sort(key=lambda flow: (flow.switch, flow.port or 0, -(flow.goodput_bps or 0.0), flow.slot))
    columns = (
        "switch",
        "port",
        "flow",
        "waiting",
        "Qthresh",
        "weight",
        "offered",
        "goodput",
        "dropped",
        "idle",
    )
    table = [
        (f.switch, f.port, f.flow, f.waiting_packets, f.qthresh_packets, None if f.weight is None else f"{f.weight:.4g}", format_rate(rounded(f.offered_bps)), format_rate(rounded(f.goodput_bps)), _dropped(f), format_time(rounded(f.idle_s)))
        for f in rows
    ]  # fmt: skip
    empty = "no flow sends now" if quiet else "no flow has an entry (the loop makes them: `fairlane run`)"
    print_table("flows (packets that wait, and may; frames' bits)", columns, table, empty=empty)
    if quiet:
        console.print(f"{quiet} more with nothing to send (--all shows them)", markup=False)


def _dropped(flow: FlowRow) -> str:
    return (
        f"{flow.dropped_packets} ({format_per_s(flow.drops_per_s)})" if flow.drops_per_s else str(flow.dropped_packets)
    )


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
