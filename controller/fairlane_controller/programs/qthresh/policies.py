# SPDX-License-Identifier: Apache-2.0
"""Limits of ports, policies and classes: as entries of the program's tables, as a configuration, and as what is stored beside the switches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from fairlane import (
    Config,
    ErrorCode,
    FairlaneError,
    Place,
    Plain,
    Plan,
    PortState,
    Remembered,
    RunState,
    Wanted,
    check_program,
    port_state,
)
from fairlane.changes import Documents
from fairlane.switch import UNLIMITED, Entries, PortNumber, SwitchClient, match_of, same_entity
from finsy import P4TableAction, P4TableEntry, P4TableMatch
from pydantic import TypeAdapter

from . import names
from .model import QTHRESH_MIN_PACKETS, bounded_capacity
from .names import WEIGHT_MAX, WEIGHT_ONE, Scheme, action_of, encode_weight
from .settings import (
    ClassConfig,
    ClassNumber,
    PolicyConfig,
    PolicySettings,
    QthreshPort,
    QthreshSections,
    Threshold,
    Weight,
)

START_QTHRESH_PACKETS = 6
"""The threshold of a class whose scheme becomes qthresh before anything was measured: the largest of the paper's
best values, so that no link loses throughput while the loop measures."""
REPORT_PERIOD_US = 200_000
"Between two reports of a port (BW, L_D, N_C): four of them within a second show a change."
NO_LIMIT = "nothing says how many packets the queue has room for: give queue_packets or limit_packets"
LANE_SCHEDULERS = ("drr", "wrr")
"What serves the queues of a port by their weights."
LEAST_QUEUES = 4
"Of a port with lanes: one for what is in no lane, two for flows with an entry, one for the others."
CLASS_MASKS = {"ingress_port": 0x1FF, "dscp": 0x3F, "pcp": 0x7}
"""What a rule of a class may match, the more precise first."""


class Lanes(NamedTuple):
    """Queues of a port that are lanes, each a power of two; 0: the port has none, and all flows share one queue."""

    own: int = 0
    "Of flows with an entry."
    by_hash: int = 0
    "Of flows without one."


NO_LANES = Lanes()
ACTIONS = {Scheme.DROP_TAIL: "drop_tail", Scheme.QTHRESH: "set_qthresh", Scheme.LANES: "set_lanes"}


def lanes_of(port: PortState) -> Lanes:
    """The lanes that a port's queues make; none where it has too few or does not serve them by weight (`why_no_lanes`)."""
    if why_no_lanes(port.scheduler, port.queues):
        return NO_LANES
    own = 1 << (port.queues - 2).bit_length() - 1
    return Lanes(own, 1 << (port.queues - 1 - own).bit_length() - 1)


def why_no_lanes(scheduler: str, queues: int) -> str:
    """Why flows of a port share one queue; empty where they need not. An empty scheduler and 0 queues are unknown."""
    if scheduler in LANE_SCHEDULERS and queues >= LEAST_QUEUES:
        return ""
    return (
        f"the port has {queues or 'an unknown number of'} queues and the scheduler {scheduler or 'unknown'}; "
        f"lanes need at least {LEAST_QUEUES} and {' or '.join(LANE_SCHEDULERS)}"
    )


