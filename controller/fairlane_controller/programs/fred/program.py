# SPDX-License-Identifier: Apache-2.0
"""`p4src/fred.p4` (docs/schemes.md): FRED's settings, entries and columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fairlane import AqmProgram, Column, Packets, Param, PortState, Reason, Settings
from pydantic import Field

PACKETS = 2**16
"""Unit of thresholds and of the average."""
SLOPE = 2**24
UINT32 = 2**32 - 1
TYPICAL_BYTES = 1000
"""Of a packet: the time that it takes is the unit of time without packets, as in `red`."""


class Fred(AqmProgram):
    """FRED (SIGCOMM 1997): drops by the packets that each flow has waiting, against the average of the active flows."""

    name = "fred"
    tables = ("fred_port",)
    ports_max = 63
    units = {"min_q": "packets"}
    reasons = {
        AqmProgram.DROPPED: Reason("fred", "chosen by chance, or the flow had too many packets waiting", in_queue=True)
    }
    columns = (
        AqmProgram.delay,
        Column("fred_average_packets", "average", "packets", "average queue (avg)", register="average", scale=1 / PACKETS, value_type=float),
        Column("fred_flows", "active", doc="flows that have packets waiting (Nactive)", register="active_flows", value_type=int),
        AqmProgram.drops,
        AqmProgram.sent,
        AqmProgram.waited,
    )  # fmt: skip

    class Settings(Settings):
        """One port."""

        min_th: Annotated[Packets, Param("min_th", PACKETS), Field(le=20_000)] = 25
        "Average queue below which nothing is dropped by chance; packets that a flow may have waiting (maxq)."
        max_th: Annotated[Packets, Param("max_th", PACKETS), Field(le=20_000)] = 50
        "Average queue from which on a flow may have two packets waiting."
        max_p: Annotated[float, Field(gt=0, le=1)] = 0.02
        "Probability just below `max_th`."
        min_q: Annotated[Packets, Param("min_q")] = 4
        "Packets that a flow may have waiting without loss by chance (minq)."
        weight: Annotated[int, Param("weight"), Field(ge=1, le=16)] = 9
        "The average's weight w_q is 2^-weight: 9 for 0.002."

    def check_port(self, port: PortState, settings: Any) -> Iterable[str]:
        """Check the order of the thresholds."""
        if settings.max_th <= settings.min_th:
            yield f"max_th: {settings.max_th}: must be above min_th, {settings.min_th}"

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """The slope of the probability, and the decay of the average while nothing waits."""
        slope = round(settings.max_p / (settings.max_th - settings.min_th) * SLOPE)
        decay = round(2**32 * math.log2(math.e) * port.rate_bps / (2**settings.weight * 8e6 * TYPICAL_BYTES))
        return {**super().arguments(port, settings), "slope": min(slope, UINT32), "decay": min(decay, UINT32)}

    def settings_from(self, arguments: Mapping[str, int]) -> Any:
        """The inverse of `arguments`."""
        found = super().settings_from(arguments)
        max_p = round(arguments["slope"] * (found.max_th - found.min_th) / SLOPE, 5)
        return found.model_copy(update={"max_p": max_p})
