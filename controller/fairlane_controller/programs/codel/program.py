# SPDX-License-Identifier: Apache-2.0
"""`p4src/codel.p4` (docs/schemes.md): CoDel's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fairlane import AqmProgram, Duration, Param, PortState, Settings, longest_frame_bytes
from pydantic import Field


class Codel(AqmProgram):
    """CoDel (RFC 8289): drops or marks what has waited longer than a target for an interval."""

    name = "codel"
    tables = ("codel_port",)
    dropped = "packets waited longer than the target for an interval"

    class Settings(Settings):
        """One port."""

        target: Annotated[Duration, Param("target_us", 1e6), Field(ge=1e-6, le=10)] = 0.005
        "Persistent queueing delay that is acceptable (RFC 8289 TARGET)."
        interval: Annotated[Duration, Param("interval_us", 1e6), Field(ge=1e-6, le=100)] = 0.1
        "How long it may be exceeded: about the longest RTT of the flows (RFC 8289 INTERVAL)."
        ecn: Annotated[bool, Param("ecn")] = True
        "Whether packets that can be marked (ECT) are marked instead of dropped."

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """As `PortProgram`; the longest frame is the link's."""
        return {**super().arguments(port, settings), "max_packet_bytes": longest_frame_bytes(port.mtu)}
