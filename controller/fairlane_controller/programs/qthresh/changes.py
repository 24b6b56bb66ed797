# SPDX-License-Identifier: Apache-2.0
"""Changes of thresholds and schemes that a person may ask for: what each means, made all or none, recorded as one change; `--dry-run` plans the same and writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairlane import ErrorCode, FairlaneError, SwitchState, check_program
from fairlane.changes import Sites, changing, make, typed
from fairlane.cli import DryResult, Targets, planned_results
from fairlane.switch import ChangeSet, EntityChange, same_entity
from finsy import P4TableEntry

from . import names as program
from .decide import bounded_capacity
from .model import QTHRESH_MIN_PACKETS
from .policies import START_QTHRESH_PACKETS, Policy, PortLimit, Scheme, answer_json, fitted, need_limit
from .store import LoopStore, Mode, PolicyKey, PolicyState, documents_of
from .wanted import policy_for

Request = dict[str, Any]


@dataclass(frozen=True)
class Ports:
    """What one switch has."""

    limits: Mapping[int, PortLimit]
    policies: Mapping[tuple[int, int], P4TableEntry]
    "Entries by (egress port, class): what others wrote may be no policy of ours."
    state: SwitchState | None = None
    "What the run state says of the switch."


async def read_ports(sites: Sites) -> dict[str, Ports]:
    """One read of each switch, beside what the run state says; WRONG_PROGRAM when one runs another program."""
    names = list(sites.endpoints)
    return dict(zip(names, await asyncio.gather(*(_read_ports(sites, name) for name in names)), strict=True))


async def _read_ports(sites: Sites, switch: str) -> Ports:
    client = await sites.reader(switch)
    check_program("qthresh", client.table_names())
    entries = await client.read_tables((program.TABLE_PORT_LIMIT, program.TABLE_POLICY))
    limits = [PortLimit.from_entry(entry) for entry in entries if entry.table_id == program.TABLE_PORT_LIMIT]
    policies = [entry for entry in entries if entry.table_id == program.TABLE_POLICY]
    return Ports(
        {limit.port: limit for limit in limits},
        {(int(entry["egress_port"]), int(entry["traffic_class"])): entry for entry in policies},
        next((one for one in sites.run.switches if one.name == switch), None) if sites.run is not None else None,
    )


@dataclass(frozen=True)
class PolicyPlan:
    """Policies as they are to be, with what was there before."""

    change: ChangeSet
    policies: tuple[tuple[str, Policy], ...]
    "(switch, policy then in force)."
    settings: Mapping[PolicyKey, PolicyState] = field(default_factory=lambda: dict[PolicyKey, PolicyState]())
    before: Mapping[PolicyKey, PolicyState] = field(default_factory=lambda: dict[PolicyKey, PolicyState]())

    @property
    def documents(self) -> dict[str, Any]:
        """What is to be remembered."""
        return documents_of(self.settings)


def choose_places(current: Mapping[str, Ports], port: int | None, *, every: bool) -> list[tuple[str, int]]:
    """The (switch, port) pairs that a request means.

    With a port: that port of the only switch. Without: all managed ports when `every`, else the only one there is.
    """
    if port is not None and len(current) == 1:
        return [(next(iter(current)), port)]
    managed = [(name, number) for name, ports in current.items() for number in sorted(ports.limits)]
    if port is not None:
        found = [place for place in managed if place[1] == port]
        if len(found) == 1 or (every and found):
            return found
        raise FairlaneError(
            ErrorCode.BAD_INPUT, f"port {port} of which switch ({', '.join(current)})? Name it with --switch"
        )
    if not managed:
        raise FairlaneError(ErrorCode.UNKNOWN_NAME, "no switch has a managed port: run `fairlane config init` first")
    if every or len(managed) == 1:
        return managed
    listed = ", ".join(f"{name}:{number}" for name, number in managed)
    raise FairlaneError(ErrorCode.BAD_INPUT, f"several ports are managed ({listed}): name one of them")


def plan_policies(
    current: Mapping[str, Ports], store: LoopStore, request: Request, where: Callable[[str], object]
) -> PolicyPlan:
    """What a request (`{"op", "class", "port", "every", …}`, `DECIDE`) means; `where` names a switch in errors. Pure. Raises FairlaneError."""
    traffic_class = program.check_class(int(request.get("class", 0)))
    entries: dict[str, list[EntityChange]] = {}
    policies: list[tuple[str, Policy]] = []
    settings: dict[PolicyKey, PolicyState] = {}
    before: dict[PolicyKey, PolicyState] = {}
    for switch, port in choose_places(current, request.get("port"), every=bool(request.get("every"))):
        key = (switch, port, traffic_class)
        limit = need_limit(current[switch].limits, port, where(switch))
        entry, known = current[switch].policies.get((port, traffic_class)), store.policy(*key)
        there = Policy.from_entry(entry) if entry is not None else None
        new, changed = DECIDE[request["op"]](f"{where(switch)}: port {port}", limit, there, known, request, key)
        state = current[switch].state
        new = fitted(new, state.port(port) if state is not None else None)
        changes = entries.setdefault(switch, [])
        if not same_entity(entry, new.entry):
            changes.append(EntityChange(entry, new.entry))
        policies.append((switch, new))
        if changed != known:
            settings[key] = changed
        before[key] = known
    return PolicyPlan(ChangeSet(entries), tuple(policies), settings, before)


# ---- what is asked for -------------------------------------------------------------------------------------------------


def _limiting(there: Policy | None) -> Scheme:
    """The scheme with thresholds that is in force, or else qthresh."""
    return there.scheme if there is not None and there.is_limited else Scheme.QTHRESH


def _capacity_after(capacity_packets: int, weight: float) -> int:
    return min(capacity_packets, bounded_capacity(capacity_packets, weight))


def _set_threshold(
    where: str, limit: PortLimit, there: Policy | None, settings: PolicyState, request: Request, key: PolicyKey
) -> tuple[Policy, PolicyState]:
    """Pin the threshold of a class by hand (mode manual, scheme qthresh or lanes); without `packets` change the weight only."""
    packets: int | None = request.get("packets")
    asked: float | None = request.get("weight")
    in_force = there.weight if there is not None and there.is_limited else settings.weight
    weight = asked if asked is not None else in_force
    program.encode_weight(weight)
    pinned: dict[str, object] = {}
    if packets is not None:
        program.check_threshold(packets, _capacity_after(limit.max_packets, weight))
        pinned = {"mode": Mode.MANUAL, "pinned_packets": packets}
    elif there is not None and there.qthresh_packets is not None:
        packets = there.qthresh_packets
    else:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{where} class {key[2]} has no threshold whose weight could change")
    new = policy_for(_limiting(there), key[1], key[2], there, weight=weight, packets=packets)
    return replace(new, qthresh_packets=packets, weight=weight), settings.model_copy(
        update={"weight": weight, **pinned}
    )


def _set_auto(
    where: str, limit: PortLimit, there: Policy | None, settings: PolicyState, request: Request, key: PolicyKey
) -> tuple[Policy, PolicyState]:
    """Let the loop decide (mode auto, scheme qthresh or lanes); the threshold in force stays until it does. What is not given stays."""
    del where
    k: float | None = request.get("k")
    asked: float | None = request.get("weight")
    if k is not None and not 0.1 <= k <= 100:
        raise FairlaneError(ErrorCode.OUT_OF_RANGE, f"k {k:g} is out of range: it must be between 0.1 and 100")
    new = policy_for(_limiting(there), key[1], key[2], there, weight=settings.weight)
    weight = asked if asked is not None else new.weight
    program.encode_weight(weight)
    most = max(QTHRESH_MIN_PACKETS, _capacity_after(limit.max_packets, weight))
    given = {name: request[name] for name in ("k", "self_tuning") if request.get(name) is not None}
    new = replace(new, qthresh_packets=min(new.qthresh_packets or most, most), weight=weight)
    return new, settings.model_copy(update={"mode": Mode.AUTO, "weight": weight, **given})


def _set_scheme(
    where: str, limit: PortLimit, there: Policy | None, settings: PolicyState, request: Request, key: PolicyKey
) -> tuple[Policy, PolicyState]:
    """Change the scheme of a class; weight and a pinned threshold come back with qthresh, the mode is not touched."""
    del where
    packets = START_QTHRESH_PACKETS
    if settings.mode is Mode.MANUAL and settings.pinned_packets is not None:
        packets = settings.pinned_packets
    packets = min(packets, max(1, _capacity_after(limit.max_packets, settings.weight)))
    scheme = Scheme(request["scheme"])
    return policy_for(scheme, key[1], key[2], there, weight=settings.weight, packets=packets), settings


DECIDE: Mapping[str, Callable[..., tuple[Policy, PolicyState]]] = {
    "threshold_set": _set_threshold,
    "threshold_auto": _set_auto,
    "scheme_set": _set_scheme,
}


def change_all(targets: Targets, port: int | None, request: dict[str, Any], *, every: bool) -> list[dict[str, Any]]:
    """Make one request (`DECIDE`) at every place that the command means.

    Without a port it means all managed ports when `every`, else the only one there is.

    Returns:
        The policies then in force, each with `via` loop or direct.
    """

    async def work() -> list[dict[str, Any]]:
        async with (
            changing(targets.folder, typed(), targets.run),
            Sites(targets.run, targets.endpoints, writes=True) as sites,
        ):
            plan, current = await _plan(sites, {**request, "port": port, "every": every})
            await make([plan.change], sites, plan.documents)
        via = "direct" if sites.loop_folder is None else "loop"
        about = {"via": via, "remembered": sites.folder is not None}
        return [{"switch": name, **answer_json(policy, current[name].state), **about} for name, policy in plan.policies]

    return asyncio.run(work())


def dry_all(targets: Targets, port: int | None, request: dict[str, Any], *, every: bool) -> list[DryResult]:
    """What `change_all` would write, with the same checks."""

    async def work() -> list[DryResult]:
        async with Sites(targets.run, targets.endpoints) as sites:
            plan, _ = await _plan(sites, {**request, "port": port, "every": every})
            notes = {name: _notes(plan, name) for name in plan.change.entries}
            return await planned_results(sites, plan.change, notes)

    return asyncio.run(work())


async def _plan(sites: Sites, request: dict[str, Any]) -> tuple[PolicyPlan, dict[str, Ports]]:
    current = await read_ports(sites)
    return plan_policies(current, LoopStore(sites.folder), request, sites.endpoint), current


def _notes(plan: PolicyPlan, switch: str) -> list[str]:
    """A sentence for each setting that the plan would change."""
    notes: list[str] = []
    for key, after in plan.settings.items():
        old, new = plan.before[key].model_dump(mode="json"), after.model_dump(mode="json")
        texts = [f"{name} {old[name]} becomes {new[name]}" for name in new if old[name] != new[name]]
        if key[0] == switch and texts:
            notes.append(f"port {key[1]} class {key[2]}: {', '.join(texts)}")
    return notes
