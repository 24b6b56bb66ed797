# SPDX-License-Identifier: Apache-2.0
"""`p4src/fq_codel.p4` (docs/schemes.md): FQ-CoDel's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fairlane import AqmProgram, Duration, Param, PortState, Reason, Settings, Size, longest_frame_bytes
from pydantic import Field

QUEUES_MAX = 1024
"""Of a port: the P4 program has state for so many."""
QUEUES = 8
"""Of a port that does not say."""


class FqCodel(AqmProgram):
    """FQ-CoDel (RFC 8290): a queue for each flow, new ones first, and CoDel in each."""

    name = "fq_codel"
    tables = ("fq_codel_port",)
    ports_max = 63
    scheduler = "fq"
    reasons = {
        AqmProgram.DROPPED: Reason("codel", "packets waited longer than the target for an interval", in_queue=True)
    }

    class Settings(Settings):
        """One port. Its scheduler is `fq`; its number of queues is the port's (`queues` of a topology, 1024 in the RFC)."""

        target: Annotated[Duration, Param("target_us", 1e6), Field(ge=1e-6, le=10)] = 0.005
        "Persistent queueing delay that is acceptable (RFC 8289 TARGET)."
        interval: Annotated[Duration, Param("interval_us", 1e6), Field(ge=1e-6, le=100)] = 0.1
        "How long it may be exceeded: about the longest RTT of the flows (RFC 8289 INTERVAL)."
        ecn: Annotated[bool, Param("ecn")] = True
        "Whether packets that can be marked (ECT) are marked instead of dropped."
        salt: Annotated[int, Param("hash_salt"), Field(ge=0, le=0xFFFF_FFFF)] = 0
        "Part of the flows' hash: another one moves flows that share a queue."
        quantum: Annotated[Size, Param("quantum_bytes"), Field(ge=256, le=1 << 20)] = 1514
        "Bytes that a queue may send in a round; from 256 on, as in Linux."

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """As `PortProgram`; the longest frame is the link's, the queues are the port's."""
        return {
            **super().arguments(port, settings),
            "max_packet_bytes": longest_frame_bytes(port.mtu),
            "queues_count": min(port.queues or QUEUES, QUEUES_MAX),
        }
