# SPDX-License-Identifier: Apache-2.0
"""How the loop of a switch works: options, and what `[loop]` of the configuration file says of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from fairlane.measure import MeasureOptions

from . import names as program
from .decide import DecideOptions
from .flows import FlowWeight
from .law import LawOptions
from .settings import WeightRules


@dataclass(frozen=True)
class QthreshOptions:
    """How the loop of a switch works."""

    decide: DecideOptions = field(default_factory=DecideOptions)
    measure: MeasureOptions = field(default_factory=MeasureOptions)
    evaluate_period_s: float = 0.25
    law: LawOptions = field(default_factory=LawOptions)
    flow_idle_timeout_s: float = program.FLOW_IDLE_TIMEOUT_S
    probes: bool = True
    "Whether the links behind the managed ports are probed for τ."
    keeps_counts: bool = True
    "Whether the switch gets a hash key, and what it counts as waiting is compared with its queues (`measure/occupancy.py`)."
    flow_weight: FlowWeight | None = None
    "The weight of a new flow's entry; without, every flow has its class's."

    def options_of_loop(self, loop: Any) -> QthreshOptions:
        """These with what `[loop]` says."""
        decide = replace(
            self.decide,
            samples=loop.samples,
            margin_packets=loop.margin_packets,
            margin_ratio=loop.margin_ratio,
            agree_ratio=loop.agree_ratio,
            min_write_interval_s=loop.min_write_interval,
            max_age_s=loop.max_age,
            max_t_res_age_s=loop.max_t_res_age,
        )
        return replace(
            self,
            decide=decide,
            evaluate_period_s=loop.evaluate_period,
            law=replace(self.law, period_s=loop.tune_period),
            flow_idle_timeout_s=loop.flow_idle,
            flow_weight=WeightRules(loop.flow_weights) if loop.flow_weights else self.flow_weight,
        )
