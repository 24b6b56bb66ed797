# SPDX-License-Identifier: Apache-2.0
"""Port limits and policies (scheme, threshold, weight) as values, and their entries in the switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.registry import check_program
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.shared import UNLIMITED, check_port

START_QTHRESH_PACKETS = 6
"""The threshold of a class whose scheme becomes qthresh before anything was measured: the largest of the paper's
best values, so that no link loses throughput while the loop measures."""


class Scheme(str, Enum):
    """How an egress port treats a class."""

    DROP_TAIL = "drop_tail"
    QTHRESH = "qthresh"


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

    def __post_init__(self) -> None:
        check_port(self.port)
        program.check_class(self.traffic_class)
        if self.scheme is Scheme.QTHRESH:
            if self.qthresh_packets is None:
                raise FairlaneError(ErrorCode.BAD_INPUT, "the scheme qthresh needs a threshold in packets")
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
    def entry(self) -> P4TableEntry:
        """The entry."""
        match = P4TableMatch(egress_port=self.port, traffic_class=self.traffic_class)
        if self.scheme is Scheme.DROP_TAIL:
            action = P4TableAction(program.ACTION_DROP_TAIL)
        else:
            weight = program.encode_weight(self.weight)
            action = P4TableAction(program.ACTION_SET_QTHRESH, qthresh=self.qthresh_packets, weight=weight)
        return P4TableEntry(program.TABLE_POLICY, match=match, action=action)

    @classmethod
    def from_entry(cls, entry: P4TableEntry) -> Policy | None:
        """The inverse of `entry`; None for a threshold or weight of 0, which others may have written."""
        match, args = _parts(entry)
        port, traffic_class = int(match["egress_port"]), int(match["traffic_class"])
        if not isinstance(entry.action, P4TableAction) or entry.action.name != program.ACTION_SET_QTHRESH:
            return cls(port, traffic_class, Scheme.DROP_TAIL)
        try:
            weight = program.decode_weight(int(args["weight"]))
            return cls(port, traffic_class, Scheme.QTHRESH, int(args["qthresh"]), weight)
        except FairlaneError:
            return None


def _parts(entry: P4TableEntry) -> tuple[dict[str, Any], dict[str, Any]]:
    action = entry.action
    return dict(entry.match or {}), dict(action.args) if isinstance(action, P4TableAction) else {}


async def read_limits(client: SwitchClient) -> dict[int, PortLimit]:
    """The managed ports of a switch; WRONG_PROGRAM when it runs another program than qthresh."""
    check_program("qthresh", client.table_names())
    limits = [PortLimit.from_entry(e) for e in await client.read_table(program.TABLE_PORT_LIMIT)]
    return {limit.port: limit for limit in limits}


async def read_policies(client: SwitchClient) -> dict[tuple[int, int], Policy]:
    """The policies that a switch holds, by (egress port, class)."""
    policies = [Policy.from_entry(e) for e in await client.read_table(program.TABLE_POLICY)]
    return {policy.key: policy for policy in policies if policy is not None}


def need_limit(limits: Mapping[int, PortLimit], port: int, where: object) -> PortLimit:
    """The limit of a managed port; UNKNOWN_NAME that lists the managed ports otherwise."""
    check_port(port)
    if port not in limits:
        ports = ", ".join(str(p) for p in sorted(limits)) or "none: run `fairlane config init`"
        raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"{where}: port {port} is not managed; managed ports: {ports}")
    return limits[port]
