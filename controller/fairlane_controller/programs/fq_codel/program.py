# SPDX-License-Identifier: Apache-2.0
"""`p4src/fq_codel.p4` (docs/fq_codel.md): FQ-CoDel's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fairlane import Column, Config, Duration, PortProgram, PortState, Reason, RunState, Settings, Size
from pydantic import Field

REASON_AQM = 11
ETHERNET_BYTES = 14
MTU_BYTES = 1500
"""Of a link whose MTU is not known."""
QUEUES_MAX, PORT_MAX = 1024, 63
"""Of which the P4 program has state."""
QUEUES = 8
"""Of a port that does not say."""


class FqCodel(PortProgram):
    """FQ-CoDel, RFC 8290."""

    name = "fq_codel"
    title = "FQ-CoDel (RFC 8290): a queue for each flow, new ones first, and CoDel in each."
    p4 = "../../../../p4src/compiled/fq_codel"
    tables = ("fq_codel_port",)
    port_action = "set_fq_codel"
    reasons = {REASON_AQM: Reason("codel", "packets waited longer than the target for an interval", in_queue=True)}
    columns = (
        Column("queue_delay_s", "delay", "s", "mean queueing delay of the packets sent", ratio=("waited_s", "sent")),
        Column("aqm_dropped", "dropped", "packets", "packets dropped by queue management", reason=REASON_AQM, plot="drops"),
        Column("aqm_marked", "marked", "packets", "packets marked CE by queue management", counter="marked"),
        Column("sent", "sent", "packets", "packets sent", counter="sent", wide=True),
        Column("waited_s", "waited", "s", "queueing delay of all packets sent, together", register="waited_us", scale=1e-6, total=True, wide=True),
    )  # fmt: skip

    class Settings(Settings):
        """One port. Its scheduler is `fq`; its number of queues is the port's (`queues` of a topology, 1024 in the RFC)."""

        target: Annotated[Duration, Field(ge=1e-6, le=10)] = 0.005
        "Queueing delay that is acceptable for good (RFC 8289 TARGET)."
        interval: Annotated[Duration, Field(ge=1e-6, le=100)] = 0.1
        "So long it may be exceeded: about the longest RTT of the flows (RFC 8289 INTERVAL)."
        ecn: bool = True
        "Whether packets that can be marked (ECT) are marked instead of dropped."
        salt: Annotated[int, Field(ge=0, le=0xFFFF_FFFF)] = 0
        "Part of the flows' hash: another one moves flows that share a queue."
        quantum: Annotated[Size, Field(ge=256, le=1 << 20)] = 1514
        "Bytes that a queue may send in a round; from 256 on, as in Linux."

    def check(self, config: Config, run: RunState | None) -> Iterable[str]:
        """The port must be one that the program has state for, and be served as the RFC says; BMv2 cannot, and its page says so."""
        for place in config.ports or {}:
            at = config.at.get(place, f"{place[0]} port {place[1]}")
            switch = next((one for one in run.switches if one.name == place[0]), None) if run is not None else None
            port = config.states.get(place) or (switch.port(place[1]) if switch is not None else None)
            if port is not None and port.scheduler not in ("", "fq") and (run is None or run.target != "bmv2"):
                yield f"{at}: the port's scheduler is {port.scheduler}; FQ-CoDel needs fq"
            if place[1] > PORT_MAX:
                yield f"{at}.port: {place[1]}: fq_codel manages ports 1 to {PORT_MAX}"

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """Times in us; the longest frame is the link's, the queues are the port's."""
        return {
            "target_us": round(settings.target * 1e6),
            "interval_us": round(settings.interval * 1e6),
            "max_packet_bytes": (port.mtu or MTU_BYTES) + ETHERNET_BYTES,
            "ecn": int(settings.ecn),
            "queues_count": min(port.queues or QUEUES, QUEUES_MAX),
            "hash_salt": settings.salt,
            "quantum_bytes": settings.quantum,
        }

    def settings_from(self, arguments: Mapping[str, int]) -> Settings:
        """Back."""
        target, interval = arguments["target_us"] / 1e6, arguments["interval_us"] / 1e6
        ecn, salt, quantum = bool(arguments["ecn"]), arguments["hash_salt"], arguments["quantum_bytes"]
        return self.Settings.model_construct(target=target, interval=interval, ecn=ecn, salt=salt, quantum=quantum)
