# SPDX-License-Identifier: Apache-2.0
"""`p4src/red.p4` (docs/schemes.md): RED's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fairlane import AVERAGE_PACKETS, AqmProgram, AverageProgram, AverageSettings, Column, Param, PortState


class Red(AverageProgram):
    """RED (RFC 2309, RFC 3168): drops or marks with a probability that grows with the average queue."""

    name = "red"
    tables = ("red_port",)
    dropped = "chosen by chance, or the average queue was too long"
    columns = (
        Column("red_average_packets", "average", "packets", "average queue that RED computes (avg)", register="average", scale=1 / AVERAGE_PACKETS, value_type=float),
        *AqmProgram.columns,
    )  # fmt: skip

    class Settings(AverageSettings):
        """One port."""

        gentle: bool = True
        "Whether the probability goes up to 1 at 2 max_th (Floyd 2000); else it is 1 from max_th on."
        ecn: Annotated[bool, Param("ecn")] = True
        "Whether packets that can be marked (ECT) are marked instead of dropped."

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """As `AverageProgram`. Above `max_th`: gentle or at once."""
        top, gentle = settings.max_p, settings.gentle
        return {
            **super().arguments(port, settings),
            "max_p": round(top * self.LARGEST) if gentle else self.LARGEST,
            "gentle_slope": round((1 - top) / settings.max_th * self.SLOPE) if gentle else self.LARGEST,
        }

    def settings_from(self, arguments: Mapping[str, int]) -> Any:
        """The inverse of `arguments`."""
        found = super().settings_from(arguments)
        return found.model_copy(update={"gentle": arguments["gentle_slope"] != self.LARGEST})
