# SPDX-License-Identifier: Apache-2.0
"""`fairlane threshold show|set|auto|scheme|plan`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from fairlane import ErrorCode, FairlaneError, unknown_name
from fairlane.changes import ask
from fairlane.cli import (
    App,
    ClassOption,
    DryRunOption,
    JsonOption,
    ObjectRow,
    OnlyPortArgument,
    PortRef,
    Snapshot,
    StateOption,
    SwitchOption,
    Targets,
    complete_port,
    need_program,
    print_json,
    print_table,
    resolve,
    split_port,
    take_two,
)
from fairlane.text import parse_count

from .changes import PolicyChange, change_policies
from .cli_plan import plan_command
from .model import DEFAULT_K
from .policies import Scheme

app = App(
    help="Thresholds and schemes of (egress port, class): show, set by hand, leave to the loop, plan on paper.",
)

WeightOption = Annotated[
    float | None, typer.Option("--weight", "-w", help="Weight of the class (1/256 to 255); default as it is.")
]


_WHICH = "The port stands first: s1:3, or 3 with --switch; default the managed one, or all."


def complete_scheme(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """Ports, and the schemes."""
    return [*complete_port(ctx, incomplete), *((one.value, "") for one in Scheme if one.value.startswith(incomplete))]


@app.command("show")
def show(
    port: OnlyPortArgument = None, state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False
) -> None:
    """Show the threshold, weight and mode of every managed port and class; of one port also why each flow has what it has.

    Examples: `fairlane threshold show`, `fairlane threshold show s1:3`, `fairlane threshold show -s s1 --json`
    """
    targets = resolve(state, switch, port)
    snapshot = need_program(asyncio.run(take_two(targets, 0))[0], "qthresh")
    rows = [_policy_of(snapshot, one) for one in snapshot.objects_of_kind("policy")]
    flows: list[dict[str, Any]] = []
    if port is not None:
        rows = [row for row in rows if row["port"] == port.number]
        flows = asyncio.run(_explain_flows(targets, [row["switch"] for row in rows], port.number))
    if as_json:
        print_json(rows if port is None else {"policies": rows, "flows": flows})
        return
    columns = ("switch", "port", "class", "scheme", "Qthresh", "weight", "effective", "mode", "capacity")
    print_table(
        "thresholds (packets)",
        columns,
        [
            (r["switch"], r["port"], r["class"], r["scheme"], r["qthresh_packets"], r["weight"], r["effective_packets"], r["mode"], r["capacity_packets"])
            for r in rows
        ],
        empty="no port is managed" if port is None else f"port {port.name} is not managed",
    )  # fmt: skip
    for row in rows:
        _print_no_lanes(row)
    for flow in flows:
        print(f"{flow['flow']} {flow['sentence']}")
    if port is not None and rows and not flows:
        print("no flow has a threshold of its own")


def _policy_of(snapshot: Snapshot, policy: ObjectRow) -> dict[str, Any]:
    """A policy as `--json` prints it."""
    assert policy.port is not None
    port = snapshot.port(policy.switch, policy.port)
    keys = ("scheme", "qthresh_packets", "weight", "effective_packets", "mode", "k", "lanes", "why_no_lanes")
    place = {"switch": policy.switch, "port": policy.port, "class": policy["traffic_class"]}
    return {**place, **{key: policy[key] for key in keys}, "capacity_packets": port and port.capacity_packets}


async def _explain_flows(targets: Targets, switches: Sequence[str], port: int) -> list[dict[str, Any]]:
    """Why each flow of a port has what it has, as the running loop says; nothing without a loop."""
    folder = targets.loop_folder
    if folder is None:
        return []
    asked = ({"op": "explain", "switch": switch, "port": port} for switch in dict.fromkeys(switches))
    return [row for rows in await asyncio.gather(*(ask(folder, one) for one in asked)) for row in rows]


@app.command("set")
def set_(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"{_WHICH} Packets of one flow that may wait: 5 or 5packets.",
            metavar="[PORT] [PACKETS]",
            autocompletion=complete_port,
        ),
    ] = None,
    traffic_class: ClassOption = 0,
    weight: WeightOption = None,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pin the threshold by hand: the loop leaves it alone until `threshold auto`. Without PACKETS: the weight only.

    PORT may be left out where one port is managed.

    Examples: `fairlane threshold set s1:3 5`, `fairlane threshold set 5`, `fairlane threshold set s1:3 5packets --weight 1.5`, `fairlane threshold set --weight 2 --dry-run`
    """
    port, given = split_port(words)
    packets = parse_count(given[0], "packets", "threshold") if given else None
    if packets is None and weight is None:
        raise FairlaneError(ErrorCode.BAD_INPUT, "threshold set needs PACKETS, --weight, or both")
    asked = PolicyChange(traffic_class, packets=packets, weight=weight)
    make(resolve(state, switch, port), port, asked, every=False, dry_run=dry_run, as_json=as_json)


