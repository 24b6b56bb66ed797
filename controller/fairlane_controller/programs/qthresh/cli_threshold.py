# SPDX-License-Identifier: Apache-2.0
"""`fairlane threshold show|set|auto|scheme|plan`."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer
from fairlane import Duration, ErrorCode, FairlaneError, Flag, Packets, Plain, Rate, Section, Size, find_by_name
from fairlane.changes import ask
from fairlane.cli import (
    App,
    ClassOption,
    DryRunOption,
    JsonOption,
    OnlyPortArgument,
    PortRef,
    Snapshot,
    StateOption,
    SwitchOption,
    Targets,
    complete_port,
    need_program,
    options_of,
    print_json,
    print_table,
    resolve,
    split_port,
    take_two,
)
from fairlane.text import counted, describe, format_rate, format_size, format_time, parse_count
from pydantic import Field, ValidationError

from .changes import change_policies
from .model import DEFAULT_K, QTHRESH_MAX_PACKETS, QthreshPlan, response_time_s
from .names import SCHEMES
from .settings import Weight

app = App(
    help="Thresholds and schemes of (egress port, class): show, set by hand, leave to the loop, plan on paper.",
)
_PORT_FIRST = "The port is first: s1:3, or 3 with --switch; default the managed one, or all."


class _Weight(Section):
    weight: Annotated[float, Flag("--weight -w")] = 1.0
    "Weight of the class (1/256 to 255); default as it is."


class _Auto(_Weight):
    k: Annotated[float, Flag("--k")] = DEFAULT_K
    "Constant of eq. (9), 1.95 at first; default as it is."
    self_tuning: Annotated[bool, Flag("--self-tuning/--model")] = True
    "Correct eq. (9) by the flows' goodputs, or eq. (9) alone; default as it is."


class _Link(Section):
    rate: Annotated[Rate, Field(gt=0), Flag("--rate", "RATE")]
    "Bottleneck bandwidth BW, e.g. 2Mbit."
    delay: Annotated[Duration, Flag("--delay", "TIME")] = 0.0
    "One-way delay of the bottleneck link, e.g. 2ms."
    packet_bytes: Annotated[Size, Field(ge=1, le=65_535), Flag("--packet-bytes", "SIZE")] = 1000
    "Mean packet length L_D, e.g. 1000 or 1500B."
    flows: Annotated[int, Field(ge=1), Flag("--flows")] = 2
    "Number of connections N_C."
    t_ack: Annotated[Duration, Flag("--t-ack", "TIME")] = 0.0
    "All delay that is not twice the link's: access links, receiver."
    t_res: Annotated[Duration | None, Flag("--t-res", "TIME")] = None
    "Measured T_res; replaces --delay and --t-ack."
    weight: Annotated[Weight, Flag("--weight -w")] = 1.0
    "Weight of the flow or class."
    k: Annotated[float, Field(gt=0), Flag("--k")] = DEFAULT_K
    "Constant of proportionality of eq. (9)."
    queue_packets: Annotated[Packets, Field(ge=2, le=QTHRESH_MAX_PACKETS), Flag("--queue-packets", "PACKETS")] = (
        QTHRESH_MAX_PACKETS
    )
    "Capacity of the queue (upper bound)."


def complete_scheme(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """Ports, and the schemes."""
    return [*complete_port(ctx, incomplete), *((one, "") for one in SCHEMES if one.startswith(incomplete))]


@app.command("show")
def show(
    port: OnlyPortArgument = None, state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False
) -> None:
    """Show the threshold, weight and mode of every managed port and class; of one port also why each flow has what it has.

    Examples: `fairlane threshold show`, `fairlane threshold show s1:3`, `fairlane threshold show -s s1 --json`
    """
    targets = resolve(state, switch, port)
    rows = _policies(need_program(asyncio.run(take_two(targets, 0))[0], "qthresh"))
    flows: list[dict[str, Any]] = []
    if port is not None:
        rows = [row for row in rows if row["port"] == port.number]
        if (folder := targets.loop_folder) is not None:
            for name in dict.fromkeys(row["switch"] for row in rows):
                flows += asyncio.run(ask(folder, {"op": "explain", "switch": name, "port": port.number}))
    if as_json:
        print_json(rows if port is None else {"policies": rows, "flows": flows})
        return
    columns = (
        "switch",
        "port",
        "class",
        "scheme",
        "qthresh_packets",
        "weight",
        "effective_packets",
        "mode",
        "capacity_packets",
    )
    heads = [name.removesuffix("_packets").replace("qthresh", "Qthresh") for name in columns]
    empty = "no port is managed" if port is None else f"port {port.name} is not managed"
    print_table("thresholds (packets)", heads, [[row[name] for name in columns] for row in rows], empty=empty)
    for row in rows:
        _print_no_lanes(row)
    for flow in flows:
        print(f"{flow['flow']} {flow['sentence']}")
    if port is not None and rows and not flows:
        print("no flow has a threshold of its own")


def _policies(snapshot: Snapshot) -> list[Plain]:
    """The policies as `--json` prints them."""
    keys = ("scheme", "qthresh_packets", "weight", "effective_packets", "mode", "k", "lanes", "why_no_lanes")
    rows: list[Plain] = []
    for one in snapshot.objects_of_kind("policy"):
        port = snapshot.port(one.switch, one.port) if one.port is not None else None
        place = {"switch": one.switch, "port": one.port, "class": one["traffic_class"]}
        rows.append({**place, **{key: one[key] for key in keys}, "capacity_packets": port and port.capacity_packets})
    return rows


@app.command("set")
@options_of(_Weight)
def set_(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"{_PORT_FIRST} Packets of one flow that may wait: 5 or 5packets.",
            metavar="[PORT] [PACKETS]",
            autocompletion=complete_port,
        ),
    ] = None,
    *,
    changes: Plain,
    traffic_class: ClassOption = 0,
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
    if given:
        changes = {**changes, "threshold": parse_count(given[0], "packets", "threshold")}
    if not changes:
        raise FairlaneError(ErrorCode.BAD_INPUT, "threshold set needs PACKETS, --weight, or both")
    make(resolve(state, switch, port), port, traffic_class, changes, every=False, dry_run=dry_run, as_json=as_json)


@app.command("auto")
@options_of(_Auto)
def auto(
    changes: Plain,
    port: OnlyPortArgument = None,
    traffic_class: ClassOption = 0,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let the control loop compute the threshold from its measurements; all managed ports unless one is named.

    Examples: `fairlane threshold auto`, `fairlane threshold auto s1:3 --k 1.95 --weight 1`
    """
    changes = {**changes, "mode": "auto"}
    make(resolve(state, switch, port), port, traffic_class, changes, every=True, dry_run=dry_run, as_json=as_json)


