# SPDX-License-Identifier: Apache-2.0
"""What is known of a port and its queues, what can be changed, and what a client of either kind does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, fields
from types import TracebackType
from typing import Any, Protocol

from fairlane_controller.errors import ErrorCode, FairlaneError, out_of_range

SCHEDULERS = ("strict", "wrr", "drr", "calendar", "fq")
LINK_LAYERS = ("none", "ethernet", "atm")
RATE_BPS_MAX = 10**12
QUEUES_MAX = 4096
_U32 = 2**32 - 1
_NAMES = {"rate_bps": "rate", "queue_packets": "queue capacity", "queue_bytes": "queue capacity"}


@dataclass(frozen=True)
class QueueInfo:
    """One queue of a port."""

    queue: int
    weight: int | None = None
    waiting_packets: int | None = None
    waiting_bytes: int | None = None
    waiting_cells: int | None = None
    sent_packets: int | None = None
    sent_bytes: int | None = None
    dropped_packets: int | None = None
    dropped_bytes: int | None = None
    max_waiting_bytes: int | None = None
    "The most that ever waited."


@dataclass(frozen=True)
class PortInfo:
    """One port. A limit that is None is no limit on the embedded switch; on BMv2 None is what cannot be known."""

    port: int
    interface: str | None = None
    admin_up: bool | None = None
    oper_up: bool | None = None
    rate_bps: int | None = None
    "Bits on the line; 0 is unlimited."
    link_layer: str | None = None
    scheduler: str | None = None
    queues: int | None = None
    queue_packets: int | None = None
    queue_bytes: int | None = None
    queue_cells: int | None = None
    port_packets: int | None = None
    port_bytes: int | None = None
    port_cells: int | None = None
    waiting_packets: int | None = None
    waiting_bytes: int | None = None
    waiting_cells: int | None = None
    received_packets: int | None = None
    received_bytes: int | None = None
    sent_packets: int | None = None
    sent_bytes: int | None = None
    dropped_packets: int | None = None
    "Refused by queue, port or shared buffer, or by a port that is down."
    send_errors: int | None = None
    drops: Mapping[str, int] = field(default_factory=lambda: dict[str, int]())
    "Of `dropped_packets`, by reason; reasons without a packet are left out."
    queue_list: tuple[QueueInfo, ...] = ()
    "When queues were asked for."

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        data["drops"] = dict(self.drops)
        data["queue_list"] = [{f.name: getattr(q, f.name) for f in fields(q)} for q in self.queue_list]
        return data


@dataclass(frozen=True)
class PortChange:
    """New options of a port; None stays as it is. A rate or a limit of 0 is none; a queue's packets always have one."""

    rate_bps: int | None = None
    queue_packets: int | None = None
    queue_bytes: int | None = None
    queue_cells: int | None = None
    port_packets: int | None = None
    port_bytes: int | None = None
    port_cells: int | None = None
    queues: int | None = None
    scheduler: str | None = None
    link_layer: str | None = None
    enabled: bool | None = None
    "False takes the interface down."
    weights: Mapping[int, int] = field(default_factory=lambda: dict[int, int]())
    "Queue to weight."

    def __post_init__(self) -> None:
        """Raises OUT_OF_RANGE and BAD_INPUT."""
        for name, low, high, unit in (
            ("rate_bps", 0, RATE_BPS_MAX, "bit/s"),
            ("queue_packets", 1, _U32, "packets"),
            ("queue_bytes", 0, _U32, "bytes"),
            ("queue_cells", 0, 2**63, "cells"),
            ("port_packets", 0, 2**63, "packets"),
            ("port_bytes", 0, 2**63, "bytes"),
            ("port_cells", 0, 2**63, "cells"),
        ):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise out_of_range(_NAMES.get(name, name.replace("_", " ")), value, low, high, unit)
        if self.queues is not None and not 1 <= self.queues <= QUEUES_MAX:
            raise out_of_range("queues", self.queues, 1, QUEUES_MAX)
        for name, allowed in (("scheduler", SCHEDULERS), ("link_layer", LINK_LAYERS)):
            value = getattr(self, name)
            if value is not None and value not in allowed:
                raise FairlaneError(ErrorCode.BAD_INPUT, f"{name} {value!r} is unknown; allowed: {', '.join(allowed)}")
        for queue, weight in self.weights.items():
            if not 0 <= queue < QUEUES_MAX:
                raise out_of_range("queue", queue, 0, QUEUES_MAX - 1)
            if not 1 <= weight <= _U32:
                raise out_of_range(f"weight of queue {queue}", weight, 1, _U32)

    @property
    def values_by_name(self) -> dict[str, Any]:
        """What is changed, by name; weights as text keys."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "weights"}
        data = {name: value for name, value in found.items() if value is not None}
        if self.weights:
            data["weights"] = {str(queue): weight for queue, weight in self.weights.items()}
        return data

    @classmethod
    def from_values(cls, data: Mapping[str, Any]) -> PortChange:
        """The inverse of `values_by_name`; BAD_INPUT for a name that it has not."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise FairlaneError(ErrorCode.BAD_INPUT, f"a port has no {unknown[0]!r}; it has {', '.join(sorted(known))}")
        weights = {int(queue): int(weight) for queue, weight in dict(data.get("weights") or {}).items()}
        return cls(**{name: value for name, value in data.items() if name != "weights"}, weights=weights)

    def inverse(self, before: PortInfo) -> PortChange:
        """What brings back what `before` had; weights need its queues."""
        old: dict[str, Any] = {}
        for name in self.values_by_name:
            if name in ("weights", "enabled"):
                continue
            value = getattr(before, name)
            # A limit that there was not is 0, but for a queue's packets; what was not known is left alone.
            limit = name.endswith(("_packets", "_bytes", "_cells")) and name != "queue_packets"
            old[name] = 0 if value is None and limit else value
        if self.enabled is not None:
            old["enabled"] = before.admin_up
        known = {queue.queue: queue.weight for queue in before.queue_list}
        weights = {queue: weight for queue in self.weights if (weight := known.get(queue)) is not None}
        # Queues that were added stay: a switch that runs cannot take one away.
        old.pop("queues", None)
        return PortChange(**old, weights=weights)


