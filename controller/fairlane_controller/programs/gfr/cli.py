# SPDX-License-Identifier: Apache-2.0
"""`fairlane gfr show|set|apply`: the ports that GFR manages, what they see, and the configuration as a file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer
from fairlane import ErrorCode, FairlaneError, unknown_name
from fairlane.cli import (
    App,
    DryRunOption,
    JsonOption,
    OnlyPortArgument,
    StateOption,
    SwitchOption,
    console,
    need_changes,
    need_program,
    options_of,
    print_json,
    print_table,
    take_two,
)
from fairlane.text import counted, format_rate

from .cli_vc import VCS, vc_app
from .config import GfrPort, read_config
from .plan import GfrStore

app = App(help="GFR: minimum rates by VC on managed egress ports.")
app.add_typer(vc_app, name="vc")


@app.command("apply")
def apply(
    file: Annotated[Path, typer.Argument(help="Configuration: ports and VCs (docs/concepts/gfr.md).", metavar="FILE")],
    dry_run: DryRunOption = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the switches do what FILE says, all or nothing; VCs that stay keep their slots, queues and counters.

    Example: `fairlane gfr apply gfr.toml`
    """
    config = read_config(file).model_dump(mode="json")
    done = f"{file} applied: {counted(len(config['ports']), 'port')}, {counted(len(config['vcs']), 'VC')}"
    VCS.make(state, lambda data: data.update(config), str(file), done, from_file=True, dry_run=dry_run, as_json=as_json)


@app.command("set")
@options_of(GfrPort)
def set_(
    changes: dict[str, Any],
    port: OnlyPortArgument = None,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change managed ports while they carry traffic: no frame that waits is lost.

    Examples: `fairlane gfr set --scheme dfba`, `fairlane gfr set s1:6 --lbo 1000cells --hbo 3000cells`
    """
    need_changes("gfr set", changes)
    done = ", ".join(f"{key} {value}" for key, value in changes.items())
    targets = VCS.targets(state, switch, port)
    name = targets.one("with --switch they are").name if switch or (port and port.switch) else None

    def edit(data: dict[str, Any]) -> None:
        for row in chosen_ports(data["ports"], name, port.number if port else None):
            row.update(changes)

    VCS.make(state, edit, "gfr set", done, dry_run=dry_run, as_json=as_json)


def chosen_ports(ports: list[dict[str, Any]], switch: str | None, number: int | None) -> list[dict[str, Any]]:
    """The managed ports of a switch and a number, None for all. Raises UNKNOWN_NAME."""
    if not ports:
        problem = "no port is managed yet: give the ports with `fairlane gfr apply FILE`"
        raise FairlaneError(ErrorCode.UNKNOWN_NAME, problem)
    found = [row for row in ports if switch in (None, row["switch"]) and number in (None, row["port"])]
    if not found:
        named = ":".join(str(part) for part in (switch, number) if part is not None)
        raise unknown_name("port", named, [f"{row['switch']}:{row['port']}" for row in ports])
    return found


@app.command("show")
def show(
    state: StateOption = None,
    as_json: JsonOption = False,
    config: Annotated[bool, typer.Option("--in-force", help="The configuration in force instead, as JSON.")] = False,
) -> None:
    """Show each managed port (QT, N, scheme) and each VC on it: w_i, r_i, Q_i, frames accepted and refused by verdict.

    Examples: `fairlane gfr show`, `fairlane gfr show --in-force`
    """
    targets = VCS.targets(state)
    if config:
        print_json(GfrStore(targets.folder).state.config.model_dump(mode="json"))
        return
    snapshot = need_program(asyncio.run(take_two(targets, 0))[0], "gfr")
    ports: list[dict[str, Any]] = [
        {**row.to_json(), "vcs": [one.to_json() for one in snapshot.objects if (one.switch, one.port) == (row.switch, row.port)]}
        for row in snapshot.managed_ports
    ]  # fmt: skip
    if as_json:
        print_json(ports)
        return
    if not ports:
        console.print("no port is managed: give ports and VCs with `fairlane gfr apply FILE`", markup=False)
    for row in ports:
        bounds = ", ".join(f"{title} {row[key]}" for key, title in _BOUNDS.items() if row[key])
        title = f"{row['switch']}:{row['port']}: {row['scheme']} ({row['queues']}), QT {_cell(row['waiting_cells'])} cells of {bounds}, N {_cell(row['active_vcs'])}"
        print_table(title, _COLUMNS, [_line(vc) for vc in row["vcs"]], empty="no VC")


_BOUNDS = {"lbo_cells": "LBO", "hbo_cells": "HBO", "capacity_cells": "QMAX"}
_COLUMNS = ("VC", "active", "slot", "MCR", "w_i", "r_i", "Q_i", "arrived", "accepted", "refused", "verdicts (CLP 0+1)")


def _line(vc: dict[str, Any]) -> tuple[object, ...]:
    return (
        vc["vc"],
        {None: "-", True: "yes", False: "no"}[vc["active"]],
        vc["slot"],
        format_rate(vc["mcr_bps"]),
        format_rate(vc["w_bps"]),
        format_rate(vc["rate_bps"]),
        _cell(vc["waiting_cells"]),
        vc["arrived_packets"],
        vc["accepted_packets"],
        vc["refused_packets"],
        ", ".join(f"{name} {v.get('clp0', 0)}+{v.get('clp1', 0)}" for name, v in vc["verdicts"].items()) or "-",
    )


def _cell(value: int | None) -> str:
    return "-" if value is None else str(value)
