# SPDX-License-Identifier: Apache-2.0
"""What `fairlane ena show` asks a switch for: its far-side ports with their counters, as plain data."""

from __future__ import annotations

from typing import Any

from fairlane_controller.ena.apply import far_side_ports
from fairlane_controller.switch import ena_program
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.program import COUNTER_DROPS, drops_index


async def read_far_side(client: SwitchClient) -> list[dict[str, Any]]:
    """One row a far-side port: segments named, ACKs with a name, ACKs without room, flows without place, segments dropped."""
    ports = await far_side_ports(client)
    rows: list[dict[str, Any]] = [{"switch": client.endpoint.name, "port": port} for port in ports]
    for name in ena_program.COUNTERS:
        cells = await client.read_counters(name, ports)
        for row in rows:
            row[name] = cells[row["port"]].packet_count
    reason = ena_program.REASON_CORRUPTED
    dropped = await client.read_counters(COUNTER_DROPS, [drops_index(port, reason) for port in ports])
    for row in rows:
        row["dropped"] = dropped[drops_index(row["port"], reason)].packet_count
    return rows
