# SPDX-License-Identifier: Apache-2.0
"""Settings of ports that P4Runtime cannot set (rate, queue, scheduler, state), read and written where the target serves them."""

from __future__ import annotations

from typing import Any

from fairlane_controller.state.run_state import RunState

Plain = dict[str, Any]

SETTINGS = ("rate", "queue_packets", "queue_bytes", "queue_cells", "scheduler", "queue_count", "enabled")
"""Keys of a port in the file that are such settings."""


async def read_ports(run: RunState, switch: str) -> dict[int, Plain]:
    """The settings of each port that has some, with the file's keys; nothing where the target serves none."""
    del run, switch
    return {}
