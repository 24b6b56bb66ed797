# SPDX-License-Identifier: Apache-2.0
"""`p4src/fq_codel.p4` (docs/schemes.md): FQ-CoDel's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fairlane import CodelProgram, CodelSettings, Param, PortState, Size
from pydantic import Field

QUEUES_MAX = 1024
"""Of a port: the P4 program has state for so many."""
QUEUES = 8
"""Of a port whose number is not known: a BMv2's."""


class FqCodel(CodelProgram):
    """FQ-CoDel (RFC 8290): a queue for each flow, new ones first, and CoDel in each."""

    name = "fq_codel"
    tables = ("fq_codel_port",)
    ports_max = 63
    scheduler = "fq"
    queues = QUEUES_MAX

    class Settings(CodelSettings):
        """One port. Its scheduler is `fq`; its number of queues is the port's (`queues` of a topology)."""

        salt: Annotated[int, Param("hash_salt"), Field(ge=0, le=0xFFFF_FFFF)] = 0
        "Part of the flows' hash: another one moves flows that share a queue."
        quantum: Annotated[Size, Param("quantum_bytes"), Field(ge=256, le=1 << 20)] = 1514
        "Bytes that a queue may send in a round; from 256 on, as in Linux."

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """As `CodelProgram`; the queues are the port's."""
        return {**super().arguments(port, settings), "queues_count": min(port.queues or QUEUES, QUEUES_MAX)}
