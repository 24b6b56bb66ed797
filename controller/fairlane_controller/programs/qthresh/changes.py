# SPDX-License-Identifier: Apache-2.0
"""Changes of policies that a person asks for: edits of the policy in force as a file says it, made all or none, recorded as one change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from fairlane import ErrorCode, FairlaneError, Plain
from fairlane.changes import Sites
from fairlane.cli import Planned, Targets, carry_out
from fairlane.switch import ChangeSet, EntityChange, same_entity
from fairlane.text import describe
from pydantic import ValidationError

from .names import Scheme
from .policies import InForce, Policy, policy_in_force, read_managed, why_no_lanes
from .settings import PolicyConfig, PolicyKey, PolicyState
from .store import LoopStore
from .wanted import beyond_limit, changed_settings, plain_policy, policy_of, settings_of


def change_policies(
    targets: Targets,
    port: int | None,
    traffic_class: int,
    asked: Plain,
    *,
    every: bool,
    dry_run: bool = False,
    as_json: bool = False,
) -> list[dict[str, Any]] | None:
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
        The policies then in force, each with `via` loop or direct; None where `dry_run` has printed what would be written.

    Raises:
        FairlaneError: BAD_INPUT for what a policy cannot have, or for several places; UNKNOWN_NAME where the port is not managed.

    """
    states = {one.name: one for one in targets.run.switches} if targets.run is not None else {}
    rows: list[dict[str, Any]] = []

    async def plan(sites: Sites) -> Planned:
        store, names = LoopStore(sites.folder), [*sites.endpoints]
        current = dict(zip(names, await asyncio.gather(*[_read(sites, name) for name in names]), strict=True))
        entries: dict[str, list[EntityChange]] = {}
        notes: dict[str, list[str]] = {}
        settings: dict[PolicyKey, PolicyState] = {}
        for switch, number in choose_places(current, port, every=every):
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
            no_lanes = new.scheme is Scheme.LANES and why_no_lanes(state)
            rows.append({"switch": switch, **new.to_json(), **({"why_no_lanes": no_lanes} if no_lanes else {})})
        return Planned(ChangeSet(entries), store.documents(settings), notes=notes)

    made = carry_out(targets, plan, dry_run=dry_run, as_json=as_json)
    return None if made is None else [{**row, "via": made[1]} for row in rows]


def choose_places(current: Mapping[str, InForce], port: int | None, *, every: bool) -> list[tuple[str, int]]:
    """The (switch, port) pairs that a request means."""
    managed = [(name, number) for name, found in current.items() for number in sorted(found.limits)]
    places = [place for place in managed if port in (None, place[1])]
    listed = ", ".join(f"{name}:{number}" for name, number in managed) or "none: run `fairlane config init`"
    if not places:
        what = "no port is managed" if port is None else f"port {port} is not managed"
        raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"{what}; managed ports: {listed}")
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
    limit, current = found.limits[port].limit_packets or 0, policy_in_force(found.policies, port, traffic_class)
    policy = current
    if "scheme" in asked or (asked.keys() & {"threshold", "mode"} and not current.is_limited):
        policy = current.with_scheme(Scheme(asked.get("scheme", Scheme.QTHRESH)))
    if policy.is_limited and not current.is_limited:
        packets = min(known.pinned_packets or policy.qthresh_packets, limit)
        policy = Policy(port, traffic_class, policy.scheme, packets, known.weight)
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
