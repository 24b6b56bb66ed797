# SPDX-License-Identifier: Apache-2.0
"""`p4src/red.p4` (docs/schemes.md): RED's settings, entries and columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fairlane import AqmProgram, Column, Packets, Param, PortState, Reason, Settings
from pydantic import Field

PACKETS = 2**16
"""Unit of thresholds and of the average."""
PROBABILITY = 2**32 - 1
SLOPE = 2**24
SLOPE_MAX = 2**32 - 1
TYPICAL_BYTES = 1000
"""Of a packet: the time that it takes is the unit (the paper's s) of time without packets."""


class Red(AqmProgram):
    """RED (RFC 2309, RFC 3168): drops or marks with a probability that grows with the average queue."""

    name = "red"
    tables = ("red_port",)
    reasons = {AqmProgram.DROPPED: Reason("red", "chosen by chance, or the average queue was too long", in_queue=True)}
    columns = (
        Column("red_average_packets", "average", "packets", "average queue that RED computes (avg)", register="average", scale=1 / PACKETS, value_type=float),
        *AqmProgram.columns,
    )  # fmt: skip

    class Settings(Settings):
        """One port."""

        min_th: Annotated[Packets, Param("min_th", PACKETS), Field(le=20_000)] = 5
        "Average queue below which nothing is dropped."
        max_th: Annotated[Packets, Param("max_th", PACKETS), Field(le=20_000)] = 15
        "Average queue from which on the probability is above `max_p`."
        max_p: Annotated[float, Field(gt=0, le=1)] = 0.1
        "Probability at `max_th`."
        weight: Annotated[int, Param("weight"), Field(ge=1, le=16)] = 9
        "The average's weight w_q is 2^-weight: 9 for 0.002."
        gentle: bool = True
        "Whether the probability goes up to 1 at 2 max_th (Floyd 2000); else it is 1 from max_th on."
        ecn: Annotated[bool, Param("ecn")] = True
        "Whether packets that can be marked (ECT) are marked instead of dropped."

    def check_port(self, port: PortState, settings: Any) -> Iterable[str]:
        """Check the order of the thresholds."""
        if settings.max_th <= settings.min_th:
            yield f"max_th: {settings.max_th}: must be above min_th, {settings.min_th}"

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """The paper's constants C1 .. C4 as slopes. Above `max_th`: gentle or at once."""
        low, high, top, gentle = settings.min_th, settings.max_th, settings.max_p, settings.gentle
        return {
            **super().arguments(port, settings),
            "max_p": round(top * PROBABILITY) if gentle else PROBABILITY,
            "slope": min(round(top / (high - low) * SLOPE), SLOPE_MAX),
            "gentle_slope": round((1 - top) / high * SLOPE) if gentle else SLOPE_MAX,
            "decay": decay_of(port.rate_bps, settings.weight),
        }

    def settings_from(self, arguments: Mapping[str, int]) -> Any:
        """The inverse of `arguments`."""
        found = super().settings_from(arguments)
        max_p = round(arguments["slope"] * (found.max_th - found.min_th) / SLOPE, 5)
        return found.model_copy(update={"max_p": max_p, "gentle": arguments["gentle_slope"] != SLOPE_MAX})


def decay_of(rate_bps: float, weight: int) -> int:
    """The decay of the average while the queue is empty (Floyd and Jacobson 1993, section 11).

    Args:
        rate_bps: Rate of the port in bit/s; 0: not known.
        weight: The average's weight w_q is 2^-weight.

    Returns:
        What log2 of the average falls by in a us, in 2^-32: log2(e) w_q / s; 0 without a known rate.
    """
    if not rate_bps:
        return 0
    service_us = 8e6 * TYPICAL_BYTES / rate_bps
    return min(round(2**32 * math.log2(math.e) / (2**weight * service_us)), 2**32 - 1)
