# SPDX-License-Identifier: Apache-2.0
"""What a configuration means for one switch, and the other way round: limits, policies and classes as entries, a set-up, what is in force as a file says it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairlane import Config, ErrorCode, FairlaneError, Place, Plan, PortState, Remembered, RunState, SwitchState, Wanted
from fairlane.switch import UNLIMITED, Entries, match_of
from finsy import P4TableAction, P4TableEntry, P4TableMatch

from . import names as program
from .decide import bounded_capacity
from .model import QTHRESH_MIN_PACKETS
from .policies import START_QTHRESH_PACKETS, InForce, Policy, PortLimit, Scheme, fitted, policy_for
from .settings import ClassConfig, PolicyConfig, QthreshPort, QthreshSections
from .store import LoopStore, Mode, PolicyState


def limit_of(state: SwitchState, port: PortState, ecn: bool = False) -> PortLimit:
    """The limit of a managed port; BAD_FILE when the run state does not say what its queue holds."""
    if port.queue_packets < 1:
        raise FairlaneError(
            ErrorCode.BAD_FILE,
            f"the run state gives port {port.port} of switch {state.name} no queue_packets: "
            "a managed port must refuse before its queue overflows",
        )
    return PortLimit(port.port, port.queue_packets, port.queue_bytes or UNLIMITED, ecn=ecn)


def set_up_entries(
    run: RunState,
    state: SwitchState,
    current: Mapping[tuple[int, int], Policy],
    scheme: Scheme | None = None,
    classes: Sequence[int] = (0,),
    policies: Iterable[Policy] = (),
) -> list[P4TableEntry]:
    """Limits and policies of the managed ports of a switch that has the policies `current`. Raises BAD_FILE.

    Without `scheme` the policies that the switch holds stay, and where there is none the program's own default
    (drop-tail) holds; `policies` are what the switch should hold wherever it holds something else.
    """
    ports = run.managed_ports(state)
    entries = [limit_of(state, port).entry for port in ports]
    known = {policy.key: policy for policy in policies}
    entries += [fitted(policy, state.port(policy.port)).entry for policy in known.values()]
    for port in ports:
        for traffic_class in classes:
            if (port.port, traffic_class) in known:
                continue
            before = current.get((port.port, traffic_class))
            if scheme is not None:
                entries.append(fitted(policy_for(scheme, port.port, traffic_class, before), port).entry)
            elif before is None:
                entries.append(Policy(port.port, traffic_class, Scheme.DROP_TAIL).entry)
    return entries


@dataclass(frozen=True)
class SetupPlan(Plan):
    """What a topology is set up with; policies that are there stay."""

    run: RunState
    scheme: Scheme | None = None

    def wanted(self, switch: str, current: Entries) -> Wanted:
        """The limits and policies of the managed ports, and all current entries."""
        policies = InForce.of(current.values()).policies
        entries = set_up_entries(self.run, self.run.switch(switch), policies, self.scheme)
        return Wanted([*entries, *current.values()])


def limit_of_port(port: QthreshPort, state: PortState) -> PortLimit | None:
    """The limit of a managed port; None when nothing says what its queue holds."""
    packets = port.limit_packets or state.queue_packets
    if packets < 1:
        return None
    period_us = program.REPORT_PERIOD_US if port.report_period is None else round(port.report_period * 1e6)
    octets = port.limit_bytes or state.queue_bytes or UNLIMITED
    return PortLimit(state.port, packets, octets, period_us, port.ecn)


def managed_places(config: Config, run: RunState) -> dict[Place, PortLimit]:
    """The ports that Qthresh manages once the file is in force: those of the topology, as the file changes them."""
    found: dict[Place, PortLimit] = {}
    for switch in run.switches:
        for state in run.managed_ports(switch):
            if state.queue_packets > 0:
                found[switch.name, state.port] = PortLimit(state.port, state.queue_packets)
    for place, port in (config.ports or {}).items():
        limit = limit_of_port(port, config.states[place]) if port.managed else None
        if limit is not None:
            found[place] = limit
        elif port.managed is False:
            found.pop(place, None)
    return found


def policy_of(wanted: PolicyConfig, current: Policy | None, limit: PortLimit | None) -> Policy:
    """What should be in force, without lanes (`fitted`). With mode auto the threshold is the loop's: the one in force stays, within the bounds."""
    if wanted.scheme is Scheme.DROP_TAIL:
        return Policy(wanted.port, wanted.traffic_class, Scheme.DROP_TAIL)
    packets = wanted.threshold
    if packets is None:
        most = bounded_capacity(limit.max_packets if limit is not None else 0, wanted.weight)
        low, high = max(wanted.min_packets or 1, QTHRESH_MIN_PACKETS), min(wanted.max_packets or most, most)
        start = current.qthresh_packets if current is not None else None
        packets = max(1, min(max(START_QTHRESH_PACKETS if start is None else start, low), high))
    return policy_for(wanted.scheme, wanted.port, wanted.traffic_class, current, packets, wanted.weight)


