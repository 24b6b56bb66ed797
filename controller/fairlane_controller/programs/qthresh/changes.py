# SPDX-License-Identifier: Apache-2.0
"""Changes of thresholds and schemes that a person may ask for: what each means, made all or none, recorded as one change; `--dry-run` plans the same and writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlane import ErrorCode, FairlaneError, SwitchState, out_of_range
from fairlane.changes import Sites
from fairlane.cli import Planned, Targets, carry_out
from fairlane.switch import ChangeSet, EntityChange, same_entity

from . import names as program
from .decide import bounded_capacity
from .model import QTHRESH_MIN_PACKETS
from .policies import (
    START_QTHRESH_PACKETS,
    InForce,
    Policy,
    Scheme,
    answer_json,
    fitted,
    need_limit,
    policy_for,
    read_managed,
)
from .store import LoopStore, Mode, PolicyKey, PolicyState


@dataclass(frozen=True)
class PolicyChange:
    """What a person asks of a policy: a scheme, a threshold by hand, the loop's threshold (`auto`), or a weight alone. None: as it is."""

    traffic_class: int = 0
    scheme: Scheme | None = None
    packets: int | None = None
    auto: bool = False
    weight: float | None = None
    loop: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "With `auto`: k, self_tuning."

    def of(
        self, where: str, port: int, capacity: int, there: Policy | None, known: PolicyState
    ) -> tuple[Policy, PolicyState]:
        """The policy that is to be, without lanes (`fitted`), and its settings.

        Args:
            where: the place, in words.
            port: the egress port.
            capacity: packets that may wait there.
            there: the policy in force.
            known: its settings.

        Raises:
            FairlaneError: OUT_OF_RANGE; BAD_INPUT, where there is no threshold whose weight could change.

        """
        limited = there if there is not None and there.is_limited else None
        weight = next(one for one in (self.weight, limited and limited.weight, known.weight) if one is not None)
        scheme = self.scheme or (limited.scheme if limited else Scheme.QTHRESH)
        program.encode_weight(weight)
        most = min(capacity, bounded_capacity(capacity, weight))
        packets = limited.qthresh_packets if limited else None
        changes: dict[str, Any] = {} if self.scheme else {"weight": weight}
        if self.packets is not None:
            packets = program.check_threshold(self.packets, most)
            changes |= {"mode": Mode.MANUAL, "pinned_packets": packets}
        elif self.auto:
            packets = min(packets or START_QTHRESH_PACKETS, max(QTHRESH_MIN_PACKETS, most))
            changes |= {"mode": Mode.AUTO, **self.loop}
        elif self.scheme and packets is None:
            pinned = known.pinned_packets if known.mode is Mode.MANUAL else None
            packets = min(pinned or START_QTHRESH_PACKETS, max(1, most))
        elif packets is None:
            problem = f"{where} class {self.traffic_class} has no threshold whose weight could change"
            raise FairlaneError(ErrorCode.BAD_INPUT, problem)
        policy = policy_for(scheme, port, self.traffic_class, there, packets, weight)
        return policy, known.model_copy(update=changes)


@dataclass(frozen=True)
class PolicyPlan(Planned):
    """Policies as they are to be."""

    policies: tuple[tuple[str, Policy], ...] = ()
    "(switch, policy then in force)."


def choose_places(current: Mapping[str, InForce], port: int | None, *, every: bool) -> list[tuple[str, int]]:
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
    current: Mapping[str, InForce],
    states: Mapping[str, SwitchState],
    store: LoopStore,
    asked: PolicyChange,
    places: list[tuple[str, int]],
    where: Callable[[str], object] = str,
) -> PolicyPlan:
    """What is asked of the policies of some places; `where` names a switch in errors. Pure. Raises FairlaneError."""
    traffic_class = program.check_class(asked.traffic_class)
    entries: dict[str, list[EntityChange]] = {}
    policies: list[tuple[str, Policy]] = []
    settings: dict[PolicyKey, PolicyState] = {}
    notes: dict[str, list[str]] = {}
    for switch, port in places:
        found, key, at = current[switch], (switch, port, traffic_class), f"{where(switch)}: port {port}"
        limit, known = need_limit(found.limits, port, where(switch)), store.policy(*key)
        new, changed = asked.of(at, port, limit.max_packets, found.policies.get(key[1:]), known)
        new = fitted(new, states[switch].port(port) if switch in states else None)
        before, changes = found.entries.get(key[1:]), entries.setdefault(switch, [])
        if not same_entity(before, new.entry):
            changes.append(EntityChange(before, new.entry))
        policies.append((switch, new))
        if changed != known:
            settings[key] = changed
            old, now = known.model_dump(mode="json"), changed.model_dump(mode="json")
            texts = [f"{name} {old[name]} becomes {now[name]}" for name in now if old[name] != now[name]]
            notes.setdefault(switch, []).append(f"port {port} class {traffic_class}: {', '.join(texts)}")
    return PolicyPlan(ChangeSet(entries), store.documents(settings), notes=notes, policies=tuple(policies))


def change_policies(
    targets: Targets,
    port: int | None,
    asked: PolicyChange,
    *,
    every: bool,
    dry_run: bool = False,
    as_json: bool = False,
) -> list[dict[str, Any]] | None:
    """Make what is asked at every place that the command means.

    Without a port it means all managed ports when `every`, else the only one there is.

    Returns:
        The policies then in force, each with `via` loop or direct; None where `dry_run` has printed what would be written.
    """
    k = asked.loop.get("k")
    if k is not None and not 0.1 <= k <= 100:
        raise out_of_range("k", f"{k:g}", 0.1, 100)
    states = {one.name: one for one in targets.run.switches} if targets.run is not None else {}

    async def plan(sites: Sites) -> PolicyPlan:
        names = [*sites.endpoints]
        found = await asyncio.gather(*[_read(sites, name) for name in names])
        current = dict(zip(names, found, strict=True))
        places = choose_places(current, port, every=every)
        return plan_policies(current, states, LoopStore(sites.folder), asked, places, sites.endpoint)

    made = carry_out(targets, plan, dry_run=dry_run, as_json=as_json)
    if made is None:
        return None
    about = {"via": made[1], "remembered": targets.folder is not None}
    return [{"switch": name, **answer_json(policy, states.get(name)), **about} for name, policy in made[0].policies]


async def _read(sites: Sites, switch: str) -> InForce:
    return await read_managed(await sites.reader(switch))
