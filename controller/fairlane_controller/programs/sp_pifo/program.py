# SPDX-License-Identifier: Apache-2.0
"""`p4src/sp_pifo.p4` (docs/schemes.md): a port's strict-priority queues, and where ranks come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fairlane import Packets, Param, PortState, RankProgram, RankSettings
from pydantic import Field


class SpPifo(RankProgram):
    """SP-PIFO (NSDI 2020): packets leave nearly by rank, from a few strict-priority queues."""

    name = "sp_pifo"
    tables = ("sp_pifo_port", "rank_draw")
    scheduler = "strict"

    class Settings(RankSettings):
        """One port."""

        priority_queues: Annotated[int, Param("queues"), Field(ge=1, le=32)] = 8
        "The paper's n: queues that are used, of those that the port has. With 1 the port is a FIFO."
        queue_limit: Annotated[Packets, Param("queue_packets")] = 10
        "Packets that may wait in one of them; at most what the queue holds."

    def check_port(self, port: PortState, settings: Any) -> Iterable[str]:
        """Check the number of the port's queues and their room."""
        if port.queues and settings.priority_queues > port.queues:
            yield f"priority_queues: the port has {port.queues} queues; must be 1 to {port.queues}"
        if port.queue_packets and settings.queue_limit > port.queue_packets:
            yield f"queue_limit: a queue of the port holds {port.queue_packets} packets; must be 1 to {port.queue_packets}"
