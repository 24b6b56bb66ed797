# SPDX-License-Identifier: Apache-2.0
"""`p4src/dualpi2.p4` (docs/schemes.md): DualPI2's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fairlane import AqmProgram, Column, Duration, Param, PortState, Reason, Settings
from pydantic import Field

REASON_OVERLOAD = 13
ONE = 2.0**40
"""Of the P4 program's probabilities."""


class DualPi2(AqmProgram):
    """DualPI2 (RFC 9332): a queue of its own for L4S, its marks coupled to the drops of the Classic queue."""

    name = "dualpi2"
    tables = ("dualpi2_port",)
    scheduler = "drr"
    queues = 2
    dropped = "from the Classic queue, to hold the delay at the target"
    reasons = {
        REASON_OVERLOAD: Reason("dualpi2_overload", "from the L4S queue, when marks were not enough", in_queue=True),
    }
    columns = (
        AqmProgram.delay,
        Column("l4s_delay_s", "L delay", "s", "mean queueing delay in the L4S queue", ratio=("l4s_waited_s", "l4s_sent")),
        Column("classic_delay_s", "C delay", "s", "mean queueing delay in the Classic queue", ratio=("classic_waited_s", "classic_sent")),
        Column("base_probability", "p'", doc="base probability p': L4S packets are marked with k p', Classic ones dropped with p'^2", register="base_probability", scale=1 / ONE, value_type=float),
        AqmProgram.drops,
        Column("overload_dropped", "L dropped", "packets", "packets dropped from the L4S queue in overload", reason=REASON_OVERLOAD, plot="drops"),
        AqmProgram.marks,
        Column("l4s_marked", "L marked", "packets", "of these, in the L4S queue", counter="l_marked", wide=True),
        AqmProgram.sent,
        Column("l4s_sent", "L sent", "packets", "of these, from the L4S queue", counter="l_sent", wide=True),
        Column("classic_sent", "C sent", "packets", "of these, from the Classic queue", counter="c_sent", wide=True),
        AqmProgram.waited,
        Column("l4s_waited_s", "L waited", "s", "of these, in the L4S queue", register="l_waited_us", scale=1e-6, total=True, wide=True),
        Column("classic_waited_s", "C waited", "s", "of these, in the Classic queue", register="c_waited_us", scale=1e-6, total=True, wide=True),
    )  # fmt: skip

    class Settings(Settings):
        """One port. Its scheduler is `drr`, its queues are two; with `strict` nothing keeps L4S from starving the other queue."""

        target: Annotated[Duration, Param("target_us", 1e6), Field(ge=1e-6, le=10)] = 0.015
        "Target queueing delay of the Classic queue (RFC 9332 target)."
        rtt_max: Annotated[Duration, Field(ge=0.001, le=1)] = 0.1
        "Longest round trip of the flows (RTT_max), in steps of 10 us: the PI controller's gains and Tupdate follow from it."
        l4s_min_th: Annotated[Duration, Param("min_th_us", 1e6), Field(ge=0, le=1)] = 0.0008
        "Delay from which on packets in the L4S queue are marked (minTh)."
        l4s_range: Annotated[Duration, Field(ge=1e-6, le=1)] = 0.0004
        "Additional delay over which the share of marked packets grows to all (range)."
        coupling: Annotated[int, Param("k"), Field(ge=1, le=16)] = 2
        "Coupling factor k: L4S is marked with k times the square root of the Classic drop probability."
        l4s_weight: Annotated[int, Param("l4s_weight"), Field(ge=1, le=255)] = 15
        "The L4S queue's share under `drr`, beside 1 of the Classic queue."

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """The constants that the RFC derives from them (Appendix A.1), probabilities in 2^-40."""
        update = min(settings.target, settings.rtt_max / 3)
        return {
            **super().arguments(port, settings),
            "update_us": round(update * 1e6),
            "alpha": round(0.1 * update / settings.rtt_max**2 * 1e-6 * ONE),
            "beta": round(0.3 / settings.rtt_max * 1e-6 * ONE),
            "max_th_us": round((settings.l4s_min_th + settings.l4s_range) * 1e6),
            "ramp": round(ONE / (settings.l4s_range * 1e6)),
            "l4s_queue": int(port.queues != 1),
        }

    def settings_from(self, arguments: Mapping[str, int]) -> Any:
        """The inverse of `arguments`."""
        rtt_max = round(0.3 * 1e-6 * ONE / arguments["beta"], 5)
        l4s_range = (arguments["max_th_us"] - arguments["min_th_us"]) / 1e6
        return super().settings_from(arguments).model_copy(update={"rtt_max": rtt_max, "l4s_range": l4s_range})
