# SPDX-License-Identifier: Apache-2.0
"""`fairlane threshold show|set|auto|scheme|plan`."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any

import typer
from fairlane import Duration, ErrorCode, FairlaneError, Flag, Packets, Plain, Rate, Section, Size, find_by_name
from fairlane.changes import Sites
from fairlane.cli import (
    App,
    ClassOption,
    DryRunOption,
    JsonOption,
    OnlyPortArgument,
    Planned,
    PortRef,
    StateOption,
    SwitchOption,
    Targets,
    carry_out,
    complete_port,
    need_program,
    options_of,
    print_json,
    print_table,
    resolve,
    split_port,
    take_two,
)
from fairlane.switch import ChangeSet, EntityChange, same_entity
from fairlane.text import counted, describe, format_rate, format_size, format_time, parse_count, parse_rate
from pydantic import Field, ValidationError

from .model import DEFAULT_K, QTHRESH_MAX_PACKETS, QthreshPlan, response_time_s
from .names import SCHEMES, Scheme
from .policies import InForce, Policy, policy_in_force, read_managed, why_no_lanes
from .settings import PolicyConfig, PolicyKey, PolicyState, Tunables, Weight
from .store import LoopStore
from .wanted import beyond_limit, changed_settings, plain_policy, policy_of, settings_of

app = App(
    help="Thresholds and schemes of (egress port, class): show, set by hand, leave to the loop, plan on paper.",
)
_PORT_FIRST = "The port is first: s1:3, or 3 with --switch; default the managed one, or all."


class _Link(Section):
    rate: Annotated[Rate, Field(ge=1), Flag("--rate", "RATE", partial(parse_rate, needs_unit=True))]
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
    k: Annotated[float, Field(gt=0, allow_inf_nan=False), Flag("--k")] = DEFAULT_K
    "Constant of proportionality of eq. (9)."
    queue_packets: Annotated[Packets, Field(ge=2, le=QTHRESH_MAX_PACKETS), Flag("--queue-packets", "PACKETS")] = (
        QTHRESH_MAX_PACKETS
    )
    "Capacity of the queue (upper bound)."


SHOWN = {
    "switch": "switch",
    "port": "port",
    "class": "class",
    "scheme": "scheme",
    "qthresh_packets": "Qthresh",
    "weight": "weight",
    "mode": "mode",
    "lanes": "lanes",
    "why_no_lanes": "one queue, because",
}
"""Headings of a policy's values."""


