# SPDX-License-Identifier: Apache-2.0
"""`p4src/fred.p4` (docs/schemes.md): FRED's settings, entries and columns."""

from __future__ import annotations

from typing import Annotated

from fairlane import AVERAGE_PACKETS, AqmProgram, AverageProgram, AverageSettings, Column, Packets, Param
from pydantic import Field


class Fred(AverageProgram):
    """FRED (SIGCOMM 1997): drops by the packets that each flow has waiting, against the average of the active flows."""

    name = "fred"
    tables = ("fred_port",)
    ports_max = 63
    units = {"min_q": "packets"}
    dropped = "chosen by chance, or the flow had too many packets waiting"
    columns = (
        AqmProgram.delay,
        Column("fred_average_packets", "average", "packets", "average queue (avg)", register="average", scale=1 / AVERAGE_PACKETS, value_type=float),
        Column("fred_flows", "active", doc="flows that have packets waiting (Nactive)", register="active_flows", value_type=int),
        AqmProgram.drops,
        AqmProgram.sent,
        AqmProgram.waited,
    )  # fmt: skip

    class Settings(AverageSettings):
        """One port."""

        min_th: Annotated[Packets, Param("min_th", AVERAGE_PACKETS), Field(le=20_000)] = 25
        "Average queue below which nothing is dropped by chance; packets that a flow may have waiting (maxq)."
        max_th: Annotated[Packets, Param("max_th", AVERAGE_PACKETS), Field(le=20_000)] = 50
        "Average queue from which on a flow may have two packets waiting."
        max_p: Annotated[float, Field(gt=0, le=1)] = 0.02
        "Probability just below `max_th`."
        min_q: Annotated[Packets, Param("min_q")] = 4
        "Packets that a flow may have waiting without loss by chance (minq)."
