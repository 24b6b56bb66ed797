# SPDX-License-Identifier: Apache-2.0
"""What programs share that drop by RED's average of the queue (`p4src/include/aqm/average.p4`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from fairlane_controller.program.port_program import AqmProgram, Param
from fairlane_controller.program.quantities import Packets
from fairlane_controller.program.settings import Settings
from fairlane_controller.state.run_state import PortState

AVERAGE_PACKETS = 2**16
"""Unit of thresholds and of the average."""
TYPICAL_BYTES = 1000
"""Of a packet: the time that it takes is the unit (RED's s) of time without packets."""


class AverageSettings(Settings):
    """One port of an `AverageProgram`."""

    min_th: Annotated[Packets, Param("min_th", AVERAGE_PACKETS), Field(le=20_000)] = 5
    "Average queue below which nothing is dropped."
    max_th: Annotated[Packets, Param("max_th", AVERAGE_PACKETS), Field(le=20_000)] = 15
    "Average queue from which on the probability is above `max_p`."
    max_p: Annotated[float, Field(gt=0, le=1)] = 0.1
    "Probability at `max_th`."
    weight: Annotated[int, Param("weight"), Field(ge=1, le=16)] = 9
    "The average's weight w_q is 2^-weight: 9 for 0.002."


class AverageProgram(AqmProgram):
    """Drops with a probability that grows with the average queue from 0 at `min_th` to `max_p` at `max_th`."""

    Settings = AverageSettings
    SLOPE = 2**24
    "Unit of the slope of a probability."
    LARGEST = 2**32 - 1
    "Of a parameter; as a probability, 1."

    def check_port(self, port: PortState, settings: Any) -> Iterable[str]:
        """Check the order of the thresholds."""
        if settings.max_th <= settings.min_th:
            yield f"max_th: {settings.max_th}: must be above min_th, {settings.min_th}"

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """As `PortProgram`; the slope of the probability, and the decay of the average while nothing waits."""
        slope = round(settings.max_p / (settings.max_th - settings.min_th) * self.SLOPE)
        decay = decay_of(port.rate_bps, settings.weight)
        return {**super().arguments(port, settings), "slope": min(slope, self.LARGEST), "decay": decay}

    def settings_from(self, arguments: Mapping[str, int]) -> Any:
        """The inverse of `arguments`."""
        found = super().settings_from(arguments)
        max_p = round(arguments["slope"] * (found.max_th - found.min_th) / self.SLOPE, 5)
        return found.model_copy(update={"max_p": max_p})


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
    return min(round(2**32 * math.log2(math.e) / (2**weight * service_us)), AverageProgram.LARGEST)
