# SPDX-License-Identifier: Apache-2.0
"""Port limits and policies (scheme, threshold, weight) as values, and their entries in the switch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

from fairlane import ErrorCode, FairlaneError, PortState, SwitchState, check_program
from fairlane.switch import UNLIMITED, SwitchClient, check_port
from finsy import P4TableAction, P4TableEntry, P4TableMatch

from . import names as program

START_QTHRESH_PACKETS = 6
"""The threshold of a class whose scheme becomes qthresh before anything was measured: the largest of the paper's
best values, so that no link loses throughput while the loop measures."""


class Scheme(str, Enum):
    """How an egress port treats a class."""

    DROP_TAIL = "drop_tail"
    QTHRESH = "qthresh"
    LANES = "lanes"
    "As qthresh, and each flow has a queue of its own, served by its weight."


LANE_SCHEDULERS = ("drr", "wrr")
"What serves the queues of a port by their weights."
LEAST_QUEUES = 4
"Of a port with lanes: one for what is in no lane, two for flows with an entry, one for the others."


class Lanes(NamedTuple):
    """Queues of a port that are lanes, each a power of two; 0: the port has none, and all flows share one queue."""

    own: int = 0
    "Of flows with an entry."
    by_hash: int = 0
    "Of flows without one."


NO_LANES = Lanes()


def lanes_of(port: PortState | None) -> Lanes:
    """The lanes that a port's queues make; none where it has too few or does not serve them by weight (`why_no_lanes`)."""
    if port is None or why_no_lanes(port):
        return NO_LANES
    own = 1 << (port.queues - 2).bit_length() - 1
    return Lanes(own, 1 << (port.queues - 1 - own).bit_length() - 1)


def why_no_lanes(port: PortState | None) -> str:
    """Why flows of a port share one queue; empty where they need not."""
    if port is None:
        return "nothing says what queues the port has"
    if port.scheduler in LANE_SCHEDULERS and port.queues >= LEAST_QUEUES:
        return ""
    return (
        f"the port has {port.queues or 'an unknown number of'} queues and the scheduler {port.scheduler or 'unknown'}; "
        f"lanes need at least {LEAST_QUEUES} and {' or '.join(LANE_SCHEDULERS)}"
    )


@dataclass(frozen=True)
class PortLimit:
    """One entry of `port_limit`: the port is managed."""

    port: int
    max_packets: int
    max_bytes: int = UNLIMITED
    report_period_us: int = program.REPORT_PERIOD_US
    ecn: bool = False

    @property
    def entry(self) -> P4TableEntry:
        """The entry."""
        action = P4TableAction(
            program.ACTION_SET_PORT_LIMIT,
            max_packets=self.max_packets,
            max_bytes=self.max_bytes,
            report_period_us=self.report_period_us,
            ecn=int(self.ecn),
        )
        return P4TableEntry(program.TABLE_PORT_LIMIT, match=P4TableMatch(egress_port=self.port), action=action)

    @classmethod
    def from_entry(cls, entry: P4TableEntry) -> PortLimit:
        """The inverse of `entry`."""
        match, args = _parts(entry)
        names = ("max_packets", "max_bytes", "report_period_us")
        return cls(int(match["egress_port"]), *(int(args[name]) for name in names), ecn=bool(args["ecn"]))


@dataclass(frozen=True)
class Policy:
    """One entry of `policy`: the scheme of an (egress port, class), its threshold in packets, its weight."""

    port: int
    traffic_class: int
    scheme: Scheme
    qthresh_packets: int | None = None
    weight: float = 1.0
    lanes: Lanes = NO_LANES
    "With scheme lanes; none: thresholds in one queue."
    spacing_us: int = 0
    "Between two refusals of a flow that has no more than twice its threshold waiting; 0: none."

    def __post_init__(self) -> None:
        check_port(self.port)
        program.check_class(self.traffic_class)
        if self.is_limited:
            if self.qthresh_packets is None:
                raise FairlaneError(ErrorCode.BAD_INPUT, f"the scheme {self.scheme.value} needs a threshold in packets")
            program.check_threshold(self.qthresh_packets)
            if self.qthresh_packets * program.encode_weight(self.weight) < program.WEIGHT_ONE:
                least = 1 / self.qthresh_packets
                raise FairlaneError(
                    ErrorCode.OUT_OF_RANGE,
                    f"weight {self.weight:g} with a threshold of {self.qthresh_packets} packets would admit nothing: "
                    f"the weight must be at least {least:.4g}",
                )

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
        match = P4TableMatch(egress_port=self.port, traffic_class=self.traffic_class)
        if not self.is_limited:
            action = P4TableAction(program.ACTION_DROP_TAIL)
        else:
            given = {"qthresh": self.qthresh_packets, "weight": program.encode_weight(self.weight)}
            if self.scheme is Scheme.LANES:
                own, by_hash = self.lanes
                given["spacing_us"] = self.spacing_us
                action = P4TableAction(program.ACTION_SET_LANES, **given, lanes=own, lanes_by_hash=by_hash)
            elif self.spacing_us:
                action = P4TableAction(program.ACTION_SET_QTHRESH_SPACED, **given, spacing_us=self.spacing_us)
            else:
                action = P4TableAction(program.ACTION_SET_QTHRESH, **given)
        return P4TableEntry(program.TABLE_POLICY, match=match, action=action)

    @classmethod
    def from_entry(cls, entry: P4TableEntry) -> Policy | None:
        """The inverse of `entry`; None for a threshold or weight of 0, which others may have written."""
        match, args = _parts(entry)
        port, traffic_class = int(match["egress_port"]), int(match["traffic_class"])
        name = entry.action.name if isinstance(entry.action, P4TableAction) else ""
        scheme = program.SCHEMES.get(name)
        if scheme is None:
            return cls(port, traffic_class, Scheme.DROP_TAIL)
        lanes = Lanes(int(args.get("lanes", 0)), int(args.get("lanes_by_hash", 0)))
        try:
            weight = program.decode_weight(int(args["weight"]))
            spacing_us = int(args.get("spacing_us", 0))
            return cls(port, traffic_class, Scheme(scheme), int(args["qthresh"]), weight, lanes, spacing_us)
        except FairlaneError:
            return None


