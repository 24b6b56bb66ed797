# SPDX-License-Identifier: Apache-2.0
"""`p4src/afq.p4` (docs/afq.md): AFQ's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fairlane import Column, Config, PortProgram, PortState, Reason, RunState, Settings, Size
from pydantic import Field, field_validator

REASON_AQM = 11
ETHERNET_BYTES = 14
MTU_BYTES = 1500
"""Of a link whose MTU is not known."""
PORT_MAX = 63
"""Up to which the P4 program has state."""


class Afq(PortProgram):
    """AFQ, section 3.2."""

    name = "afq"
    title = "AFQ (NSDI 2018): fair queueing by rounds, from a sketch and a calendar of queues."
    p4 = "../../../../p4src/compiled/afq"
    tables = ("afq_port",)
    port_action = "set_afq"
    reasons = {REASON_AQM: Reason("afq", "the flow's bid was beyond the last queue of the calendar", in_queue=True)}
    columns = (
        Column("queue_delay_s", "delay", "s", "mean queueing delay of the packets sent", ratio=("waited_s", "sent")),
        Column("aqm_dropped", "dropped", "packets", "packets dropped by queue management", reason=REASON_AQM, plot="drops"),
        Column("sent", "sent", "packets", "packets sent", counter="sent", wide=True),
        Column("waited_s", "waited", "s", "queueing delay of all packets sent, together", register="waited_us", scale=1e-6, total=True, wide=True),
    )  # fmt: skip
    units = {"round_shift": "log2 bytes"}

    class Settings(Settings):
        """One port. Its scheduler is `calendar`; it has at least `calendar_queues` queues."""

        bytes_per_round: Annotated[Size, Field(ge=64, le=1 << 30)] = 2048
        "The paper's BpR: bytes that a flow sends in one round; a power of two."
        calendar_queues: Annotated[int, Field(ge=2, le=1024)] = 8
        "The paper's nQ: rounds that may be ahead, each in a queue of its own; a power of two."

        @field_validator("bytes_per_round", "calendar_queues")
        @classmethod
        def _is_a_power_of_two(cls, value: int) -> int:
            if value & (value - 1):
                below = 1 << (value.bit_length() - 1)
                raise ValueError(f"must be a power of two, such as {below} or {2 * below}")
            return value

    def check(self, config: Config, run: RunState | None) -> Iterable[str]:
        """The port has state and so many queues, served as a calendar; each frame fits into the rounds."""
        if run is not None and run.target == "bmv2":
            yield "afq: BMv2 has no calendar of queues; run it on the embedded switch or in the simulator"
        for place, settings in (config.ports or {}).items():
            at = config.at.get(place, "{}:{}".format(*place))
            switch = next((one for one in run.switches if one.name == place[0]), None) if run is not None else None
            port = config.states.get(place) or (switch.port(place[1]) if switch is not None else None)
            port = port or PortState(port=place[1])
            frame_bytes = (port.mtu or MTU_BYTES) + ETHERNET_BYTES
            if place[1] > PORT_MAX:
                yield f"{at}.port: {place[1]}: afq manages ports 1 to {PORT_MAX}"
            if port.scheduler not in ("", "calendar"):
                yield f"{at}: the port's scheduler is {port.scheduler}; AFQ needs calendar"
            if port.queues and settings.calendar_queues > port.queues:
                yield f"{at}.calendar_queues: {settings.calendar_queues}: the port has {port.queues} queues"
            if settings.bytes_per_round * settings.calendar_queues <= frame_bytes:
                yield f"{at}.bytes_per_round: {settings.calendar_queues} rounds of {settings.bytes_per_round} bytes take no frame of {frame_bytes} bytes"

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """BpR as a shift."""
        del port
        return {
            "round_shift": settings.bytes_per_round.bit_length() - 1,
            "queues_count": settings.calendar_queues,
        }

    def settings_from(self, arguments: Mapping[str, int]) -> Settings:
        """Back."""
        queues, size = arguments["queues_count"], 1 << arguments["round_shift"]
        return self.Settings.model_construct(bytes_per_round=size, calendar_queues=queues)