@dataclass(frozen=True)
class Policy:
    """One entry of `policy`: the scheme of an (egress port, class), its threshold in packets, its weight."""

    port: PortNumber
    traffic_class: ClassNumber
    scheme: Scheme
    qthresh_packets: Threshold = START_QTHRESH_PACKETS
    weight: Weight = 1.0
    lanes: Lanes = NO_LANES
    "With scheme lanes; none: thresholds in one queue."
    spacing_us: int = 0
    "Between two refusals of a flow that has no more than twice its threshold waiting; 0: none."

    @property
    def key(self) -> tuple[int, int]:
        """(egress port, class)."""
        return self.port, self.traffic_class

    @property
    def is_limited(self) -> bool:
        """Whether each flow has a threshold."""
        return self.scheme is not Scheme.DROP_TAIL

    @property
    def entry(self) -> P4TableEntry:
        """The entry."""
        args = {"qthresh": self.qthresh_packets, "weight": encode_weight(self.weight)} if self.is_limited else {}
        if self.scheme is Scheme.LANES:
            args |= {"lanes": self.lanes.own, "lanes_by_hash": self.lanes.by_hash, "spacing_us": self.spacing_us}
        match = P4TableMatch(egress_port=self.port, traffic_class=self.traffic_class)
        return P4TableEntry(names.TABLE_POLICY, match=match, action=P4TableAction(ACTIONS[self.scheme], **args))

    @classmethod
    def from_entry(cls, entry: P4TableEntry) -> Policy | None:
        """The inverse of `entry`; None for a threshold and weight that admit nothing, or a larger weight than a file may have: others may write them."""
        key = int(entry["egress_port"]), int(entry["traffic_class"])
        name, args = action_of(entry)
        if not name.startswith("set_"):
            return cls(*key, Scheme.DROP_TAIL)
        scheme = Scheme.LANES if name == ACTIONS[Scheme.LANES] else Scheme.QTHRESH
        packets, weight = args["qthresh"], args["weight"]
        if packets * weight < WEIGHT_ONE or weight > WEIGHT_MAX * WEIGHT_ONE:
            return None
        lanes = Lanes(args.get("lanes", 0), args.get("lanes_by_hash", 0))
        return cls(*key, scheme, packets, weight / WEIGHT_ONE, lanes, args.get("spacing_us", 0))

    def with_scheme(self, scheme: Scheme) -> Policy:
        """With another scheme, without lanes (`fitted`); from drop-tail on with the threshold that a class begins with."""
        if not self.is_limited or scheme is Scheme.DROP_TAIL:
            return Policy(self.port, self.traffic_class, scheme)
        return replace(self, scheme=scheme, lanes=NO_LANES, spacing_us=self.spacing_us if scheme is Scheme.LANES else 0)

    def fitted(self, port: PortState) -> Policy:
        """With the lanes of its port, where it is to have lanes."""
        return replace(self, lanes=lanes_of(port)) if self.scheme is Scheme.LANES else self

    @property
    def values(self) -> dict[str, Any]:
        """Plain data, beside its port."""
        return {
            "traffic_class": self.traffic_class,
            "scheme": self.scheme.value,
            "qthresh_packets": self.qthresh_packets if self.is_limited else None,
            "weight": self.weight,
            "lanes": self.lanes.own if self.scheme is Scheme.LANES else None,
        }


def limit_entry(port: PortState, settings: QthreshPort) -> P4TableEntry:
    """The entry that makes a port managed. Raises BAD_FILE where nothing says what its queue has room for."""
    packets = settings.limit_packets or port.queue_packets
    if packets < 1:
        raise ErrorCode.BAD_FILE(f"port {port.port}: {NO_LIMIT}")
    args = {"max_packets": packets, "max_bytes": port.queue_bytes or UNLIMITED, "ecn": int(settings.ecn)}
    action = P4TableAction("set_port_limit", **args, report_period_us=REPORT_PERIOD_US)
    return P4TableEntry(names.TABLE_PORT_LIMIT, match=P4TableMatch(egress_port=port.port), action=action)


def class_entries(classes: Iterable[ClassConfig], switch: str) -> list[P4TableEntry]:
    """`flow_class` of a switch."""
    made: list[P4TableEntry] = []
    for rule in classes:
        given = {name: getattr(rule, name) for name in CLASS_MASKS}
        match = {name: (value, CLASS_MASKS[name]) for name, value in given.items() if value is not None}
        action = P4TableAction("set_class", traffic_class=rule.traffic_class)
        entry = P4TableEntry(names.TABLE_CLASS, match=P4TableMatch(match), action=action, priority=rule.priority)
        if rule.switch in ("", switch):
            made.append(entry)
    return made


def class_rule(switch: str, entry: P4TableEntry) -> ClassConfig | None:
    """The inverse of `class_entries`; None for an entry that is no rule of a file, which others have written."""
    given = {name: pair[0] for name, pair in match_of(entry) if pair is not None}
    rule = ClassConfig.model_construct(traffic_class=action_of(entry)[1].get("traffic_class"), switch=switch, **given)
    return rule if given and same_entity(class_entries([rule], switch)[0], entry) else None


