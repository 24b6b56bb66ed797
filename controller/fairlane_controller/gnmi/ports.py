# SPDX-License-Identifier: Apache-2.0
"""What is known of a port and its queues, what can be changed, and what a client of either target does.

An option is declared once: its leaf of OpenConfig's model, its range, and why BMv2 cannot do it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeVar, get_args

from fairlane_controller.errors import ErrorCode, bad_input, find_by_name, out_of_range
from fairlane_controller.switch.shared import QUEUES_MAX
from fairlane_controller.units import format_rate

Scheduler = Literal["strict", "wrr", "drr", "calendar", "fq"]
LinkLayer = Literal["none", "ethernet", "atm"]
SCHEDULER_PATH = "qos/scheduler-policies/scheduler-policy/schedulers/scheduler"
SHAPER_PATH = f"{SCHEDULER_PATH}/one-rate-two-color/config"
_PORT_PATH = "interfaces/interface/port/config"
_U32 = 2**32 - 1
_Client = TypeVar("_Client", bound="PortsClient")


@dataclass(frozen=True)
class Option:
    """What can be set at a port."""

    path: str
    "Its leaf in OpenConfig's model."
    low: int = 0
    high: int = 0
    "0: it has no range."
    unit: str = ""
    words: tuple[str, ...] = ()
    "Of one that is a word: those that are allowed."
    key: str = ""
    "In a configuration; empty: the name of the field."
    not_on_bmv2: str = ""
    "Why BMv2 cannot do it."

    @property
    def may_be_unlimited(self) -> bool:
        """Whether 0 is no limit: the switch then has no such leaf."""
        return bool(self.unit) and self.low == 0

    @property
    def is_limit(self) -> bool:
        """Whether it limits what may wait."""
        return self.unit in ("packets", "bytes", "cells")


def _option(*place: Any, **rest: Any) -> Any:
    return field(default=None, metadata={"option": Option(*place, **rest)})


_PACKETS_ONLY = "its queues are limited in packets only"
_NO_PORT_LIMIT = "a limit of all queues of a port together does not exist there"


@dataclass(frozen=True, kw_only=True)
class PortOptions:
    """What can be set at a port; a rate or a limit of 0 is none."""

    rate_bps: int | None = _option(f"{SHAPER_PATH}/cir", 0, 10**12, "bit/s", key="rate")
    "Bits on the line."
    queue_packets: int | None = _option(f"{SHAPER_PATH}/max-queue-depth-packets", 1, _U32, "packets")
    queue_bytes: int | None = _option(
        f"{SHAPER_PATH}/max-queue-depth-bytes", 0, _U32, "bytes", not_on_bmv2=_PACKETS_ONLY
    )
    queue_cells: int | None = _option(f"{_PORT_PATH}/queue-cells", 0, 2**63, "cells", not_on_bmv2=_PACKETS_ONLY)
    port_packets: int | None = _option(f"{_PORT_PATH}/port-packets", 0, 2**63, "packets", not_on_bmv2=_NO_PORT_LIMIT)
    port_bytes: int | None = _option(f"{_PORT_PATH}/port-bytes", 0, 2**63, "bytes", not_on_bmv2=_NO_PORT_LIMIT)
    port_cells: int | None = _option(f"{_PORT_PATH}/port-cells", 0, 2**63, "cells", not_on_bmv2=_NO_PORT_LIMIT)
    queues: int | None = _option(
        f"{_PORT_PATH}/queues", 1, QUEUES_MAX, key="queue_count", not_on_bmv2="--priority-queues fixes their number"
    )
    scheduler: str | None = _option(
        f"{_PORT_PATH}/scheduler", words=get_args(Scheduler), not_on_bmv2="it has strict priority only"
    )
    link_layer: str | None = _option(
        f"{_PORT_PATH}/link-layer", words=get_args(LinkLayer), not_on_bmv2="it knows no line, only packets per second"
    )


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
    "The largest number that ever waited."


@dataclass(frozen=True)
class PortInfo(PortOptions):
    """One port. A limit that is None is no limit on the embedded switch; on BMv2 None is what cannot be known."""

    port: int
    interface: str | None = None
    admin_up: bool | None = None
    oper_up: bool | None = None
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
    receive_losses: int | None = None
    "Frames that came to the interface and not to a program."
    drops: Mapping[str, int] = field(default_factory=dict[str, int])
    "Of `dropped_packets`, by reason; reasons without a packet are left out."
    queue_list: tuple[QueueInfo, ...] = ()
    "When queues were asked for."

    def setting(self, name: str) -> Any:
        """The value of an option of `PortChange`; a limit that does not exist is 0, a rate that is not known None."""
        if name == "enabled":
            return self.admin_up
        value, option = getattr(self, name), PortChange.options[name]
        return 0 if value is None and option.is_limit and option.may_be_unlimited else value

    def to_json(self) -> dict[str, Any]:
        """Plain data, the port first."""
        return {"port": self.port, "interface": self.interface, **asdict(self)}


@dataclass(frozen=True, kw_only=True)
class PortChange(PortOptions):
    """New options of a port; None stays as it is. A queue's packets always have a limit.

    Raises:
        FairlaneError: OUT_OF_RANGE, BAD_INPUT for a word that is not allowed.
    """

    options: ClassVar[Mapping[str, Option]]
    "All options, by the names of their fields."
    enabled: bool | None = _option(
        "interfaces/interface/config/enabled",
        not_on_bmv2="its ports are taken up and down by the interface: `ip link set dev NAME down`",
    )
    "False takes the interface down."
    weights: Mapping[int, int] = field(default_factory=dict[int, int])
    "Queue to weight."

    def __post_init__(self) -> None:
        for name, option in self.options.items():
            value = getattr(self, name)
            if value is not None and option.words and value not in option.words:
                allowed = ", ".join(option.words)
                raise bad_input(f"{name} {value!r} is unknown; allowed: {allowed}")
            if value is not None and option.high and not option.low <= value <= option.high:
                raise out_of_range(_text_of(name), value, option.low, option.high, option.unit)
        for queue, weight in self.weights.items():
            if not 1 <= weight <= _U32:
                raise out_of_range(f"weight of queue {queue}", weight, 1, _U32)

    @property
    def values_by_name(self) -> dict[str, Any]:
        """What is changed, by name; queues of weights are text."""
        data = {name: value for name in self.options if (value := getattr(self, name)) is not None}
        if self.weights:
            data["weights"] = {str(queue): weight for queue, weight in self.weights.items()}
        return data

    @classmethod
    def from_values(cls, data: Mapping[str, Any]) -> PortChange:
        """The inverse of `values_by_name`; UNKNOWN_NAME."""
        for name in data:
            find_by_name("setting of a port", name, {**cls.options, "weights": None})
        weights = {int(queue): int(weight) for queue, weight in data.get("weights", {}).items()}
        values: dict[str, Any] = {**data, "weights": weights}
        return cls(**values)

    def inverse(self, before: PortInfo) -> PortChange:
        """The change that restores what `before` had. Weights need its queues; queues that were added stay."""
        old = {name: before.setting(name) for name in self.values_by_name if name not in ("weights", "queues")}
        weights = {one.queue: one.weight for one in before.queue_list if one.queue in self.weights and one.weight}
        return PortChange(**old, weights=weights)

    def describe(self) -> str:
        """`rate 2 Mbit/s, queue packets 100`, for people."""
        parts: list[str] = []
        for name, value in self.values_by_name.items():
            if name == "enabled":
                parts.append("up" if value else "down")
            elif name != "weights":
                shown = "unlimited" if value == 0 else format_rate(value) if name == "rate_bps" else value
                parts.append(f"{_text_of(name)} {shown}")
        return ", ".join([*parts, *(f"weight of queue {queue} {weight}" for queue, weight in self.weights.items())])


PortChange.options = {one.name: one.metadata["option"] for one in fields(PortChange) if "option" in one.metadata}


def _text_of(name: str) -> str:
    return name.removesuffix("_bps").replace("_", " ")


class PortsClient(ABC):
    """The ports of one switch: `async with client`; raises FairlaneError only."""

    @abstractmethod
    async def ports(self, *, queues: bool = False) -> list[PortInfo]:
        """All ports by number, the CPU port left out; with `queues` each queue too."""

    @abstractmethod
    async def set_port(self, port: int, change: PortChange, *, dry_run: bool = False) -> list[str]:
        """Change what is named, all or nothing; returns one sentence for each thing that is (or would be) done."""

    async def open(self) -> None:  # noqa: B027 (BMv2 needs none)
        """Connect."""

    async def close(self) -> None:  # noqa: B027
        """End the connection."""

    async def __aenter__(self: _Client) -> _Client:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def find_port(ports: list[PortInfo], port: int | str, where: object) -> PortInfo:
    """A port by its number or its interface; UNKNOWN_NAME with those that there are."""
    for one in ports:
        if str(port) in (str(one.port), one.interface):
            return one
    there = ", ".join(f"{one.port} ({one.interface})" if one.interface else str(one.port) for one in ports) or "none"
    raise ErrorCode.UNKNOWN_NAME(f"{where} has no port {port}; it has {there}")