def complete_scheme(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """Ports, and the schemes."""
    return [*complete_port(ctx, incomplete), *((one, "") for one in SCHEMES if one.startswith(incomplete))]


@app.command("show")
def show(
    port: OnlyPortArgument = None, state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False
) -> None:
    """Show the threshold, weight and mode of every managed port and class (`fairlane flows` has those of flows).

    Examples: `fairlane threshold show`, `fairlane threshold show s1:3`, `fairlane threshold show -s s1 --json`
    """
    snapshot = need_program(asyncio.run(take_two(resolve(state, switch, port), 0))[0], "qthresh")
    rows = [one.to_json() for one in snapshot.objects_of_kind("policy") if port is None or one.port == port.number]
    print_policies([{"class": row["traffic_class"], **row} for row in rows], as_json)


def print_policies(rows: list[Plain] | None, as_json: bool) -> None:
    """Policies as a table, with the columns that some of them have; nothing of a dry run, which has printed its own."""
    if as_json and rows is not None:
        print_json(rows)
    elif rows is not None:
        names = [name for name in SHOWN if any(row.get(name) is not None for row in rows)]
        cells = [[row.get(name) for name in names] for row in rows]
        print_table("thresholds (packets)", [SHOWN[name] for name in names], cells, empty="no such port is managed")


@app.command("set")
@options_of(Tunables)
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
    """Pin the threshold by hand: the loop does not change it until `threshold auto`. Without PACKETS: other settings only. What is not given stays.

    PORT may be left out where one port is managed.

    Examples: `fairlane threshold set s1:3 5`, `fairlane threshold set 5`, `fairlane threshold set s1:3 5packets --weight 1.5`, `fairlane threshold set --weight 2 --dry-run`
    """
    port, given = split_port(words)
    if given:
        changes = {**changes, "threshold": parse_count(given[0], "packets", "threshold")}
    if not changes:
        raise FairlaneError(ErrorCode.BAD_INPUT, "threshold set needs PACKETS, --weight, or both")
    targets = resolve(state, switch, port)
    make(targets, port, traffic_class, changes, every=False, dry_run=dry_run, as_json=as_json)


@app.command("auto")
@options_of(Tunables)
def auto(
    changes: Plain,
    port: OnlyPortArgument = None,
    traffic_class: ClassOption = 0,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let the control loop compute the threshold from its measurements; all managed ports unless one is named. What is not given stays.

    Examples: `fairlane threshold auto`, `fairlane threshold auto s1:3 --k 1.95 --weight 1`
    """
    changes = {**changes, "mode": "auto"}
    targets = resolve(state, switch, port)
    make(targets, port, traffic_class, changes, every=True, dry_run=dry_run, as_json=as_json)


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
    targets = resolve(state, switch, port)
    make(targets, port, traffic_class, changes, every=True, dry_run=dry_run, as_json=as_json)


def make(
    targets: Targets, port: PortRef | None, traffic_class: int, asked: Plain, *, as_json: bool, **how: bool
) -> None:
    """Make a change, or show what it would write; `how` as `change_policies` has it."""
    number = None if port is None else port.number
    print_policies(change_policies(targets, number, traffic_class, asked, as_json=as_json, **how), as_json)


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


# ---- a change of policies --------------------------------------------------------------------------------------------


def change_policies(
    targets: Targets,
    port: int | None,
    traffic_class: int,
    asked: Plain,
    *,
    every: bool,
    dry_run: bool = False,
    as_json: bool = False,
) -> list[Plain] | None:
    """Make what is asked at every place that the command means, on all switches or on none.

    Args:
        targets: the switches that the command means.
        port: the managed port; None: all when `every`, else the only one there is.
        traffic_class: the class.
        asked: keys of a policy (`PolicyConfig`) with their new values; `threshold` means mode manual.
        every: several places may be meant.
        dry_run: print what would be written, and write nothing.
        as_json: print that as JSON.

    Returns:
        The policies then in force, each with `via` loop or direct; None where a dry run has printed what would be written.

    Raises:
        FairlaneError: BAD_INPUT for what a policy cannot have, or for several places; UNKNOWN_NAME where the port is not managed.

    """
    states = {one.name: one for one in targets.run.switches} if targets.run is not None else {}
    rows: list[Plain] = []

    async def plan(sites: Sites) -> Planned:
        store, names = LoopStore(sites.folder), [*sites.endpoints]
        current = dict(zip(names, await asyncio.gather(*[_read(sites, name) for name in names]), strict=True))
        entries: dict[str, list[EntityChange]] = {}
        notes: dict[str, list[str]] = {}
        settings: dict[PolicyKey, PolicyState] = {}
        for switch, number in _choose_places(current, port, every=every):
            key, found = (switch, number, traffic_class), current[switch]
            known, state = store.policy(*key), states[switch].port(number) if switch in states else None
            new, remembered = edited(key, found, known, asked)
            new = new.fitted(state)
            before, changes = found.entries.get(new.key), entries.setdefault(switch, [])
            if not same_entity(before, new.entry):
                changes.append(EntityChange(before, new.entry))
            if differ := changed_settings(known, remembered):
                settings[key] = remembered
                words = ", ".join(f"{name} {old} becomes {now}" for name, (old, now) in differ.items())
                notes.setdefault(switch, []).append(f"port {number} class {traffic_class}: {words}")
            rows.append({"switch": switch, **new.to_json(), "mode": remembered.mode.value})
            if new.scheme is Scheme.LANES and not new.lanes.own:
                rows[-1]["why_no_lanes"] = why_no_lanes(state)
        return Planned(ChangeSet(entries), store.documents(settings), notes=notes)

    made = carry_out(targets, plan, dry_run=dry_run, as_json=as_json)
    return None if made is None else [{**row, "via": made[1]} for row in rows]


def _choose_places(current: dict[str, InForce], port: int | None, *, every: bool) -> list[tuple[str, int]]:
    """The (switch, port) pairs that a request means."""
    managed = [(name, number) for name, found in current.items() for number in sorted(found.limits)]
    places = [place for place in managed if port in (None, place[1])]
    listed = ", ".join(f"{name}:{number}" for name, number in managed) or "none: run `fairlane config init`"
    if not places:
        raise FairlaneError(
            ErrorCode.UNKNOWN_NAME, f"port {port or 'of any number'} is not managed; managed ports: {listed}"
        )
    if len(places) > 1 and not every:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"several ports are managed ({listed}): name one of them")
    return places


def edited(key: PolicyKey, found: InForce, known: PolicyState, asked: Plain) -> tuple[Policy, PolicyState]:
    """The policy that is to be, without lanes, and its settings. Pure.

    Args:
        key: which policy.
        found: what its switch has.
        known: what is remembered of the policy.
        asked: as `change_policies` has it.

    Raises:
        FairlaneError: BAD_INPUT.

    """
    switch, port, traffic_class = key
    limit, policy = found.limits[port].limit_packets or 0, policy_in_force(found.policies, port, traffic_class)
    if not policy.is_limited and asked.keys() & {"scheme", "threshold", "mode"}:
        packets = min(known.pinned_packets or policy.qthresh_packets, limit)
        policy = Policy(port, traffic_class, Scheme.QTHRESH, packets, known.weight)
    policy = policy.with_scheme(Scheme(asked.get("scheme", policy.scheme)))
    data = plain_policy(switch, policy, known) | asked
    if "threshold" in asked:
        data["mode"] = "manual"
    elif data.get("mode") == "auto":
        data.pop("threshold", None)
    try:
        wanted = PolicyConfig.model_validate(data)
        problems = [*beyond_limit(wanted, limit)]
    except ValidationError as ex:
        wanted, problems = None, describe(ex, PolicyConfig)
    if wanted is None or problems:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{switch}:{port} class {traffic_class}: {problems[0]}")
    return policy_of(wanted, policy, limit), settings_of(wanted, known)


async def _read(sites: Sites, switch: str) -> InForce:
    return await read_managed(await sites.reader(switch))
