# SPDX-License-Identifier: Apache-2.0
"""`p4src/aifo.p4` (docs/schemes.md): admission by rank into one FIFO queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fairlane import Packets, Param, PortState, WindowProgram, WindowSettings

DEFAULT_CAPACITY = 80
"""Packets, where the queue's is not known."""


class Aifo(WindowProgram):
    """AIFO (SIGCOMM 2021): one FIFO queue that refuses by rank what a PIFO would drop later."""

    name = "aifo"
    tables = ("aifo_port", "rank_draw")

    class Settings(WindowSettings):
        """One port."""

        queue_capacity: Annotated[Packets | None, Param("capacity_packets")] = None
        "The paper's C: packets that may wait; default: what the queue holds."

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """As `PortProgram`; C is the queue's capacity where it is not given."""
        return {"capacity_packets": port.queue_packets or DEFAULT_CAPACITY, **super().arguments(port, settings)}

    def check_port(self, port: PortState, settings: Any) -> Iterable[str]:
        """Check the room of the port's queue."""
        if port.queue_packets and (settings.queue_capacity or 0) > port.queue_packets:
            yield f"queue_capacity: the port's queue holds {port.queue_packets} packets; must be 1 to {port.queue_packets}"

    def settings_for_queue(self, settings: Any, packets: int | None, size: int | None) -> Any:
        """Let C follow the queue's capacity."""
        return settings if packets is None else settings.model_copy(update={"queue_capacity": packets})
