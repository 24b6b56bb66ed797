# SPDX-License-Identifier: Apache-2.0
"""`p4src/afq.p4` (docs/schemes.md): AFQ's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fairlane import AqmProgram, Config, Param, PortState, RunState, Settings, Size, longest_frame_bytes
from pydantic import Field, field_validator

POWERS = tuple(1 << shift for shift in range(31))
"""Of two."""


class Afq(AqmProgram):
    """AFQ (NSDI 2018): fair queueing by rounds, from a sketch and a calendar of queues."""

    name = "afq"
    tables = ("afq_port",)
    ports_max = 63
    scheduler = "calendar"
    dropped = "the flow's bid was beyond the last queue of the calendar"
    columns = (AqmProgram.delay, AqmProgram.drops, AqmProgram.sent, AqmProgram.waited)
    units = {"round_shift": "log2 bytes"}

    class Settings(Settings):
        """One port. Its scheduler is `calendar`; it has at least `calendar_queues` queues."""

        bytes_per_round: Annotated[Size, Param("round_shift", values=POWERS), Field(ge=64, le=1 << 30)] = 2048
        "The paper's BpR: bytes that a flow sends in one round; a power of two."
        calendar_queues: Annotated[int, Param("queues_count"), Field(ge=2, le=1024)] = 8
        "The paper's nQ: rounds that may be ahead, each in a queue of its own; a power of two."

        @field_validator("bytes_per_round", "calendar_queues")
        @classmethod
        def _is_a_power_of_two(cls, value: int) -> int:
            if value not in POWERS:
                below = 1 << (value.bit_length() - 1)
                raise ValueError(f"must be a power of two, such as {below} or {2 * below}")
            return value

    def check(self, config: Config, run: RunState | None) -> Iterable[str]:
        """As `PortProgram`; and whether the target has calendars."""
        if run is not None and run.target == "bmv2":
            yield "afq: BMv2 has no calendar of queues; run it on the embedded switch or in the simulator"
        yield from super().check(config, run)

    def check_port(self, port: PortState, settings: Any) -> Iterable[str]:
        """Check the number of the port's queues, and whether each frame fits into the rounds."""
        frame_bytes, queues, size = longest_frame_bytes(port.mtu), settings.calendar_queues, settings.bytes_per_round
        if port.queues and queues > port.queues:
            yield f"calendar_queues: {queues}: the port has {port.queues} queues"
        if size * queues <= frame_bytes:
            yield f"bytes_per_round: {queues} rounds of {size} bytes take no frame of {frame_bytes} bytes"