def fitted(policy: Policy, port: PortState | None) -> Policy:
    """The policy with the lanes of its port, where it is to have lanes."""
    return replace(policy, lanes=lanes_of(port)) if policy.scheme is Scheme.LANES else policy


def _parts(entry: P4TableEntry) -> tuple[dict[str, Any], dict[str, Any]]:
    action = entry.action
    return dict(entry.match or {}), dict(action.args) if isinstance(action, P4TableAction) else {}


class InForce(NamedTuple):
    """What a switch has of the program's tables."""

    limits: dict[int, PortLimit]
    "By egress port."
    policies: dict[tuple[int, int], Policy]
    "By (egress port, class); what others wrote may be none of ours."
    entries: dict[tuple[int, int], P4TableEntry]
    "Of policies, by the same."
    classes: Sequence[P4TableEntry] = ()

    @classmethod
    def of(cls, entries: Iterable[P4TableEntry]) -> InForce:
        """What these entries are."""
        tables: dict[str, list[P4TableEntry]] = {}
        for entry in entries:
            tables.setdefault(entry.table_id, []).append(entry)
        limits = map(PortLimit.from_entry, tables.get(program.TABLE_PORT_LIMIT, ()))
        of_policies = tables.get(program.TABLE_POLICY, [])
        policies = [one for one in map(Policy.from_entry, of_policies) if one is not None]
        return cls(
            {limit.port: limit for limit in limits},
            {one.key: one for one in policies},
            {(int(entry["egress_port"]), int(entry["traffic_class"])): entry for entry in of_policies},
            tables.get(program.TABLE_CLASS, []),
        )


async def read_managed(client: SwitchClient) -> InForce:
    """The managed ports of a switch and its policies, in one read; WRONG_PROGRAM when it runs another program."""
    check_program("qthresh", client.table_names())
    return InForce.of(await client.read_tables((program.TABLE_PORT_LIMIT, program.TABLE_POLICY)))


def policy_for(
    scheme: Scheme,
    port: int,
    traffic_class: int,
    before: Policy | None,
    packets: int | None = None,
    weight: float | None = None,
) -> Policy:
    """The policy with a scheme, without lanes (`fitted`); None: as `before` has it, else what a class begins with."""
    if scheme is Scheme.DROP_TAIL:
        return Policy(port, traffic_class, scheme)
    old = (
        before
        if before is not None and before.is_limited
        else Policy(port, traffic_class, scheme, START_QTHRESH_PACKETS)
    )
    spacing_us = old.spacing_us if scheme is Scheme.LANES else 0
    packets = old.qthresh_packets if packets is None else packets
    return Policy(port, traffic_class, scheme, packets, old.weight if weight is None else weight, spacing_us=spacing_us)


def need_limit(limits: Mapping[int, PortLimit], port: int, where: object) -> PortLimit:
    """The limit of a managed port; UNKNOWN_NAME that lists the managed ports otherwise."""
    check_port(port)
    if port not in limits:
        ports = ", ".join(str(p) for p in sorted(limits)) or "none: run `fairlane config init`"
        raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"{where}: port {port} is not managed; managed ports: {ports}")
    return limits[port]


def policy_json(policy: Policy) -> dict[str, Any]:
    """A policy as plain data."""
    data = {
        "port": policy.port,
        "class": policy.traffic_class,
        "scheme": policy.scheme.value,
        "qthresh_packets": policy.qthresh_packets,
        "weight": policy.weight,
    }
    return {**data, "lanes": policy.lanes.own} if policy.scheme is Scheme.LANES else data


def answer_json(policy: Policy, state: SwitchState | None) -> dict[str, Any]:
    """A policy as the answer to who asked for it: `why_no_lanes` is there where the switch of that state cannot give its flows lanes."""
    data = policy_json(policy)
    if policy.scheme is Scheme.LANES and not policy.lanes.own:
        data["why_no_lanes"] = why_no_lanes(state.port(policy.port) if state is not None else None)
    return data
