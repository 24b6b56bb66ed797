# SPDX-License-Identifier: Apache-2.0
"""The client of fairlane-switch's control socket: a port's rate and queue, changed and read while the switch runs."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

TIMEOUT_S = 5.0
MAX_LINE = 1 << 20


class PortControlError(RuntimeError):
    """The switch refused a request, and has changed nothing, or nobody answers; the text says what was asked and why not."""


@dataclass(frozen=True)
class PortCounts:
    """Settings and counts of a port; bytes are those of whole frames, the Ethernet header included."""

    port: int
    rate_bps: int
    queue_packets: int
    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int
    refused_packets: int


def set_port(path: Path, port: int, *, rate_bps: int | None = None, queue_packets: int | None = None) -> PortCounts:
    """Change what is given of a port of the switch that listens at `path`. Raises PortControlError."""
    changes = {"rate_bps": rate_bps, "queue_packets": queue_packets}
    given = {key: value for key, value in changes.items() if value is not None}
    return _decode(_ask(path, {"op": "set_port", "port": port, **given})["port"])


def read_ports(path: Path) -> list[PortCounts]:
    """All ports, the CPU port among them. Raises PortControlError."""
    return [_decode(port) for port in _ask(path, {"op": "ports"})["ports"]]


def _ask(path: Path, request: dict[str, Any]) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(TIMEOUT_S)
            client.connect(str(path))
            client.sendall(json.dumps(request).encode() + b"\n")
            with client.makefile("rb") as answers:
                line = answers.readline(MAX_LINE)
    except OSError as error:
        raise PortControlError(f"no switch answers at {path}: {error}") from error
    answer: dict[str, Any] = json.loads(line) if line else {"ok": False, "error": "it closed the connection"}
    if not answer["ok"]:
        raise PortControlError(f"{request['op']}: {answer['error']}")
    return answer


def _decode(values: dict[str, Any]) -> PortCounts:
    return PortCounts(**{each.name: int(values[each.name]) for each in fields(PortCounts)})