@app.command("auto")
def auto(
    port: OnlyPortArgument = None,
    traffic_class: ClassOption = 0,
    k: Annotated[float | None, typer.Option("--k", help=f"Constant of eq. (9); default as it is, {DEFAULT_K:g} at first.")] = None,
    weight: WeightOption = None,
    self_tuning: Annotated[
        bool | None, typer.Option("--self-tuning/--model", help="Correct eq. (9) by the flows' goodputs, or eq. (9) alone; default as it is.")
    ] = None,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Let the control loop compute the threshold from its measurements; all managed ports unless one is named.

    Examples: `fairlane threshold auto`, `fairlane threshold auto s1:3 --k 1.95 --weight 1`
    """
    loop = {name: value for name, value in (("k", k), ("self_tuning", self_tuning)) if value is not None}
    asked = PolicyChange(traffic_class, auto=True, weight=weight, loop=loop)
    make(resolve(state, switch, port), port, asked, every=True, dry_run=dry_run, as_json=as_json)


@app.command("scheme")
def scheme(
    words: Annotated[
        list[str],
        typer.Argument(
            help=f"{_WHICH} drop_tail, qthresh or lanes.", metavar="[PORT] SCHEME", autocompletion=complete_scheme
        ),
    ],
    traffic_class: ClassOption = 0,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Choose the queue scheme of a class; all managed ports unless one is named.

    drop_tail: one queue. qthresh: one queue, a threshold for each flow. lanes: a queue for each flow, as long as its threshold; the port's scheduler
    must be drr or wrr (`fairlane ports set s1:3 --scheduler drr --queues 4096`), else the flows share one queue as with qthresh.

    Examples: `fairlane threshold scheme qthresh`, `fairlane threshold scheme s1:3 lanes`
    """
    names = [one.value for one in Scheme]
    port, given = split_port(words)
    if not given:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"threshold scheme needs a SCHEME: {', '.join(names)}")
    if given[0] not in names:
        raise unknown_name("scheme", given[0], names)
    asked = PolicyChange(traffic_class, Scheme(given[0]))
    make(resolve(state, switch, port), port, asked, every=True, dry_run=dry_run, as_json=as_json)


app.command("plan")(plan_command)


def make(
    targets: Targets, ref: PortRef | None, asked: PolicyChange, *, every: bool, dry_run: bool, as_json: bool
) -> None:
    """Make a change, or show what it would write."""
    port = ref.number if ref else None
    made = change_policies(targets, port, asked, every=every, dry_run=dry_run, as_json=as_json)
    if made is not None:
        tell(made, as_json)


def _print_no_lanes(row: dict[str, Any]) -> None:
    if row.get("why_no_lanes"):
        where = f"{row['switch']}:{row['port']} class {row['class']}"
        print(f"{where}: the flows share one queue: {row['why_no_lanes']}")


def tell(results: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(results)
        return
    for result in results:
        where = f"{result['switch']}:{result['port']} class {result['class']}"
        if result["scheme"] == "drop_tail":
            print(f"{where}: {result['scheme']}")
        else:
            lanes = f"{result['lanes']} lanes, " if result.get("lanes") else ""
            print(f"{where}: {lanes}Qthresh {result['qthresh_packets']} packets, weight {result['weight']:g}")
        _print_no_lanes(result)
        if result["via"] == "direct" and not result["remembered"]:
            print(f"{where}: the mode is not remembered (no run-state folder)")