@dataclass(frozen=True)
class PortUpdate:
    """One leaf of a subscription: its last name in OpenConfig's path, and its value; None when it has none any more."""

    interface: str
    leaf: str
    value: Any
    path: str
    timestamp_ns: int
    "Since 1970."


class PortsClient(Protocol):
    """The ports of one switch; raises FairlaneError only."""

    async def ports(self, *, queues: bool = False) -> list[PortInfo]:
        """All ports by number, the CPU port left out; with `queues` each queue too."""
        ...

    async def set_port(self, port: int, change: PortChange, *, dry_run: bool = False) -> list[str]:
        """Change what is named, all or nothing; returns one sentence for each thing that is (or would be) done."""
        ...

    def subscribe(self, *, interval_s: float | None = None) -> AsyncIterator[PortUpdate]:
        """What is now, then changes of options and link states; with an interval the counters as well, as often."""
        ...

    async def close(self) -> None:
        """End the connection."""
        ...

    async def __aenter__(self) -> PortsClient: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def find_port(ports: list[PortInfo], port: int, where: object) -> PortInfo:
    """The port of that number; UNKNOWN_NAME with those that there are."""
    for one in ports:
        if one.port == port:
            return one
    there = ", ".join(str(one.port) for one in ports) or "none"
    raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"{where} has no port {port}; it has {there}")


def port_of(ports: list[PortInfo], text: str, where: object) -> PortInfo:
    """A port by its number or its interface; UNKNOWN_NAME with those that there are."""
    if text.isdecimal():
        return find_port(ports, int(text), where)
    for one in ports:
        if one.interface == text:
            return one
    there = ", ".join(f"{one.port} ({one.interface})" if one.interface else str(one.port) for one in ports) or "none"
    raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"{where} has no port {text!r}; it has {there}")