class InForce(NamedTuple):
    """What a switch has of the program's tables."""

    limits: dict[int, P4TableEntry]
    "By egress port."
    policies: dict[tuple[int, int], Policy]
    "By (egress port, class); what others wrote may be none of ours."
    entries: dict[tuple[int, int], P4TableEntry]
    "Of policies, by the same."
    classes: list[P4TableEntry]

    @property
    def ports(self) -> dict[int, QthreshPort]:
        """The settings of the managed ports, also those that a file may not have."""
        args = {port: action_of(entry)[1] for port, entry in self.limits.items()}
        return {
            port: QthreshPort.model_construct(managed=True, limit_packets=one["max_packets"], ecn=bool(one["ecn"]))
            for port, one in args.items()
        }

    def policy(self, port: int, traffic_class: int) -> Policy:
        """The policy of a class: drop-tail without an entry."""
        return self.policies.get((port, traffic_class)) or Policy(port, traffic_class, Scheme.DROP_TAIL)

    @classmethod
    def of(cls, entries: Iterable[P4TableEntry]) -> InForce:
        """What these entries are."""
        found = cls({}, {}, {}, [])
        for entry in entries:
            if entry.table_id == names.TABLE_PORT_LIMIT:
                found.limits[int(entry["egress_port"])] = entry
            elif entry.table_id == names.TABLE_CLASS:
                found.classes.append(entry)
            elif entry.table_id == names.TABLE_POLICY:
                found.entries[int(entry["egress_port"]), int(entry["traffic_class"])] = entry
        policies = map(Policy.from_entry, found.entries.values())
        found.policies.update({one.key: one for one in policies if one is not None})
        return found


async def read_managed(client: SwitchClient) -> InForce:
    """The managed ports of a switch and its policies, in one read; WRONG_PROGRAM when it runs another program."""
    check_program("qthresh", client.table_names())
    return InForce.of(await client.read_tables((names.TABLE_PORT_LIMIT, names.TABLE_POLICY)))


# ---- what the loop must remember over a restart and the switch has not got ----------------------------------------------

CURRENT = "current/"
"""Documents `current/SWITCH`: its policies."""
_POLICIES = TypeAdapter(list[Policy])


class LoopStore(Documents[PolicySettings]):
    """Settings of every policy (documents `policy/SWITCH/PORT/CLASS`); `folder` None keeps them in memory only."""

    def __init__(self, folder: Path | None) -> None:
        """Raises BAD_FILE where the state file cannot be understood."""
        super().__init__(folder, "policy/", PolicySettings, "settings of policies")
        self._is_persistent = folder is not None
        self._current: dict[str, Any] = {}
        self._writing = threading.Lock()

    def policy(self, switch: str, port: int, traffic_class: int) -> PolicySettings:
        """The settings of a policy, the defaults where it was never set."""
        return self.get(f"{switch}/{port}/{traffic_class}")

    def read_policies(self, switch: str) -> list[Policy]:
        """The policies that the switch had when a loop served it last; none when that is not known, or not understood."""
        try:
            return _POLICIES.validate_python(self.store.get(CURRENT + switch) or [])
        except (ValueError, FairlaneError):
            return []

    def remember(self, switch: str, policies: Iterable[Policy]) -> None:
        """What the switch has now, for a loop that finds it restarted; when the disk is full, this alone is lost."""
        current = _POLICIES.dump_python([*policies], mode="json")
        if self._is_persistent and current and self._current.get(switch) != current:
            self._current[switch] = current
            asyncio.get_running_loop().run_in_executor(None, self._write, switch)

    def _write(self, switch: str) -> None:
        """In a thread of its own; the newest one last, where the state file is busy."""
        with self._writing, suppress(FairlaneError):
            self.store.put({CURRENT + switch: self._current[switch]})


# ---- a set-up --------------------------------------------------------------------------------------------------------


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
            policy = found.policy(port.port, 0)
            if self.scheme is not None:
                policy = policy.with_scheme(self.scheme).fitted(port)
            if self.scheme is not None or (port.port, 0) not in found.entries:
                entries.append(policy.entry)
        return Wanted([*entries, *current.values()])


# ---- a configuration -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConfigPlan(Plan):
    """A configuration of a topology; what it does not name stays."""

    config: Config
    run: RunState | None
    store: LoopStore

    @property
    def concerned(self) -> Collection[str] | None:
        """All where there are policies or classes: what they do not name is removed."""
        return self.config.switches if self.config.sections is None else None

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
    ((name, value),) = store.plain({"/".join(map(str, wanted.key)): wanted.settings}).items()
    differ = [key for key in after if before[key] != after[key] and key != "weight"]
    new, old = ({key: data[key] for key in differ} for data in (after, before))
    return Remembered(name, f"port={wanted.port} class={wanted.traffic_class}", value, new, old)


# ---- what is in force ------------------------------------------------------------------------------------------------


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
            yield f"{at}.managed: {NO_LIMIT}"
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
