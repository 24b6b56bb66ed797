# SPDX-License-Identifier: Apache-2.0
"""`p4src/pie.p4` (docs/schemes.md): PIE's settings, entries and columns."""

from __future__ import annotations

from typing import Annotated

from fairlane import AqmProgram, Column, Duration, Param, Settings
from pydantic import Field


class Pie(AqmProgram):
    """PIE (RFC 8033): drops or marks with a probability that holds the queueing delay at a target."""

    name = "pie"
    tables = ("pie_port",)
    dropped = "chosen by chance, to hold the delay at the target"
    columns = (
        AqmProgram.delay,
        Column("pie_drop_probability", "drop prob.", doc="probability with which PIE drops an arriving packet (drop_prob_)", register="drop_probability", scale=2.0**-40, value_type=float),
        *AqmProgram.columns[1:],
    )  # fmt: skip

    class Settings(Settings):
        """One port."""

        target: Annotated[Duration, Param("target_us", 1e6), Field(ge=1e-6, le=10)] = 0.015
        "Target queueing delay (RFC 8033 QDELAY_REF)."
        update: Annotated[Duration, Param("update_us", 1e6), Field(ge=1e-6, le=0.25)] = 0.015
        "From one update of the probability to the next (T_UPDATE)."
        max_burst: Annotated[Duration, Param("burst_us", 1e6), Field(ge=0, le=10)] = 0.15
        "Length of a burst after a quiet time in which no packet is dropped (MAX_BURST)."
        ecn: Annotated[bool, Param("ecn")] = True
        "Whether packets that can be marked (ECT) are marked instead of dropped."
