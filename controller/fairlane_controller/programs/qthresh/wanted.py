# SPDX-License-Identifier: Apache-2.0
"""What a configuration means for one switch, and the other way round: limits, policies and classes as entries, a set-up, what is in force as a file says it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fairlane import Config, Place, Plain, Plan, Remembered, RunState, Wanted, port_state
from fairlane.switch import Entries
from finsy import P4TableEntry

from .model import QTHRESH_MIN_PACKETS, bounded_capacity
from .names import Scheme
from .policies import InForce, Policy, class_entries, class_rule, limit_entry, policy_in_force
from .settings import PolicyConfig, PolicySettings, QthreshPort, QthreshSections
from .store import LoopStore


@dataclass(frozen=True)
class SetupPlan(Plan):
    """What a topology is set up with; policies that are there stay, unless there is a `scheme` for class 0 of all managed ports."""

    run: RunState
    scheme: Scheme | None = None

    def wanted(self, switch: str, current: Entries) -> Wanted:
        """The limits and policies of the managed ports, and all current entries."""
        found, entries = InForce.of(current.values()), list[P4TableEntry]()
        for port in self.run.managed_ports(self.run.switch(switch)):
            entries.append(limit_entry(port, QthreshPort()))
            policy = policy_in_force(found.policies, port.port, 0)
            if self.scheme is not None:
                policy = policy.with_scheme(self.scheme).fitted(port)
            if self.scheme is not None or (port.port, 0) not in found.entries:
                entries.append(policy.entry)
        return Wanted([*entries, *current.values()])


# ---- a configuration -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QthreshPlan(Plan):
    """A configuration of a topology; what it does not name stays."""

    config: Config
    run: RunState | None
    store: LoopStore

    @property
    def _sections(self) -> QthreshSections:
        return self.config.sections or QthreshSections()

    def wanted(self, switch: str, current: Entries) -> Wanted:
        """Limits, policies and classes."""
        found = InForce.of(current.values())
        policies, classes = [*found.entries.values()], found.classes
        if self._sections.policies is not None:
            policies = [*self._policies(switch, found)]
        if self._sections.classes is not None:
            classes = class_entries(self._sections.classes, switch)
        return Wanted([*self._limits(switch, found).values(), *policies, *classes])

    def _limits(self, switch: str, found: InForce) -> dict[int, P4TableEntry]:
        """All limits; what the configuration leaves out of one stays."""
        limits, before = dict(found.limits), found.ports
        for place, port in (self.config.ports or {}).items():
            if place[0] != switch or port.managed is None:
                continue
            limits.pop(place[1], None)
            if port.managed:
                left_out = {"limit_packets", "ecn"} - port.model_fields_set
                if "queue_packets" in self.config.given.get(place, ()):
                    left_out.discard("limit_packets")
                known = before.get(place[1], port)
                new = port.model_copy(update={name: getattr(known, name) for name in left_out})
                limits[place[1]] = limit_entry(self.config.states[place], new)
        return limits

    def _policies(self, switch: str, found: InForce) -> Iterator[P4TableEntry]:
        limits = limits_of(self.config, self.run)
        named = {one.key[1:]: one for one in self._sections.policies or () if one.switch == switch}
        for key, one in named.items():
            current, place = found.policies.get(key), (switch, one.port)
            state = self.config.states.get(place) or port_state(self.run, place)
            if one.scheme is not Scheme.DROP_TAIL or current is not None:  # drop-tail is in force without an entry
                yield policy_of(one, current, limits.get(place, 0)).fitted(state).entry
        # Drop-tail that the configuration does not name is what an entry that nobody wrote would be.
        yield from (one.entry for key, one in found.policies.items() if key not in named and not one.is_limited)

    def remembered(self, switch: str) -> list[Remembered]:
        """Settings of policies that differ."""
        named = (one for one in self._sections.policies or () if one.switch == switch)
        return [found for one in named if (found := changed_settings(one, self.store)) is not None]


def limits_of(config: Config, run: RunState | None) -> dict[Place, int]:
    """Packets that each port lets wait that Qthresh manages once a configuration is in force: those of the topology, as the file changes them."""
    found: dict[Place, int] = {}
    if run is not None:
        found = {(one.name, port.port): port.queue_packets for one in run.switches for port in run.managed_ports(one)}
    for place, port in (config.ports or {}).items():
        if port.managed:
            found[place] = port.limit_packets or config.states[place].queue_packets
        elif port.managed is False:
            found.pop(place, None)
    return {place: packets for place, packets in found.items() if packets}


def policy_of(wanted: PolicyConfig, current: Policy | None, limit_packets: int) -> Policy:
    """What should be in force, without lanes. With mode auto the threshold is the loop's: the one in force stays, within the bounds.

    Args:
        wanted: what is configured.
        current: what is in force; None: nothing.
        limit_packets: packets that may wait at the port; 0: not known.
    """
    before = current or Policy(wanted.port, wanted.traffic_class, Scheme.DROP_TAIL)
    policy = before.with_scheme(wanted.scheme)
    if not policy.is_limited:
        return policy
    packets = wanted.threshold
    if packets is None:
        packets = min(max(policy.qthresh_packets, QTHRESH_MIN_PACKETS), bounded_capacity(limit_packets, wanted.weight))
    return replace(policy, qthresh_packets=packets, weight=wanted.weight)


def changed_settings(wanted: PolicyConfig, store: LoopStore) -> Remembered | None:
    """The new settings of a policy; None: they are as before. Its weight is in the entry too, which is what counts."""
    before, after = (one.model_dump(mode="json") for one in (store.policy(*wanted.key), wanted.settings))
    if before == after:
        return None
    ((name, value),) = store.documents({wanted.key: wanted.settings}).items()
    differ = [key for key in after if before[key] != after[key] and key != "weight"]
    new, old = ({key: data[key] for key in differ} for data in (after, before))
    return Remembered(name, f"port={wanted.port} class={wanted.traffic_class}", value, new, old)


# ---- what is in force ------------------------------------------------------------------------------------------------


def read_config(current: Mapping[str, Entries], run: RunState) -> Config:
    """Ports, policies and classes of all switches; rules of a class that no file can have are left out."""
    store, ports = LoopStore(run.folder), dict[Place, Any]()
    sections = dict[str, list[Any]](classes=[], policies=[])
    for switch, found in current.items():
        in_force = InForce.of(entry for entry in found.values() if not entry.is_const)
        ports |= {(switch, port): settings for port, settings in in_force.ports.items()}
        for key, policy in sorted(in_force.policies.items()):
            sections["policies"].append(plain_policy(switch, policy, store.policy(switch, *key)))
        for entry in sorted(in_force.classes, key=lambda one: (-one.priority, str(one.match))):
            if (rule := class_rule(switch, entry)) is not None:
                sections["classes"].append(rule)
    return Config(ports, QthreshSections.model_validate(sections))


def plain_policy(switch: str, policy: Policy, known: PolicySettings) -> Plain:
    """A policy that is in force, as a file says it."""
    data = {"switch": switch, "port": policy.port, "class": policy.traffic_class, "scheme": policy.scheme.value}
    data |= known.model_dump(mode="json", exclude_defaults=True)
    if policy.is_limited:
        data |= {"weight": policy.weight, **({} if known.threshold is None else {"threshold": policy.qthresh_packets})}
    return data


# ---- what a configuration must fulfil as a whole ----------------------------------------------------------------------


def problems_of(config: Config, run: RunState | None) -> Iterator[str]:
    """Limits within their queues; rules and policies that occur once and are possible. Each `policies[0].port: what, and what is allowed`."""
    for place, port in (config.ports or {}).items():
        at, queue = config.at[place], config.states[place].queue_packets
        if not port.managed:
            for key in port.model_fields_set & {"limit_packets", "ecn"}:
                yield f"{at}.{key}: the port is not managed: set managed to true, or leave {key} out"
        elif not (port.limit_packets or queue):
            yield f"{at}.managed: nothing says how many packets the queue has room for: give queue_packets or limit_packets"
        elif 0 < queue < (port.limit_packets or queue):
            # The program must refuse before the queue does, or its counters leak.
            yield f"{at}.limit_packets: {port.limit_packets} is more than the queue has room for ({queue} packets): must be at most {queue}"
    if config.sections is not None:
        yield from _classes(config.sections, run)
        yield from _policies(config.sections, config, run)


def _classes(sections: QthreshSections, run: RunState | None) -> Iterator[str]:
    rules = sections.classes or ()
    for index, rule in enumerate(rules):
        at = f"classes[{index}]"
        for place, other in enumerate(rules[:index]):
            is_same = (rule.ingress_port, rule.dscp, rule.pcp) == (other.ingress_port, other.dscp, other.pcp)
            if is_same and (rule.switch == other.switch or "" in (rule.switch, other.switch)):
                yield f"{at}: matches the same packets as classes[{place}]: one of them must go, or say more"
                break
        if rule.switch and run is not None:
            yield from run.unknown_place(at, rule.switch, rule.ingress_port, "ingress_port")


def _policies(sections: QthreshSections, config: Config, run: RunState | None) -> Iterator[str]:
    seen: dict[tuple[str, int, int], int] = {}
    limits = limits_of(config, run)
    for index, policy in enumerate(sections.policies or ()):
        at, place = f"policies[{index}]", (policy.switch, policy.port)
        if seen.setdefault(policy.key, index) != index:
            where = f"{policy.switch}:{policy.port} class {policy.traffic_class}"
            yield f"{at}: {where} is policies[{seen[policy.key]}] too; it may occur once"
        unknown = run.unknown_place(at, *place) if run is not None else []
        yield from unknown
        yield from (f"{at}.{problem}" for problem in beyond_limit(policy, limits.get(place, 0)))
        if run is not None and not unknown and place not in limits:
            listed = ", ".join(f"{switch}:{port}" for switch, port in sorted(limits)) or "none"
            yield f"{at}.port: {policy.switch}:{policy.port} is not managed (managed: {listed}): add it to ports with managed = true"


def beyond_limit(policy: PolicyConfig, limit_packets: int) -> Iterator[str]:
    """A threshold that is more than its port lets wait (0: not known)."""
    if 0 < limit_packets < (policy.threshold or 0):
        yield f"threshold: {policy.threshold} is more than the port lets wait ({limit_packets} packets): must be at most {limit_packets}"
