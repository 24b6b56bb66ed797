# SPDX-License-Identifier: Apache-2.0
"""`p4src/pie.p4` (docs/pie.md): PIE's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fairlane import Column, Duration, PortProgram, PortState, Reason, Settings
from pydantic import Field

REASON_AQM = 11


class Pie(PortProgram):
    """PIE, RFC 8033."""

    name = "pie"
    title = "PIE (RFC 8033): drops or marks with a probability that holds the queueing delay at a target."
    p4 = "../../../../p4src/compiled/pie"
    tables = ("pie_port",)
    port_action = "set_pie"
    reasons = {REASON_AQM: Reason("pie", "chosen by chance, to hold the delay at the target", in_queue=True)}
    columns = (
        Column("queue_delay_s", "delay", "s", "mean queueing delay of the packets sent", ratio=("waited_s", "sent")),
        Column("pie_drop_probability", "drop prob.", doc="probability with which PIE drops an arriving packet (drop_prob_)", register="drop_probability", scale=2.0**-40, value_type=float),
        Column("aqm_dropped", "dropped", "packets", "packets dropped by queue management", reason=REASON_AQM, plot="drops"),
        Column("aqm_marked", "marked", "packets", "packets marked CE by queue management", counter="marked"),
        Column("sent", "sent", "packets", "packets sent", counter="sent", wide=True),
        Column("waited_s", "waited", "s", "queueing delay of all packets sent, together", register="waited_us", scale=1e-6, total=True, wide=True),
    )  # fmt: skip

    class Settings(Settings):
        """One port."""

        target: Annotated[Duration, Field(ge=1e-6, le=10)] = 0.015
        "Target queueing delay (RFC 8033 QDELAY_REF)."
        update: Annotated[Duration, Field(ge=1e-6, le=10)] = 0.015
        "From one update of the probability to the next (T_UPDATE)."
        max_burst: Annotated[Duration, Field(ge=0, le=10)] = 0.15
        "So long a burst after a quiet time meets no drop (MAX_BURST)."
        ecn: bool = True
        "Whether packets that can be marked (ECT) are marked instead of dropped."

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """Times in us."""
        times = {"target_us": settings.target, "update_us": settings.update, "burst_us": settings.max_burst}
        return {**{name: round(value * 1e6) for name, value in times.items()}, "ecn": int(settings.ecn)}

    def settings_from(self, arguments: Mapping[str, int]) -> Settings:
        """Back."""
        target, update, burst = (arguments[name] / 1e6 for name in ("target_us", "update_us", "burst_us"))
        return self.Settings.model_construct(target=target, update=update, max_burst=burst, ecn=bool(arguments["ecn"]))
