# SPDX-License-Identifier: Apache-2.0
"""Entries of the program's tables as values, and back: limits of ports, policies (scheme, threshold, weight, lanes), rules of classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fairlane import ErrorCode, FairlaneError, PortState, check_program
from fairlane.switch import UNLIMITED, PortNumber, SwitchClient, match_of
from finsy import P4TableAction, P4TableEntry, P4TableMatch

from . import names
from .names import WEIGHT_MAX, WEIGHT_ONE, Scheme, encode_weight
from .settings import ClassConfig, ClassNumber, QthreshPort, Threshold, Weight

START_QTHRESH_PACKETS = 6
"""The threshold of a class whose scheme becomes qthresh before anything was measured: the largest of the paper's
best values, so that no link loses throughput while the loop measures."""
REPORT_PERIOD_US = 200_000
"Between two reports of a port (BW, L_D, N_C): four of them within a second show a change."
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
    if why_no_lanes(port):
        return NO_LANES
    own = 1 << (port.queues - 2).bit_length() - 1
    return Lanes(own, 1 << (port.queues - 1 - own).bit_length() - 1)


def why_no_lanes(port: PortState) -> str:
    """Why flows of a port share one queue; empty where they need not."""
    if port.scheduler in LANE_SCHEDULERS and port.queues >= LEAST_QUEUES:
        return ""
    return (
        f"the port has {port.queues or 'an unknown number of'} queues and the scheduler {port.scheduler or 'unknown'}; "
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
    def is_shared(self) -> bool:
        """Whether the flows share one queue, so that their thresholds decide about their shares."""
        return self.is_limited and not self.lanes.own

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


def action_of(entry: P4TableEntry) -> tuple[str, dict[str, int]]:
    """Name and parameters of an entry's action; nothing where it has none."""
    action = entry.action
    if not isinstance(action, P4TableAction):
        return "", {}
    return action.name, {name: int(value) for name, value in action.args.items()}


def limit_entry(port: PortState, settings: QthreshPort) -> P4TableEntry:
    """The entry that makes a port managed. Raises BAD_FILE where nothing says what its queue has room for."""
    packets = settings.limit_packets or port.queue_packets
    if packets < 1:
        problem = f"port {port.port}: nothing says how many packets the queue has room for: give queue_packets or limit_packets"
        raise FairlaneError(ErrorCode.BAD_FILE, problem)
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
    match: dict[str, Any] = dict(match_of(entry))
    given = {name: match[name][0] for name in CLASS_MASKS if match.get(name) is not None}
    rule = ClassConfig.model_construct(traffic_class=action_of(entry)[1].get("traffic_class"), switch=switch, **given)
    (same,) = class_entries([rule], switch)
    is_rule = given and (dict(match_of(same)), same.priority, same.action) == (match, entry.priority, entry.action)
    return rule if is_rule else None


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

    def limit_packets(self, port: int) -> int:
        """What a managed port lets wait."""
        return action_of(self.limits[port])[1]["max_packets"]

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


def policy_in_force(policies: Mapping[tuple[int, int], Policy], port: int, traffic_class: int) -> Policy:
    """The policy of a class: drop-tail without an entry."""
    return policies.get((port, traffic_class)) or Policy(port, traffic_class, Scheme.DROP_TAIL)
