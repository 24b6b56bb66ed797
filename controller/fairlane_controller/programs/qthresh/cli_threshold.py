# SPDX-License-Identifier: Apache-2.0
"""`fairlane threshold show|set|auto`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from fairlane import ErrorCode, Plain, port_state
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
    answering,
    carry_out,
    complete_port,
    need_changes,
    options_of,
    print_json,
    print_table,
    resolve,
    split_port,
    take_two,
    unread,
)
from fairlane.switch import ChangeSet, EntityChange, same_entity
from fairlane.text import describe, parse_count
from pydantic import ValidationError

from .names import Scheme
from .policies import (
    InForce,
    LoopStore,
    Policy,
    beyond_limit,
    changed_settings,
    plain_policy,
    policy_of,
    read_managed,
    why_no_lanes,
)
from .settings import PolicyConfig, PolicyKey, PolicySettings

app = App(help="Thresholds and schemes of (egress port, class): show, set by hand, leave to the loop.")
SHOWN = ("switch", "port", "class", "scheme", "qthresh_packets", "weight", "mode", "k", "lanes", "why_no_lanes")
"""What is shown of a policy."""
_HEADS = {"qthresh_packets": "Qthresh", "why_no_lanes": "why no lanes"}


@app.command("show")
def show(
    port: OnlyPortArgument = None, state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False
) -> None:
    """Show the threshold, weight and mode of every managed port and class (`fairlane flows` has those of flows).

    Examples: `fairlane threshold show`, `fairlane threshold show s1:3`, `fairlane threshold show -s s1 --json`
    """
    snapshot = asyncio.run(take_two(resolve(state, switch, port), 0))
    with answering(unread(snapshot, "qthresh"), len(snapshot.switches)):
        rows = [one.to_json() for one in snapshot.objects_of_kind("policy") if port is None or one.port == port.number]
        _print([{"class": row["traffic_class"], **row} for row in rows], as_json)


def _print(rows: list[Plain], as_json: bool) -> None:
    """Policies as a table, with the columns that some of them have."""
    if as_json:
        print_json(rows)
        return
    names = [name for name in SHOWN if any(row.get(name) is not None for row in rows)]
    values = [[row.get(name) for name in names] for row in rows]
    cells = [[f"{value:g}" if isinstance(value, float) else value for value in row] for row in values]
    print_table("thresholds", [_HEADS.get(name, name) for name in names], cells, empty="no such port is managed")


@app.command("set")
@options_of(PolicyConfig)
def set_(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="The port is first: s1:3, or 3 with --switch; default all managed ones. Packets of one flow that may wait: 5 or 5packets.",
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
    """Set the threshold by hand, or other settings; all managed ports unless one is named. What is not given stays.

    The loop does not change a threshold that was set until `threshold auto`. Scheme lanes needs the scheduler drr or wrr
    (`fairlane ports set s1:3 --scheduler drr --queues 4096`), else the flows share one queue as with qthresh.

    Examples: `fairlane threshold set s1:3 5`, `fairlane threshold set 5packets --weight 1.5 --dry-run`, `fairlane threshold set --scheme drop_tail`
    """
    port, given = split_port(words)
    if given:
        changes = {**changes, "threshold": parse_count(given[0], "packets", "threshold")}
    need_changes("threshold set", changes)
    change_policies(resolve(state, switch, port), port, traffic_class, changes, dry_run=dry_run, as_json=as_json)


@app.command("auto")
@options_of(PolicySettings)
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
    changes = {**changes, "threshold": None}
    change_policies(resolve(state, switch, port), port, traffic_class, changes, dry_run=dry_run, as_json=as_json)


# ---- a change of policies --------------------------------------------------------------------------------------------


def change_policies(
    targets: Targets, port: PortRef | None, traffic_class: int, asked: Plain, *, dry_run: bool, as_json: bool
) -> None:
    """Make what is asked at a managed port, or at all, on all switches or on none; print the policies then in force, or what would be written.

    Args:
        targets: the switches that the command means.
        port: the managed port; None: all.
        traffic_class: the class.
        asked: keys of a policy (`PolicyConfig`) with their new values.
        dry_run: print what would be written, and write nothing.
        as_json: print JSON; a policy has `via` loop or direct.

    Raises:
        FairlaneError: BAD_INPUT for what a policy cannot have; UNKNOWN_NAME where the port is not managed.

    """
    rows: list[Plain] = []

    async def plan(sites: Sites) -> Planned:
        store, managed = LoopStore(sites.folder), list[str]()
        entries, documents, notes = dict[str, list[EntityChange]](), dict[str, Plain](), dict[str, list[str]]()
        for switch in sites.endpoints:
            found = await read_managed(await sites.reader(switch))
            for number in sorted(found.limits):
                managed.append(f"{switch}:{number}")
                if port is not None and port.number != number:
                    continue
                key, state = (switch, number, traffic_class), port_state(targets.run, (switch, number))
                wanted, policy = edited(key, found, store.policy(*key), asked)
                new = policy.fitted(state)
                before, changes = found.entries.get(new.key), entries.setdefault(switch, [])
                if not same_entity(before, new.entry):
                    changes.append(EntityChange(before, new.entry))
                if (stored := changed_settings(wanted, store)) is not None:
                    documents[stored.document] = stored.value
                    words = (f"{name} {'-' if (old := stored.current[name]) is None else old} becomes {'-' if value is None else value}" for name, value in stored.wanted.items())  # fmt: skip
                    notes.setdefault(switch, []).extend(f"{stored.place}: {one}" for one in words)
                rows.append(
                    {"switch": switch, "port": number, "class": traffic_class, **new.values, "mode": wanted.mode}
                )
                if new.scheme is Scheme.LANES and not new.lanes.own:
                    rows[-1]["why_no_lanes"] = why_no_lanes(state.scheduler, state.queues)
        if not rows:
            name = "" if port is None else f" {f'{port.switch}:' if port.switch else ''}{port.number}"
            listed = ", ".join(managed) or "none: run `fairlane config init`"
            raise ErrorCode.UNKNOWN_NAME(f"port{name} is not managed; managed ports: {listed}")
        return Planned(ChangeSet(entries), documents, notes=notes)

    made = carry_out(targets, plan, dry_run=dry_run, as_json=as_json)
    if made is not None:
        _print([{**row, "via": made[1]} for row in rows], as_json)


def edited(key: PolicyKey, found: InForce, known: PolicySettings, asked: Plain) -> tuple[PolicyConfig, Policy]:
    """A policy as it is to be, and its entry's values without lanes. Pure.

    Args:
        key: which policy.
        found: what its switch has.
        known: what is stored of the policy.
        asked: as `change_policies` has it.

    Raises:
        FairlaneError: BAD_INPUT.

    """
    switch, port, traffic_class = key
    limit, policy = found.ports[port].limit_packets or 0, found.policy(port, traffic_class)
    data = plain_policy(switch, policy, known) | asked
    if not policy.is_limited and "scheme" not in asked and "threshold" in asked:
        data["scheme"] = Scheme.QTHRESH
    try:
        wanted = PolicyConfig.model_validate(data)
        problems = [*beyond_limit(wanted, limit)]
    except ValidationError as ex:
        wanted, problems = None, describe(ex, PolicyConfig)
    if wanted is None or problems:
        raise ErrorCode.BAD_INPUT(f"{switch}:{port} class {traffic_class}: {problems[0]}")
    return wanted, policy_of(wanted, policy, limit)
