# SPDX-License-Identifier: Apache-2.0
"""The client of fairlane-switch's control socket: a port's options, changed and read while the switch runs, delay spikes, and what waits there."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from fairlane_controller.state.files import reason

TIMEOUT_S = 5.0
MAX_LINE = 1 << 26


class PortControlError(RuntimeError):
    """The switch refused a request, and has changed nothing, or nobody answers; the text says what was asked and why not."""


@dataclass(frozen=True)
class PortChange:
    """New options of a port (docs/switch.md); None: stays as it is. Capacities count what waits."""

    rate_bps: int | None = None
    """Bits on the line; 0: unlimited."""
    link_layer: str | None = None
    """`none`, `ethernet` or `atm`."""
    scheduler: str | None = None
    """`strict`, `wrr`, `drr`, `calendar` or `fq`."""
    queues: int | None = None
    """1 to 4096; never fewer than there are."""
    queue_packets: int | None = None
    queue_bytes: int | None = None
    queue_cells: int | None = None
    port_packets: int | None = None
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


@dataclass(frozen=True)
class PortCounts:
    """Options (None: no limit), counts and usage of a port; bytes are those of whole frames, the Ethernet header included."""

    port: int
    rate_bps: int
    queue_packets: int | None
    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int
    refused_packets: int
    rx_lost: int = 0
    """Frames that came in and were lost at reception; not in `rx_packets`."""
    tx_errors: int = 0
    """Frames that the interface did not take; not in `tx_packets`."""
    link_layer: str = "none"
    scheduler: str = "strict"
    queues: int = 0
    queue_bytes: int | None = None
    queue_cells: int | None = None
    port_packets: int | None = None
    port_bytes: int | None = None
    port_cells: int | None = None
    drops: Mapping[str, int] = field(default_factory=dict[str, int])
    """Refused packets by reason, such as `port_full`; reasons without one are left out."""
    waiting_packets: int = 0
    waiting_bytes: int = 0
    waiting_cells: int = 0
    queues_waiting: tuple[QueueUsage, ...] = ()
    """The queues that hold something, ascending."""


def set_port(
    path: Path,
    port: int,
    *,
    rate_bps: int | None = None,
    queue_packets: int | None = None,
    change: PortChange = PortChange(),
) -> PortCounts:
    """Change what is given of a port of the switch that listens at `path`. Raises PortControlError."""
    changes = asdict(change) | {
        key: value for key, value in (("rate_bps", rate_bps), ("queue_packets", queue_packets)) if value is not None
    }
    given = {key: value for key, value in changes.items() if value is not None}
    return _decode(_ask(path, {"op": "set_port", "port": port, **given})["port"])


def spike_port(path: Path, port: int, duration_us: float) -> None:
    """A delay spike: nothing starts on the port's line for so long, packets wait in its queues. Raises PortControlError."""
    _ask(path, {"op": "spike", "port": port, "duration_us": duration_us})


def read_ports(path: Path) -> list[PortCounts]:
    """All ports, the CPU port among them. Raises PortControlError."""
    return [_decode(port) for port in _ask(path, {"op": "ports"})["ports"]]


def read_drops(path: Path) -> dict[str, int]:
    """Packets that ended inside the switch, by reason such as `ingress_drop`. Raises PortControlError."""
    return {str(reason): int(packets) for reason, packets in _ask(path, {"op": "ports"})["drops"].items()}


def read_packets(path: Path) -> dict[str, int]:
    """Where every packet of the switch is: `received`, `copied`, `transmitted` (`packet_ins` of them), `dropped`, `waiting`,
    `on_line`. Raises PortControlError."""
    return {str(what): int(packets) for what, packets in _ask(path, {"op": "ports"})["packets"].items()}


def _ask(path: Path, request: dict[str, Any]) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(TIMEOUT_S)
            client.connect(str(path))
            client.sendall(json.dumps(request).encode() + b"\n")
            with client.makefile("rb") as answers:
                line = answers.readline(MAX_LINE)
    except OSError as error:
        raise PortControlError(f"no switch answers at {path}: {reason(error)}") from error
    answer: dict[str, Any] = json.loads(line) if line else {"ok": False, "error": "it closed the connection"}
    if not answer["ok"]:
        raise PortControlError(f"{request['op']}: {answer['error']}")
    return answer


def _decode(values: dict[str, Any]) -> PortCounts:
    known = {each.name for each in fields(PortCounts)}
    plain: dict[str, Any] = {key: value for key, value in values.items() if key in known}
    plain |= {f"waiting_{unit}": count for unit, count in values.get("waiting", {}).items()}
    plain["queues_waiting"] = tuple(QueueUsage(**queue) for queue in values.get("queues_waiting", []))
    return PortCounts(**plain)
