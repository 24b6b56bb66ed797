# SPDX-License-Identifier: Apache-2.0
"""`p4src/cebinae.p4` (docs/schemes.md): Cebinae's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fairlane import (
    AqmProgram,
    Column,
    Duration,
    ErrorCode,
    Param,
    PortState,
    Settings,
    longest_frame_bytes,
    out_of_range,
)
from pydantic import Field

ONE = 1 << 24
"""Of the P4 program's shares."""
PERIOD_BYTES_MAX = (1 << 31) - 1
"""What the P4 program counts in a period."""


class Cebinae(AqmProgram):
    """Cebinae (SIGCOMM 2022): the largest flows of a saturated port are taxed, so that the others can grow."""

    name = "cebinae"
    tables = ("cebinae_port",)
    scheduler = "calendar"
    units = {"rounds": "rounds", "tax_share": "2^-24", "flow_share": "2^-24", "queues": "queues"}
    dropped = "beyond its flows' allowance of this round and the next"
    columns = (
        AqmProgram.delay,
        Column("allowance_bytes", "allowance", "bytes", "what the taxed flows together may send in a round; 0: nobody is taxed", register="allowed_bytes"),
        AqmProgram.drops,
        Column("taxed", "taxed", "packets", "packets of taxed flows that came", counter="taxed"),
        Column("saturated_periods", "saturated", doc="periods in which the port was saturated", counter="saturated", value_type=int),
        AqmProgram.sent,
        AqmProgram.waited,
    )  # fmt: skip

    class Settings(Settings):
        """One port. It needs a rate; its scheduler is `calendar`, its queues are two."""

        round: Annotated[Duration, Param("round_us", 1e6), Field(ge=0.001, le=10)] = 0.1
        "Turn of a queue (dT): no shorter than the flows' round trips, and than the time in which the port sends a full queue."
        period_rounds: Annotated[int, Param("rounds"), Field(ge=1, le=1_000)] = 1
        "Rounds between two evaluations of the flows (P)."
        tax: Annotated[float, Field(gt=0, lt=1)] = 0.01
        "By this share the bottlenecked flows get less than they had (tau)."
        saturation_margin: Annotated[float, Field(ge=0, lt=1)] = 0.01
        "The port is saturated when no more than this share of its rate was left (delta_p)."
        flow_margin: Annotated[float, Field(ge=0, lt=1)] = 0.01
        "Bottlenecked is a flow that had less than the largest one by no more than this share (delta_f)."

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """Bytes of a round at the port's rate, shares in 2^-24.

        Raises:
            FairlaneError: BAD_INPUT, the port has no rate, or sends too much in a period for the program's counters.
        """
        capacity = port.rate_bps * settings.round / 8
        period_bytes = capacity * settings.period_rounds
        if not port.rate_bps:
            raise ErrorCode.BAD_INPUT(f"port {port.port}: cebinae needs a rate, and the port has none")
        if not 1 <= period_bytes <= PERIOD_BYTES_MAX:
            raise out_of_range(
                f"port {port.port}: bytes of a period (rate, round, period_rounds)",
                round(period_bytes),
                1,
                PERIOD_BYTES_MAX,
            )
        return {
            **super().arguments(port, settings),
            "inverse_us": round(2**32 / (settings.round * 1e6)),
            "capacity_bytes": round(capacity),
            "taxed_max_bytes": round(capacity * (1 - settings.tax)),
            "tax_share": round((1 - settings.tax) / settings.period_rounds * ONE),
            "flow_share": min(round((1 - settings.flow_margin) * ONE), ONE - 1),  # the largest flow is above it
            "saturated_bytes": round(period_bytes * (1 - settings.saturation_margin)),
            "queues": min(port.queues or 2, 2),
        }

    def check_port(self, port: PortState, settings: Any) -> Iterable[str]:
        """Check that two rounds take each frame, and that the port's rate is one of frames, as the program's bytes are."""
        frame_bytes, room_bytes = longest_frame_bytes(port.mtu), round(2 * port.rate_bps * settings.round / 8)
        if port.rate_bps and room_bytes < frame_bytes:
            least_ms = 4000 * frame_bytes / port.rate_bps
            yield f"round: {room_bytes} bytes in two rounds take no frame of {frame_bytes} bytes; must be at least {least_ms:.4g}ms"
        if port.link_layer not in ("", "none"):
            yield f"link_layer: {port.link_layer}: the line never carries the port's rate in bytes of frames; must be none"

    def settings_from(self, arguments: Mapping[str, int]) -> Any:
        """The inverse of `arguments`."""
        rounds = arguments["rounds"]
        shares = {
            "tax": arguments["tax_share"] * rounds / ONE,
            "saturation_margin": arguments["saturated_bytes"] / (arguments["capacity_bytes"] * rounds),
            "flow_margin": arguments["flow_share"] / ONE,
        }
        margins = {name: round(1 - share, 4) for name, share in shares.items()}
        return super().settings_from(arguments).model_copy(update=margins)