@app.command("scheme")
def scheme(
    words: Annotated[
        list[str],
        typer.Argument(
            help=f"{_PORT_FIRST} drop_tail, qthresh or lanes.", metavar="[PORT] SCHEME", autocompletion=complete_scheme
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
    port, given = split_port(words)
    if not given:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"threshold scheme needs a SCHEME: {', '.join(SCHEMES)}")
    changes = {"scheme": find_by_name("scheme", given[0], SCHEMES).value}
    make(resolve(state, switch, port), port, traffic_class, changes, every=True, dry_run=dry_run, as_json=as_json)


def make(
    targets: Targets,
    ref: PortRef | None,
    traffic_class: int,
    asked: Plain,
    *,
    every: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make a change, or show what it would write."""
    port = ref.number if ref else None
    made = change_policies(targets, port, traffic_class, asked, every=every, dry_run=dry_run, as_json=as_json)
    if as_json and made is not None:
        print_json(made)
        return
    for row in made or ():
        where, lanes = _place(row), f"{row['lanes']} lanes, " if row.get("lanes") else ""
        limit = f"{lanes}Qthresh {row['qthresh_packets']} packets, weight {row['weight']:g}"
        print(f"{where}: {row['scheme'] if row['qthresh_packets'] is None else limit}")
        _print_no_lanes(row)


def _place(row: Plain) -> str:
    return f"{row['switch']}:{row['port']} class {row['class']}"


def _print_no_lanes(row: Plain) -> None:
    if row.get("why_no_lanes"):
        print(f"{_place(row)}: the flows share one queue: {row['why_no_lanes']}")


@app.command("plan")
@options_of(_Link)
def plan(changes: Plain, as_json: JsonOption = False) -> None:
    """Compute the threshold for a link on paper: equations (5) to (9), no switch needed. It needs --rate.

    Examples: `fairlane threshold plan --rate 2Mbit --delay 2ms --packet-bytes 1000 --flows 2`, `fairlane threshold plan --rate 5Mbps --t-res 6.8ms --json`
    """
    try:
        link = _Link.model_validate(changes)
    except ValidationError as ex:
        raise FairlaneError(ErrorCode.BAD_INPUT, describe(ex, _Link)[0]) from None
    t_res_s = response_time_s(link.delay, link.t_ack) if link.t_res is None else link.t_res
    plan = QthreshPlan(link.rate, t_res_s, link.packet_bytes, link.flows, link.k, link.weight, link.queue_packets)
    if as_json:
        print_json(plan.to_json())
        return
    best, exact = f"{plan.w_best_packets:.2f} packets", f"w·k·W_best = {plan.qthresh_exact_packets:.2f}, eq. (9)"
    rows = [
        ("BW", format_rate(plan.rate_bps), "bandwidth"),
        ("L_D", format_size(plan.packet_bytes), "packet length"),
        ("N_C", plan.connections, "connections"),
        ("T_D", format_time(plan.t_d_s), "time to send one packet, eq. (5)"),
        ("T_res", format_time(plan.t_res_s), "departure of a packet to its ACK, eq. (6)"),
        ("W", counted(plan.smallest_window_packets, "packet"), "smallest window of one flow alone, eq. (7)"),
        ("W_full", counted(plan.full_window_packets, "packet"), "smallest full window of each flow"),
        ("W_best", best, "best window of each flow, eq. (8)"),
        ("Qthresh", counted(plan.qthresh_packets, "packet"), exact),
    ]
    print_table("plan", ("symbol", "value", "meaning"), rows)