def settings_of(wanted: PolicyConfig, before: PolicyState) -> PolicyState | None:
    """What the loop is to remember; None with drop-tail. What was pinned once stays with mode auto."""
    if wanted.scheme is Scheme.DROP_TAIL:
        return None
    given = {name: getattr(wanted, name) for name in ("weight", "k", "self_tuning", "min_packets", "max_packets")}
    mode = wanted.mode or (Mode.AUTO if wanted.threshold is None else Mode.MANUAL)
    pinned = before.pinned_packets if wanted.threshold is None else wanted.threshold
    return PolicyState(mode=mode, pinned_packets=pinned, **given)


def file_settings(settings: PolicyState) -> dict[str, object]:
    """The settings that a file can contain: with mode auto without an earlier pinned value."""
    data = settings.model_dump(mode="json")
    if settings.mode is Mode.AUTO:
        del data["pinned_packets"]
    return data


_MASKS = {"ingress_port": 0x1FF, "dscp": 0x3F, "pcp": 0x7}
"""What a rule of a class may match, the more precise first."""


def class_entries(classes: Iterable[ClassConfig], switch: str) -> list[P4TableEntry]:
    """`flow_class` of a switch."""
    made: list[P4TableEntry] = []
    for rule in classes:
        if rule.switch not in ("", switch):
            continue
        given = {name: getattr(rule, name) for name in _MASKS}
        match = {name: (value, _MASKS[name]) for name, value in given.items() if value is not None}
        action = P4TableAction(program.ACTION_SET_CLASS, traffic_class=rule.traffic_class)
        made.append(P4TableEntry(program.TABLE_CLASS, match=P4TableMatch(match), action=action, priority=rule.priority))
    return made


@dataclass(frozen=True)
class QthreshPlan(Plan):
    """A configuration of a topology; what it does not name stays."""

    config: Config
    run: RunState | None
    store: LoopStore

    def wanted(self, switch: str, current: Entries) -> Wanted:
        """Limits, policies and classes."""
        found, sections = InForce.of(current.values()), self.config.sections
        limits = self._limits(switch, found.limits)
        policies, classes = [*found.entries.values()], found.classes
        if sections is not None and sections.policies is not None:
            policies = self._policies(switch, found.policies, limits)
        if sections is not None and sections.classes is not None:
            classes = class_entries(sections.classes, switch)
        return Wanted([*(limit.entry for limit in limits.values()), *policies, *classes])

    def _limits(self, switch: str, limits: Mapping[int, PortLimit]) -> dict[int, PortLimit]:
        """All limits; what the configuration leaves out of one stays."""
        found = dict(limits)
        for place, port in (self.config.ports or {}).items():
            if place[0] != switch or port.managed is None:
                continue
            old = limits.get(place[1])
            found.pop(place[1], None)
            limit = limit_of_port(port, self.config.states[place]) if port.managed else None
            if limit is None:
                continue
            stays = {
                "max_packets": port.limit_packets is None and "queue_packets" not in self.config.given.get(place, ()),
                "max_bytes": port.limit_bytes is None,
                "report_period_us": port.report_period is None,
                "ecn": "ecn" not in port.model_fields_set,
            }
            before = {name: getattr(old, name) for name, left_out in stays.items() if left_out and old is not None}
            found[place[1]] = replace(limit, **before)
        return found

    def _policies(
        self, switch: str, current: Mapping[tuple[int, int], Policy], limits: Mapping[int, PortLimit]
    ) -> list[P4TableEntry]:
        managed = managed_places(self.config, self.run) if self.run is not None else {}
        made, said = list[P4TableEntry](), set[tuple[int, int]]()
        for one in self._policies_of(switch):
            key = (one.port, one.traffic_class)
            said.add(key)
            limit = managed.get((switch, one.port)) or limits.get(one.port)
            if one.scheme is not Scheme.DROP_TAIL or key in current:  # drop-tail is in force without an entry
                state = self.config.states.get((switch, one.port))
                if state is None and self.run is not None:
                    state = self.run.switch(switch).port(one.port)
                made.append(fitted(policy_of(one, current.get(key), limit), state).entry)
        # Drop-tail without a word in the configuration is what an entry that nobody wrote would be.
        rest = [one.entry for key, one in current.items() if key not in said and one.scheme is Scheme.DROP_TAIL]
        return [*made, *rest]

    def _policies_of(self, switch: str) -> list[PolicyConfig]:
        sections = self.config.sections
        return [one for one in (sections.policies or () if sections is not None else ()) if one.switch == switch]

    def remembered(self, switch: str) -> list[Remembered]:
        """Settings of policies that differ."""
        found: list[Remembered] = []
        for one in self._policies_of(switch):
            before = self.store.policy(switch, one.port, one.traffic_class)
            settings = settings_of(one, before)
            if settings is None:
                continue
            new, old = file_settings(settings), file_settings(before)
            # The weight is in the entry too, which is what counts.
            names = [name for name in {**new, **old} if new.get(name) != old.get(name) and name != "weight"]
            if names or settings.weight != before.weight:
                place = f"port={one.port} class={one.traffic_class}"
                words = [{name: data.get(name) for name in names} for data in (new, old)]
                ((name, value),) = self.store.documents({one.key: settings}).items()
                found.append(Remembered(name, place, value, *words))
        return found


