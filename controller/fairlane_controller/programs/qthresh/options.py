# SPDX-License-Identifier: Apache-2.0
"""How the loop of a switch works: options, and what `[loop]` of the configuration file says of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from fairlane.measure import MeasureOptions

from .flows import FlowWeight
from .law import LawOptions
from .settings import QthreshLoop, WeightRules


@dataclass(frozen=True)
class QthreshOptions:
    """How the loop of a switch works."""

    loop: QthreshLoop = field(default_factory=QthreshLoop)
    "When it decides, writes and forgets."
    measure: MeasureOptions = field(default_factory=MeasureOptions)
    law: LawOptions = field(default_factory=LawOptions)
    probes: bool = True
    "Whether the links behind the managed ports are probed for τ."
    keeps_counts: bool = True
    "Whether the switch gets a hash key, and what it counts as waiting is compared with its queues (`measure/occupancy.py`)."
    flow_weight: FlowWeight | None = None
    "The weight of a new flow's entry; without, every flow has its class's."

    def options_of_loop(self, loop: Any) -> QthreshOptions:
        """These with what `[loop]` says."""
        weight = WeightRules(loop.flow_weights) if loop.flow_weights else self.flow_weight
        return replace(self, loop=loop, law=replace(self.law, period_s=loop.tune_period), flow_weight=weight)
