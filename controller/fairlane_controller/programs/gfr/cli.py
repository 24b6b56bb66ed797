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
    need_program,
    print_json,
    print_table,
    take_two,
)
from fairlane.text import counted, format_rate, parse_count

from .changes import gfr_topology, make
from .cli_vc import vc_app
from .config import GfrScheme, Queues, RateAt, RateForm, read_config
from .plan import GfrStore

app = App(help="GFR: minimum rates by VC on managed egress ports.")
app.add_typer(vc_app, name="vc")


def _cells(text: str) -> int:
    return parse_count(text, "cells", "a threshold of cells")


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
    what = f"{file} applied: {counted(len(config['ports']), 'port')}, {counted(len(config['vcs']), 'VC')}"
    request = {"op": "gfr_apply", "config": config, "source": str(file)}
    make(state, request, what, dry_run=dry_run, as_json=as_json)


@app.command("set")
def set_(
    port: OnlyPortArgument = None,
    scheme: Annotated[str | None, typer.Option("--scheme", help=f"One of {', '.join(s.value for s in GfrScheme)}.")] = None,
    queues: Annotated[str | None, typer.Option("--queueing", help="wrr (a queue a VC) or fifo.")] = None,
    lbo: Annotated[int | None, typer.Option("--lbo", help="LBO, e.g. 1000 or 1000cells.", metavar="CELLS", parser=_cells)] = None,
    hbo: Annotated[int | None, typer.Option("--hbo", help="HBO, e.g. 1000 or 1000cells.", metavar="CELLS", parser=_cells)] = None,
    qmax: Annotated[int | None, typer.Option("--qmax", help="QMAX, e.g. 1000 or 1000cells.", metavar="CELLS", parser=_cells)] = None,
    capacity: Annotated[str | None, typer.Option("--capacity", help="C_GFR, bits on the line.", metavar="RATE")] = None,
    rate_form: Annotated[str | None, typer.Option("--rate-form", help="Of r_i: time or alpha.")] = None,
    rate_at: Annotated[str | None, typer.Option("--rate-at", help="Of r_i: acceptance or arrival.")] = None,
    rate_alpha: Annotated[float | None, typer.Option("--rate-alpha", help="Alpha of r_i with --rate-form alpha.")] = None,
    rate_period: Annotated[str | None, typer.Option("--rate-period", help="T of r_i with --rate-form alpha: 64us (between arrivals) to 1s.", metavar="TIME")] = None,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Change managed ports while they carry traffic: no frame that waits is lost.

    Examples: `fairlane gfr set --scheme dfba`, `fairlane gfr set s1:6 --lbo 1000cells --hbo 3000cells`
    """
    for kind, value, names in (
        ("scheme", scheme, [s.value for s in GfrScheme]),
        ("queues", queues, [q.value for q in Queues]),
        ("rate form", rate_form, [r.value for r in RateForm]),
        ("rate at", rate_at, [r.value for r in RateAt]),
    ):
        if value is not None and value not in names:
            raise unknown_name(kind, value, names)
    given: dict[str, Any] = {
        "scheme": scheme,
        "queues": queues,
        "lbo_cells": lbo,
        "hbo_cells": hbo,
        "qmax_cells": qmax,
        "capacity": capacity,
        "rate_form": rate_form,
        "rate_at": rate_at,
        "rate_alpha": rate_alpha,
        "rate_period": rate_period,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    if not changes:
        raise FairlaneError(ErrorCode.BAD_INPUT, "gfr set needs at least one option of what to change (see --help)")
    what = ", ".join(f"{key} {value}" for key, value in changes.items())
    targets = gfr_topology(state, switch, port)
    name = targets.one("with --switch they are").name if switch or (port and port.switch) else None
    request = {"op": "gfr_set", "switch": name, "port": port.number if port else None, "changes": changes}
    make(state, request, what, dry_run=dry_run, as_json=as_json)


@app.command("show")
def show(
    state: StateOption = None,
    as_json: JsonOption = False,
    config: Annotated[bool, typer.Option("--in-force", help="The configuration in force instead, as JSON.")] = False,
) -> None:
    """Show each managed port (QT, N, scheme) and each VC on it: w_i, r_i, Q_i, frames accepted and refused by verdict.

    Examples: `fairlane gfr show`, `fairlane gfr show --in-force`
    """
    targets = gfr_topology(state)
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
