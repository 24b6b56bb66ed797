# SPDX-License-Identifier: Apache-2.0
"""`p4src/cebinae.p4` (docs/cebinae.md): Cebinae's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fairlane import Column, Duration, ErrorCode, FairlaneError, PortProgram, PortState, Reason, Settings
from pydantic import Field

REASON_AQM = 11
ONE = 1 << 24
"""Of the P4 program's shares."""
PERIOD_BYTES_MAX = (1 << 31) - 1
"""What the P4 program counts in a period."""


class Cebinae(PortProgram):
    """Cebinae: tax, filter and turns (the paper's sections 3 and 4)."""

    name = "cebinae"
    title = "Cebinae (SIGCOMM 2022): the largest flows of a saturated port are taxed, so that the others can grow."
    p4 = "../../../../p4src/compiled/cebinae"
    tables = ("cebinae_port",)
    port_action = "set_cebinae"
    units = {"rounds": "rounds", "tax_share": "2^-24", "flow_share": "2^-24", "queues": "queues"}
    reasons = {REASON_AQM: Reason("cebinae", "beyond its flows' allowance of this round and the next", in_queue=True)}
    columns = (
        Column("queue_delay_s", "delay", "s", "mean queueing delay of the packets sent", ratio=("waited_s", "sent")),
        Column("allowance_bytes", "allowance", "bytes", "what the taxed flows together may send in a round; 0: nobody is taxed", register="allowed_bytes"),
        Column("aqm_dropped", "dropped", "packets", "packets dropped by queue management", reason=REASON_AQM, plot="drops"),
        Column("taxed", "taxed", "packets", "packets of taxed flows that came", counter="taxed"),
        Column("saturated_periods", "saturated", doc="periods in which the port was saturated", counter="saturated", value_type=int),
        Column("sent", "sent", "packets", "packets sent", counter="sent", wide=True),
        Column("waited_s", "waited", "s", "queueing delay of all packets sent, together", register="waited_us", scale=1e-6, total=True, wide=True),
    )  # fmt: skip

    class Settings(Settings):
        """One port. It needs a rate; its scheduler is `calendar`, its queues are two."""

        round: Annotated[Duration, Field(ge=0.001, le=10)] = 0.1
        "Turn of a queue (dT): no shorter than the flows' round trips, and than it takes to send what the port holds."
        period_rounds: Annotated[int, Field(ge=1, le=1_000)] = 1
        "Every so many rounds the flows are judged anew (P)."
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
        if not port.rate_bps:
            raise FairlaneError(ErrorCode.BAD_INPUT, f"port {port.port}: cebinae needs a rate, and the port has none")
        capacity = port.rate_bps * settings.round / 8
        period_bytes = capacity * settings.period_rounds
        if not 1 <= period_bytes <= PERIOD_BYTES_MAX:
            raise FairlaneError(
                ErrorCode.BAD_INPUT,
                f"port {port.port}: round and period_rounds: {period_bytes:.0f} bytes fit into a period "
                f"at {port.rate_bps:.0f} bit/s; allowed are 1 to {PERIOD_BYTES_MAX}",
            )
        return {
            "round_us": round(settings.round * 1e6),
            "inverse_us": round(2**32 / (settings.round * 1e6)),
            "rounds": settings.period_rounds,
            "capacity_bytes": round(capacity),
            "taxed_max_bytes": round(capacity * (1 - settings.tax)),
            "tax_share": round((1 - settings.tax) / settings.period_rounds * ONE),
            "flow_share": round((1 - settings.flow_margin) * ONE),
            "saturated_bytes": round(period_bytes * (1 - settings.saturation_margin)),
            "queues": min(port.queues or 2, 2),
        }

    def settings_from(self, arguments: Mapping[str, int]) -> Settings:
        """Back."""
        rounds, capacity = arguments["rounds"], arguments["capacity_bytes"]
        return self.Settings.model_construct(
            round=arguments["round_us"] / 1e6,
            period_rounds=rounds,
            tax=round(1 - arguments["tax_share"] * rounds / ONE, 4),
            saturation_margin=round(1 - arguments["saturated_bytes"] / (capacity * rounds), 4),
            flow_margin=round(1 - arguments["flow_share"] / ONE, 4),
        )
