# SPDX-License-Identifier: Apache-2.0
"""`p4src/codel.p4` (docs/codel.md): CoDel's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fairlane import Column, Duration, PortProgram, PortState, Reason, Settings
from pydantic import Field

REASON_AQM = 11
ETHERNET_BYTES = 14
MTU_BYTES = 1500
"""Of a link whose MTU is not known."""


class Codel(PortProgram):
    """CoDel, RFC 8289."""

    name = "codel"
    title = "CoDel (RFC 8289): drops or marks what has waited longer than a target for an interval."
    p4 = "../../../../p4src/compiled/codel"
    tables = ("codel_port",)
    port_action = "set_codel"
    reasons = {REASON_AQM: Reason("codel", "packets waited longer than the target for an interval", in_queue=True)}
    columns = (
        Column("queue_delay_s", "delay", "s", "mean queueing delay of the packets sent", ratio=("waited_s", "sent")),
        Column("aqm_dropped", "dropped", "packets", "packets dropped by queue management", reason=REASON_AQM, plot="drops"),
        Column("aqm_marked", "marked", "packets", "packets marked CE by queue management", counter="marked"),
        Column("sent", "sent", "packets", "packets sent", counter="sent", wide=True),
        Column("waited_s", "waited", "s", "queueing delay of all packets sent, together", register="waited_us", scale=1e-6, total=True, wide=True),
    )  # fmt: skip

    class Settings(Settings):
        """One port."""

        target: Annotated[Duration, Field(ge=1e-6, le=10)] = 0.005
        "Queueing delay that is acceptable for good (RFC 8289 TARGET)."
        interval: Annotated[Duration, Field(ge=1e-6, le=100)] = 0.1
        "So long it may be exceeded: about the longest RTT of the flows (RFC 8289 INTERVAL)."
        ecn: bool = True
        "Whether packets that can be marked (ECT) are marked instead of dropped."

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """Times in us; the longest frame is the link's."""
        return {
            "target_us": round(settings.target * 1e6),
            "interval_us": round(settings.interval * 1e6),
            "max_packet_bytes": (port.mtu or MTU_BYTES) + ETHERNET_BYTES,
            "ecn": int(settings.ecn),
        }

    def settings_from(self, arguments: Mapping[str, int]) -> Settings:
        """Back."""
        target, interval = arguments["target_us"] / 1e6, arguments["interval_us"] / 1e6
        return self.Settings.model_construct(target=target, interval=interval, ecn=bool(arguments["ecn"]))
