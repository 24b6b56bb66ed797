# SPDX-License-Identifier: Apache-2.0
"""`fairlane gfr show|set|apply` and `fairlane gfr vc`: ports that GFR manages, VCs, and the configuration as a file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from fairlane import ErrorCode, FairlaneError, unknown_name
from fairlane.cli import (
    App,
    DryRunOption,
    JsonOption,
    Objects,
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

from .config import GfrPort, VcConfig, read_config
from .names import PROGRAM
from .plan import gfr_store
from .view import COLUMNS, VC


class Vcs(Objects):
    """The VCs of the configuration in force."""

    def list_(self, state: StateOption = None, as_json: JsonOption = False) -> None:
        """List the VCs of the configuration in force; `fairlane gfr show` has what they get.

        Example: `fairlane gfr vc list`
        """
        vcs = gfr_store(self.targets(state).folder).get().config.vcs
        if as_json:
            print_json([vc.model_dump(mode="json") for vc in vcs])
            return
        columns = ("VC", "MCR", "PCR", "MBS (cells)", "MFS (bytes)", "packets", "policed at")
        rows = [
            (
                vc.name,
                format_rate(vc.mcr),
                format_rate(vc.pcr) if vc.pcr else "capacity",
                vc.mbs_cells,
                vc.mfs_bytes,
                "; ".join(map(str, vc.match)),
                ", ".join(f"{edge.switch}:{edge.ingress_port}" for edge in vc.edge) or "nowhere",
            )
            for vc in vcs
        ]
        print_table("VCs", columns, rows, empty="there is none: `fairlane gfr vc add` adds one")


VCS = Vcs(PROGRAM, "vcs", VcConfig, "VC")
vc_app = VCS.app(
    "VCs: add, change, remove, list. A refused change leaves every switch as it was.",
    add="""Add a VC: admitted when the sum of all MCR on its path stays within the capacity. It needs --mcr.

    Example: `fairlane gfr vc add gold --mcr 6Mbit --match s1,ingress_port=3,src=10.0.3.0/24 --edge s1:3`
    """,
    set="""Change a VC; what is not given stays. Its meters and shares change without an instant without them.

    Example: `fairlane gfr vc set gold --mcr 7Mbit --dry-run`
    """,
    delete="""Remove VCs: their frames are of no VC from then on, and the others share their rate.

    Example: `fairlane gfr vc delete gold`
    """,
)
NO_PORT = "no port is managed: give ports and VCs with `fairlane gfr apply FILE`"

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
    targets, done = VCS.targets(state, switch, port), ", ".join(f"{key} {value}" for key, value in changes.items())
    name = targets.one("with --switch they are").name if switch or (port and port.switch) else None
    place = (name, port.number if port else None)

    def edit(data: dict[str, Any]) -> None:
        chosen = [row for row in data["ports"] if place[0] in (None, row["switch"]) and place[1] in (None, row["port"])]
        if not chosen:
            managed = [f"{row['switch']}:{row['port']}" for row in data["ports"]]
            if not managed:
                raise FairlaneError(ErrorCode.UNKNOWN_NAME, NO_PORT)
            raise unknown_name("port", ":".join(str(part) for part in place if part is not None), managed)
        for row in chosen:
            row.update(changes)

    VCS.make(state, edit, "gfr set", done, dry_run=dry_run, as_json=as_json)


@app.command("show")
def show(state: StateOption = None, as_json: JsonOption = False) -> None:
    """Show each managed port (QT, N, scheme) and each VC on it: w_i, r_i, Q_i, frames accepted and refused by verdict.

    Example: `fairlane gfr show`; `fairlane config show` has the configuration in force
    """
    snapshot = need_program(asyncio.run(take_two(VCS.targets(state), 0))[0], "gfr")
    ports: list[dict[str, Any]] = [
        {**row.to_json(), "vcs": [one.to_json() for one in snapshot.objects if (one.switch, one.port) == (row.switch, row.port)]}
        for row in snapshot.managed_ports
    ]  # fmt: skip
    if as_json:
        print_json(ports)
        return
    if not ports:
        console.print(NO_PORT, markup=False)
    for row in ports:
        about = ", ".join(f"{one.title} {_text(row[one.name])}" for one in COLUMNS)
        columns = [one for one in VC.columns if any(vc[one.name] is not None for vc in row["vcs"])]
        lines = [[vc["vc"], *(_text(vc[one.name]) for one in columns)] for vc in row["vcs"]]
        title = f"{row['switch']}:{row['port']}: {about}"
        print_table(title, ["VC", *(one.title for one in columns)], lines, empty="no VC")


def _text(value: Any) -> str:
    """A value for people: a rate, frames of CLP 0 and CLP 1 by verdict, or anything else."""
    if isinstance(value, dict):
        verdicts = cast("dict[str, dict[str, int]]", value)
        return ", ".join(f"{name} {by.get('clp0', 0)}+{by.get('clp1', 0)}" for name, by in verdicts.items()) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_rate(value) if isinstance(value, float) else "-" if value is None else str(value)
