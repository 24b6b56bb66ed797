# SPDX-License-Identifier: Apache-2.0
"""How the loop of a switch works: options, and what `[loop]` of the configuration file says of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from fairlane.measure import MeasureOptions

from .flows import FlowWeight
from .settings import QthreshLoop


@dataclass(frozen=True)
class QthreshOptions:
    """How the loop of a switch works."""

    loop: QthreshLoop = field(default_factory=QthreshLoop)
    "When it decides, writes and forgets."
    measure: MeasureOptions = field(default_factory=MeasureOptions)
    probes: bool = True
    "Whether the links behind the managed ports are probed for τ."
    keeps_counts: bool = True
    "Whether the switch gets a hash key, and what it counts as waiting is compared with its queues (`measure/occupancy.py`)."
    flow_weight: FlowWeight | None = None
    "The weight of a new flow's entry; without, every flow has its class's."

    def with_loop(self, loop: Any) -> QthreshOptions:
        """These with `[loop]` of a configuration."""
        return replace(self, loop=loop, flow_weight=loop.weight_of if loop.flow_weights else self.flow_weight)
