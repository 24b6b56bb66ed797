# SPDX-License-Identifier: Apache-2.0
"""The client of fairlane-switch's control socket: a port's options, changed and read while the switch runs, delay spikes, and what waits there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from fairlane_switch.control import ControlClient
from fairlane_switch.link_series import form_of


@dataclass(frozen=True, kw_only=True)
class PortSettings:
    """What can be set at a port (docs/switch.md). None: the switch's default at its start, no limit of one that runs. Capacities count what waits."""

    rate_bps: int | None = None
    """Bits on the line; 0: unlimited."""
    link_layer: str | None = None
    """What a frame takes on the line: `none` (its bytes), `ethernet` or `atm`."""
    scheduler: str | None = None
    """`strict` (the larger queue first), `wrr`, `drr`, `calendar` or `fq`."""
    queues: int | None = None
    """1 to 4096; never fewer than a running port has."""
    queue_packets: int | None = None
    """Packets, bytes and cells (docs/switch.md) that may wait in each queue …"""
    queue_bytes: int | None = None
    queue_cells: int | None = None
    port_packets: int | None = None
    """… and in all queues together."""
    port_bytes: int | None = None
    port_cells: int | None = None


@dataclass(frozen=True)
class QueueUsage:
    """What waits in one queue, and its weight under WRR and DRR."""

    queue: int
    weight: int
    packets: int
    bytes: int
    cells: int


@dataclass(frozen=True, kw_only=True)
class PortCounts(PortSettings):
    """Settings, counts and usage of a port; bytes are those of whole frames, the Ethernet header included."""

    port: int
    rate_bps: int = 0
    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int
    refused_packets: int
    rx_lost: int = 0
    """Frames that came in and were lost at reception; not in `rx_packets`."""
    tx_errors: int = 0
    """Frames that the interface did not take; not in `tx_packets`."""
    drops: Mapping[str, int] = field(default_factory=dict[str, int])
    """Refused packets by reason, such as `port_full`; reasons without one are left out."""
    rate_form: Mapping[str, Any] | None = None
    """What the rate follows, of which `rate_bps` is the mean; None: it is a number."""
    waiting_packets: int = 0
    waiting_bytes: int = 0
    waiting_cells: int = 0
    queues_waiting: tuple[QueueUsage, ...] = ()
    """The queues that hold something, ascending."""


_COUNTS = TypeAdapter(PortCounts)


def set_port(path: Path, port: int, **settings: Any) -> PortCounts:
    """Change settings (those of `PortSettings`) of a port of the switch that listens at `path`. Raises ControlError."""
    values = {name: form_of(value) for name, value in settings.items()}
    return _decode(_ask(path, {"op": "set_port", "port": port, **values})["port"])


def spike_port(path: Path, port: int, duration_us: float) -> None:
    """A delay spike: nothing starts on the port's line for so long, packets wait in its queues. Raises ControlError."""
    _ask(path, {"op": "spike", "port": port, "duration_us": duration_us})


def read_ports(path: Path) -> list[PortCounts]:
    """All ports, the CPU port among them. Raises ControlError."""
    return [_decode(port) for port in _ask(path, {"op": "ports"})["ports"]]


def read_drops(path: Path) -> dict[str, int]:
    """Packets that ended inside the switch, by reason such as `ingress_drop`. Raises ControlError."""
    return {str(reason): int(packets) for reason, packets in _ask(path, {"op": "ports"})["drops"].items()}


def read_packets(path: Path) -> dict[str, int]:
    """Where every packet of the switch is: `received`, `copied`, `transmitted` (`packet_ins` of them), `dropped`, `waiting`,
    `on_line`. Raises ControlError."""
    return {str(what): int(packets) for what, packets in _ask(path, {"op": "ports"})["packets"].items()}


def _ask(path: Path, request: dict[str, Any]) -> dict[str, Any]:
    with ControlClient(path) as client:
        return client.request(request)


def _decode(values: dict[str, Any]) -> PortCounts:
    waiting = {f"waiting_{unit}": count for unit, count in values.get("waiting", {}).items()}
    return _COUNTS.validate_python(values | waiting)
