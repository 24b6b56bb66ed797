# SPDX-License-Identifier: Apache-2.0
"""`p4src/afq.p4` (docs/schemes.md): AFQ's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fairlane import AqmProgram, Config, Param, PortState, Reason, RunState, Settings, Size, longest_frame_bytes
from pydantic import Field, field_validator


class Afq(AqmProgram):
    """AFQ, section 3.2."""

    name = "afq"
    title = "AFQ (NSDI 2018): fair queueing by rounds, from a sketch and a calendar of queues."
    p4 = "../../../../p4src/compiled/afq"
    tables = ("afq_port",)
    port_action = "set_afq"
    ports_max = 63
    scheduler = "calendar"
    reasons = {
        AqmProgram.DROPPED: Reason("afq", "the flow's bid was beyond the last queue of the calendar", in_queue=True)
    }
    columns = (AqmProgram.delay, AqmProgram.drops, AqmProgram.sent, AqmProgram.waited)
    units = {"round_shift": "log2 bytes"}

    class Settings(Settings):
        """One port. Its scheduler is `calendar`; it has at least `calendar_queues` queues."""

        bytes_per_round: Annotated[Size, Field(ge=64, le=1 << 30)] = 2048
        "The paper's BpR: bytes that a flow sends in one round; a power of two."
        calendar_queues: Annotated[int, Param("queues_count"), Field(ge=2, le=1024)] = 8
        "The paper's nQ: rounds that may be ahead, each in a queue of its own; a power of two."

        @field_validator("bytes_per_round", "calendar_queues")
        @classmethod
        def _is_a_power_of_two(cls, value: int) -> int:
            if value & (value - 1):
                below = 1 << (value.bit_length() - 1)
                raise ValueError(f"must be a power of two, such as {below} or {2 * below}")
            return value

    def check(self, config: Config, run: RunState | None) -> Iterable[str]:
        """The target has calendars."""
        if run is not None and run.target == "bmv2":
            yield "afq: BMv2 has no calendar of queues; run it on the embedded switch or in the simulator"
        yield from super().check(config, run)

    def check_port(self, port: PortState, settings: Any) -> Iterable[str]:
        """The port has so many queues; each frame fits into the rounds."""
        frame_bytes, queues, size = longest_frame_bytes(port.mtu), settings.calendar_queues, settings.bytes_per_round
        if port.queues and queues > port.queues:
            yield f"calendar_queues: {queues}: the port has {port.queues} queues"
        if size * queues <= frame_bytes:
            yield f"bytes_per_round: {queues} rounds of {size} bytes take no frame of {frame_bytes} bytes"

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """BpR as a shift."""
        return {**super().arguments(port, settings), "round_shift": settings.bytes_per_round.bit_length() - 1}

    def settings_from(self, arguments: Mapping[str, int]) -> Settings:
        """Back."""
        found = super().settings_from(arguments)
        return found.model_copy(update={"bytes_per_round": 1 << arguments["round_shift"]})
