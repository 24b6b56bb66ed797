# SPDX-License-Identifier: Apache-2.0
"""`fairlane status`: is everything as it should be? Loop and backup, switches, managed ports, how old the measurements are, the last event."""

from __future__ import annotations

import asyncio
from typing import Any

import typer

from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.cli.reads import read_status
from fairlane_controller.cli.targets import JsonOption, StateOption, SwitchOption, resolve
from fairlane_controller.errors import ErrorCode
from fairlane_controller.live.events import place_of, sentence_of
from fairlane_controller.program.registry import load_program
from fairlane_controller.units import counted, format_rate, format_size, format_time, rounded

Row = dict[str, Any]


def status_command(state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False) -> None:
    """Show the loop and its backup, the switches, each managed port with its scheme, threshold, measurements and drops, and the last event.

    Exit code 4 when a switch does not answer, or TLS fails; what the others say is shown all the same.

    Examples: `fairlane status`, `fairlane status -s s1 --json`
    """
    result = asyncio.run(read_status(resolve(state, switch)))
    if as_json:
        print_json(result)
    else:
        _print_status(result)
    if not all(s["reachable"] for s in result["switches"]):
        raise typer.Exit(ErrorCode.SWITCH_UNREACHABLE.exit_code)


def _say(text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)


def _print_status(result: Row) -> None:
    programs = {s["program_kind"] for s in result["switches"] if s["program_kind"]}
    known = any(s["reachable"] for s in result["switches"])
    kinds = ", ".join(sorted(programs)) or ("no program" if known else "program unknown")
    about = [f"topology {result['topology']}" if result["topology"] else "switches by address", result["target"], kinds]
    _say(f"{', '.join(str(part) for part in about if part)}; control loop {_loop(result)}")
    _print_backup(result["backup"])
    entries: list[Row] = result["loop"] or []
    for entry in entries:
        if entry["error"]:
            _say(f"loop: {entry['error']['message']}")
    ports: list[tuple[object, ...]] = []
    for switch in result["switches"]:
        _print_switch(switch)
        for port in switch["ports"]:
            ports += _port_rows(switch["switch"], port)
    columns = (
        "switch", "port", "class", "scheme", "mode", "Qthresh", "weight", "capacity", "BW", "T_res", "age", "admitted", "dropped", "collisions",
    )  # fmt: skip
    if ports:
        print_table("managed ports", columns, ports)
    event = result["last_event"]
    if event:
        place = place_of(event)
        what = " ".join(part for part in (place, event["event"]) if part)
        why = sentence_of(event)
        _say(f"last event {str(event.get('time', ''))[11:19]} UTC {what}{f': {why}' if why else ''}")


def _loop(result: Row) -> str:
    if not result["loop_running"]:
        return "does not run: thresholds stay as they are (start it with `fairlane run`)"
    entries: list[Row] = result["loop"] or []
    away = [entry["switch"] for entry in entries if not entry.get("connected", True)]
    reaches = (
        f"does not reach {', '.join(away)}" if away else f"reaches {len(entries)} of {counted(len(entries), 'switch')}"
    )
    flows = [int(entry["flows"]) for entry in entries if entry.get("flows") is not None]
    return f"runs, {reaches}" + (f", {counted(sum(flows), 'flow')}" if flows else "")


def _print_backup(backup: Row | None) -> None:
    if not backup:
        return
    away = [entry["switch"] for entry in backup["switches"] if entry["error"]]
    note = f", but does not reach {', '.join(away)}" if away else ""
    _say(f"backup: process {backup['pid']} waits to take over{note}")


def _print_switch(switch: Row) -> None:
    name = switch["switch"]
    if "error" in switch:
        _say(f"{name}: {switch['error']['message']}")
    elif switch["program"] is None:
        _say(f"{name}: no program yet; run `fairlane init`")
    elif "program_ports" in switch:
        kind, ports = switch["program_kind"], ", ".join(map(str, switch["program_ports"])) or "none"
        _say(f"{name}: ready; {load_program(kind).ports_title}: {ports}; see `fairlane {kind} show`")
    elif not switch["ports"]:
        _say(f"{name}: ready, no managed port")


def _dropped(drops: Row) -> str:
    said = [
        f"{drops[key]} {name}" for key, name in (("qthresh", "by threshold"), ("port_full", "queue full")) if drops[key]
    ]
    return ", ".join(said) or "0"


def _port_rows(switch: str, port: Row) -> list[tuple[object, ...]]:
    """One row a class; what is of the whole port stands in the first."""
    measured: Row = port["measured"] or {}
    bw: Row | None = measured.get("bw_bps")
    t_res: Row | None = measured.get("t_res_s")
    ages = [float(found["age_s"]) for found in (bw, t_res) if found]
    of_port: tuple[object, ...] = (
        format_size(rounded(port["admitted_bytes"])),
        _dropped(port["drops"]),
        port["collisions"],
    )
    line = (
        format_rate(rounded(bw["value"], 4)) if bw else None,
        format_time(rounded(t_res["value"])) if t_res else None,
        format_time(round(max(ages), 1)) if ages else None,
    )
    rows: list[tuple[object, ...]] = []
    for number, (name, scheme) in enumerate(port["schemes"].items()):
        first = number == 0
        weight = port["weights"].get(name)
        rows.append(
            (
                switch, port["port"], name, scheme, port["modes"].get(name), port["qthresh_packets"].get(name),
                None if weight is None else f"{weight:g}", port["capacity_packets"], *(line if first else ("", "", "")),
                *(of_port if first else ("", "", "")),
            )
        )  # fmt: skip
    return rows