Plain = dict[str, Any]


def read_config(current: Mapping[str, Entries], run: RunState) -> Config:
    """Ports, policies and classes of all switches."""
    store, ports = LoopStore(run.folder), dict[Place, Any]()
    policies, classes, notes = list[Plain](), list[Plain](), list[str]()
    for switch, found in current.items():
        in_force = InForce.of(entry for entry in found.values() if not entry.is_const)
        ports |= {(switch, port): limit_settings(limit) for port, limit in in_force.limits.items()}
        for key, policy in sorted(in_force.policies.items()):
            policies.append(_policy(switch, policy, store.policy(switch, *key)))
        for entry in sorted(in_force.classes, key=lambda one: (-one.priority, str(one.match))):
            rule = _class(switch, entry)
            if rule is None:
                words = " ".join(f"{name}={value}" for name, value in match_of(entry))
                notes.append(f"{switch}: {program.TABLE_CLASS} {words} is no rule of a file and is left out")
            else:
                classes.append(rule)
    sections = QthreshSections.model_validate({"classes": classes, "policies": policies})
    return Config(ports, sections, notes=tuple(notes))


def limit_settings(limit: PortLimit) -> QthreshPort:
    """The settings of a managed port, also those that a file may not have."""
    size: Plain = {} if limit.max_bytes == UNLIMITED else {"limit_bytes": limit.max_bytes}
    held = {"limit_packets": limit.max_packets, "report_period": limit.report_period_us / 1e6, "ecn": limit.ecn}
    return QthreshPort.model_construct(managed=True, **held, **size)


def _policy(switch: str, held: Policy, settings: PolicyState) -> Plain:
    data: Plain = {"switch": switch, "port": held.port, "class": held.traffic_class, "scheme": held.scheme.value}
    if held.scheme is Scheme.DROP_TAIL:
        return data
    data |= {"mode": settings.mode.value, "weight": held.weight, "k": settings.k, "self_tuning": settings.self_tuning}
    if settings.mode is Mode.MANUAL:
        data["threshold"] = held.qthresh_packets
    for name in ("min_packets", "max_packets"):
        value = getattr(settings, name)
        if value is not None:
            data[name] = value
    return data


def _class(switch: str, entry: P4TableEntry) -> Plain | None:
    """A rule of the file; None for an entry with another mask or priority, which others have written."""
    if not isinstance(entry.action, P4TableAction):
        return None
    data: Plain = {"class": int(entry.action.args["traffic_class"]), "switch": switch}
    match = dict(match_of(entry))
    rank = 0
    for place, (name, mask) in enumerate(_MASKS.items()):
        found: Any = match.get(name)
        if found is None:
            continue
        if int(found[1]) != mask:
            return None
        data[name] = int(found[0])
        rank += 4 >> place
    return data if rank == entry.priority and rank else None
