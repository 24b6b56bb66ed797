# SPDX-License-Identifier: Apache-2.0
"""`fairlane gfr vc add|set|delete|list`: customers' aggregates with minimum rates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from fairlane import ErrorCode, FairlaneError
from fairlane.cli import App, DryRunOption, JsonOption, StateOption, print_json, print_table
from fairlane.text import format_rate

from .changes import gfr_topology, make
from .config import VcConfig, VcMatch
from .entries import port_shares
from .paths import vcs_of
from .plan import GfrStore

vc_app = App(help="VCs: add, change, remove, list. A refused change leaves every switch as it was.")

NameArgument = Annotated[str, typer.Argument(help="Name of the VC.", metavar="NAME")]
McrOption = Annotated[str | None, typer.Option("--mcr", help="Minimum rate, in bits on the line.", metavar="RATE")]
PcrOption = Annotated[
    str | None, typer.Option("--pcr", help="Peak rate; above it frames are dropped at the edge.", metavar="RATE")
]
MbsOption = Annotated[int | None, typer.Option("--mbs", help="Longest burst within MCR, in cells.", metavar="CELLS")]
MfsOption = Annotated[int | None, typer.Option("--mfs", help="Longest IP packet, in bytes.", metavar="BYTES")]
WeightOption = Annotated[float | None, typer.Option("--weight", "-w", help="Share of what is left after all MCR.")]
MarkOption = Annotated[
    str | None, typer.Option("--mark-dscp", help="DSCP of frames above MCR; '' leaves it.", metavar="DSCP")
]
MatchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--match", "-m", help="Its packets at a switch, e.g. s1,ingress_port=1,src=10.0.1.0/24 (also dst, vlan, dscp); repeatable.", metavar="MATCH"
    ),
]  # fmt: skip
EdgeOption = Annotated[
    list[str] | None, typer.Option("--edge", help="Where it is policed: s1:1 (switch, ingress port); repeatable.")
]
PathOption = Annotated[
    list[str] | None, typer.Option("--path", help="Managed port that it crosses: s1:3; repeatable; default by routes.")
]


def _command(op: str, done: str, help: str) -> Callable[..., None]:
    """`vc add` and `vc set`: the same options, and one request of the control socket."""

    def command(
        name: NameArgument,
        mcr: McrOption = None,
        match: MatchOption = None,
        edge: EdgeOption = None,
        path: PathOption = None,
        pcr: PcrOption = None,
        mbs: MbsOption = None,
        mfs: MfsOption = None,
        weight: WeightOption = None,
        mark_dscp: MarkOption = None,
        dry_run: DryRunOption = False,
        state: StateOption = None,
        as_json: JsonOption = False,
    ) -> None:
        given: dict[str, Any] = {
            "mcr": mcr,
            "pcr": pcr,
            "mbs_cells": mbs,
            "mfs_bytes": mfs,
            "weight": weight,
            "mark_dscp": mark_dscp,
            "match": [_match(text) for text in match] if match else None,
            "edge": [_place("--edge", text, "ingress_port") for text in edge] if edge else None,
            "path": [_place("--path", text, "port") for text in path] if path else None,
        }
        changes = {key: value for key, value in given.items() if value is not None}
        if op == "add" and mcr is None:
            raise FairlaneError(ErrorCode.BAD_INPUT, "vc add needs --mcr, the minimum rate")
        if not changes:
            raise FairlaneError(ErrorCode.BAD_INPUT, "vc set needs at least one option of what to change (see --help)")
        what = {"vc": {"name": name, **changes}} if op == "add" else {"name": name, "changes": changes}
        make(state, {"op": f"vc_{op}", **what}, f"VC {name} {done}", dry_run=dry_run, as_json=as_json)

    command.__doc__ = help
    return command


_ADD = """Add a VC: admitted when the sum of all MCR on its path stays within the capacity. It needs --mcr.

Example: `fairlane gfr vc add gold --mcr 6Mbit --match s1,ingress_port=3,src=10.0.3.0/24 --edge s1:3`
"""
_SET = """Change a VC; what is not given stays. Its meters and shares change without an instant without them.

Example: `fairlane gfr vc set gold --mcr 7Mbit --dry-run`
"""
vc_app.command("add")(_command("add", "added", _ADD))
vc_app.command("set")(_command("set", "changed", _SET))


@vc_app.command("delete")
def delete(
    names: Annotated[list[str], typer.Argument(help="Names of the VCs.", metavar="NAME...")],
    dry_run: DryRunOption = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove VCs: their frames are of no VC from then on, and the others share their rate.

    Example: `fairlane gfr vc delete gold`
    """
    request = {"op": "vc_del", "names": names}
    make(state, request, f"VC {', '.join(names)} removed", dry_run=dry_run, as_json=as_json)


@vc_app.command("list")
def list_(state: StateOption = None, as_json: JsonOption = False) -> None:
    """List the VCs of the configuration in force, with what (3) gives them when all are active.

    Example: `fairlane gfr vc list`
    """
    run = gfr_topology(state).need_run()
    config = GfrStore(run.folder).state.config
    w: dict[str, dict[str, float]] = {vc.name: {} for vc in config.vcs}
    for place, vcs in vcs_of(config, run).items():
        port = config.port(*place)
        for share in port_shares(port, vcs) if port is not None else ():
            w[share.vc][f"{place[0]}:{place[1]}"] = share.w_bps
    if as_json:
        print_json([{**vc.model_dump(mode="json"), "w_bps": w[vc.name]} for vc in config.vcs])
        return
    columns = ("VC", "MCR", "PCR", "MBS", "MFS", "packets", "policed at", "w at")
    rows = [
        (vc.name, format_rate(vc.mcr), format_rate(vc.pcr) if vc.pcr else "capacity", f"{vc.mbs_cells} cells", f"{vc.mfs_bytes} B", _packets(vc), ", ".join(f"{e.switch}:{e.ingress_port}" for e in vc.edge) or "nowhere", ", ".join(f"{at} {format_rate(rate)}" for at, rate in w[vc.name].items()))
        for vc in config.vcs
    ]  # fmt: skip
    print_table(
        "VCs", columns, rows, empty="there is none; add one with `fairlane gfr vc add` or `fairlane gfr apply FILE`"
    )


def _packets(vc: VcConfig) -> str:
    return "; ".join(_match_text(match) for match in vc.match)


def _match_text(match: VcMatch) -> str:
    said = {
        "ingress_port": match.ingress_port,
        "src": match.src,
        "dst": match.dst,
        "vlan": match.vlan,
        "dscp": match.dscp,
    }
    return ",".join([match.switch, *(f"{key}={value}" for key, value in said.items() if value)])


def _match(text: str) -> dict[str, Any]:
    """`s1,ingress_port=1,src=10.0.1.0/24` as the file has it; which keys there are, the configuration says."""
    first, *rest = [part.strip() for part in text.split(",")]
    made: dict[str, Any] = {"switch": first.removeprefix("switch=")}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals or not first:
            raise FairlaneError(
                ErrorCode.BAD_INPUT,
                f"--match {text!r}: must be SWITCH,KEY=VALUE,… e.g. s1,ingress_port=1,src=10.0.1.0/24",
            )
        made[key] = int(value) if value.isdecimal() else value
    return made


def _place(option: str, text: str, key: str) -> dict[str, Any]:
    switch, colon, number = text.rpartition(":")
    if not colon or not switch or not number.isdecimal():
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{option} {text!r}: must be SWITCH:PORT, e.g. s1:1")
    return {"switch": switch, key: int(number)}
