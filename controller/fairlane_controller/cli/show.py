# SPDX-License-Identifier: Apache-2.0
"""`fairlane status`, `flows`, `measure` and `table`: what the switches and the loop know."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from fairlane_controller.cli.measuring import measure
from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.cli.reads import read_flows, read_status
from fairlane_controller.cli.targets import JsonOption, StateOption, SwitchOption, resolve
from fairlane_controller.errors import ErrorCode
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.units import format_rate, format_size, format_time, parse_time


def status_command(state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False) -> None:
    """Show the loop, the switches, their managed ports and counters. Exit code 4 when a switch does not answer."""
    result = asyncio.run(read_status(resolve(state, switch)))
    if as_json:
        print_json(result)
    else:
        _print_status(result)
    if not all(s["reachable"] for s in result["switches"]):
        raise typer.Exit(ErrorCode.SWITCH_UNREACHABLE.exit_code)


def _print_status(result: dict[str, Any]) -> None:
    loop = "runs" if result["loop_running"] else "does not run"
    console.print(f"topology {result['topology'] or '-'}; control loop {loop}", markup=False)
    if result["backup"]:
        away = [entry["switch"] for entry in result["backup"]["switches"] if entry["error"]]
        note = f", but does not reach {', '.join(away)}" if away else ""
        console.print(f"backup: process {result['backup']['pid']} waits to take over{note}", markup=False)
    entries: list[dict[str, Any]] = result["loop"] or []
    for entry in entries:
        if entry["error"]:
            console.print(f"loop: {entry['error']['message']}", markup=False)
    rows: list[tuple[object, ...]] = []
    for switch in result["switches"]:
        if "error" in switch:
            console.print(f"{switch['switch']}: {switch['error']['message']}", markup=False)
        elif switch["program"] is None:
            console.print(f"{switch['switch']}: no program yet; run `fairlane init`", markup=False)
        elif "gfr_ports" in switch:
            ports = ", ".join(str(port) for port in switch["gfr_ports"]) or "none"
            console.print(
                f"{switch['switch']}: ready; ports that GFR manages: {ports}; see `fairlane gfr show`", markup=False
            )
        elif "ena_ports" in switch:
            ports = ", ".join(str(port) for port in switch["ena_ports"]) or "none"
            console.print(
                f"{switch['switch']}: ready; far sides of satellite links: {ports}; see `fairlane ena show`",
                markup=False,
            )
        elif not switch["ports"]:
            console.print(f"{switch['switch']}: ready, no managed port", markup=False)
        for port in switch["ports"]:
            schemes = ", ".join(f"{c}:{s}" for c, s in port["schemes"].items())
            packets = ", ".join("-" if q is None else str(q) for q in port["qthresh_packets"].values())
            drops = port["drops"]
            rows.append(
                (switch["switch"], port["port"], schemes, packets, port["admitted_packets"], format_size(port["admitted_bytes"]), drops["qthresh"], drops["port_full"], port["collisions"])
            )  # fmt: skip
    columns = (
        "switch",
        "port",
        "class:scheme",
        "Qthresh",
        "admitted",
        "bytes",
        "drop qthresh",
        "drop full",
        "collisions",
    )
    if rows:
        print_table("managed ports", columns, rows)


def flows_command(
    state: StateOption = None,
    switch: SwitchOption = None,
    interval: Annotated[str, typer.Option("--interval", "-i", help="Also the rate over this time, e.g. 1s.", metavar="TIME")] = "0",
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Show the flows that have an entry: slot, packets and bytes that arrived, packets refused, time idle."""
    interval_s = parse_time(interval, "--interval")
    rows = asyncio.run(read_flows(resolve(state, switch), interval_s))
    if as_json:
        print_json(rows)
        return
    columns = ["switch", "slot", "flow", "packets", "bytes", "dropped", "idle"]
    if interval_s:
        columns.append("rate")
    table = [
        (r["switch"], r["slot"], r["flow"], r["packets"], format_size(r["bytes"]), r["dropped_packets"], format_time(r["idle_s"]))
        + ((format_rate(r["rate_bps"]),) if interval_s else ())
        for r in rows
    ]  # fmt: skip
    print_table("flows", columns, table, empty="no flow has an entry (the loop makes them)")


def _plain(value: float) -> str:
    return f"{value:g}"


def measure_command(
    state: StateOption = None,
    switch: SwitchOption = None,
    duration: Annotated[str, typer.Option("--for", help="Without a loop: listen this long.", metavar="TIME")] = "3s",
    as_json: JsonOption = False,
) -> None:
    """Show BW, T_res, L_D and N_C of each managed port: from the running loop, or by listening for a while."""
    rows = asyncio.run(measure(resolve(state, switch), parse_time(duration, "--for")))
    if as_json:
        print_json(rows)
        return

    def cell(row: dict[str, Any], key: str, form: Any) -> str:
        got = row[key]
        if got is None:
            return "-"
        doubt = "" if got["uncertainty"] is None else f" ± {form(got['uncertainty'])}"
        return f"{form(got['value'])}{doubt} ({got['count']}, {got['age_s']:.1f} s)"

    print_table(
        "measured: value ± 95 % (observations, age)",
        ("switch", "port", "BW", "T_res", "L_D", "N_C", "waiting"),
        [
            (r["switch"], r["port"], cell(r, "bw_bps", format_rate), cell(r, "t_res_s", format_time), cell(r, "l_d_bytes", format_size), cell(r, "n_c", _plain), r["waiting_packets"])
            for r in rows
        ],
        empty="no port is managed",
    )  # fmt: skip


def table_command(
    name: Annotated[str | None, typer.Argument(help="Table, short or full name; without: list the tables.")] = None,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tables of the switches, or show the entries of one."""
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
        return [
            {
                "switch": endpoint.name,
                "match": entry.match_str(schema),
                "action": entry.action_str(schema),
                "priority": entry.priority,
            }
            for entry in await client.read_table(name)
        ]
