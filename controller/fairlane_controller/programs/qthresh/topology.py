# SPDX-License-Identifier: Apache-2.0
"""The run time on a topology: settings that are remembered, options, and what people ask for through the control socket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from fairlane import Request, RunState, TopologyControl
from fairlane.loop import SwitchAgent
from fairlane.measure import MeasureOptions
from pydantic import Field

from .control import QthreshControl
from .flows import FlowWeight
from .settings import FlowWeightConfig, QthreshLoop
from .store import LoopStore


@dataclass(frozen=True)
class QthreshOptions:
    """How the loop of a switch works."""

    loop: QthreshLoop = field(default_factory=QthreshLoop)
    "When it decides, writes and forgets."
    measure: MeasureOptions = field(default_factory=MeasureOptions)
    keeps_counts: bool = True
    "Whether the switch gets a hash key, and what it counts as waiting is compared with its queues (`measure/occupancy.py`)."
    flow_weight: FlowWeight | None = None
    "The weight of a new flow's entry; without, every flow has its class's."

    def with_loop(self, loop: Any) -> QthreshOptions:
        """These with `[loop]` of a configuration."""
        return replace(self, loop=loop, flow_weight=loop.weight_of if loop.flow_weights else self.flow_weight)


class _FlowWeights(Request):
    """Rules for the weights of new flows."""

    rules: Annotated[list[FlowWeightConfig], Field(max_length=1_000)]


class QthreshTopology(TopologyControl):
    """Settings of the policies of all switches."""

    control_type = QthreshControl
    requests: ClassVar[Mapping[str, type[Request]]] = {"flow_weights": _FlowWeights}

    def __init__(
        self,
        run: RunState | None = None,
        *,
        probes: bool = True,
        options: QthreshOptions | None = None,
        store: LoopStore | None = None,
    ) -> None:
        super().__init__(run, probes=probes)
        self.store = store or LoopStore(run.folder if run is not None else None)
        self.options = options or QthreshOptions()
        if run is not None and run.target == "bmv2":
            measure = replace(self.options.measure, sample_includes_t_d=False)
            self.options = replace(self.options, measure=measure)

    def use_loop(self, loop: Any) -> None:
        """Decide, tune and forget as it says."""
        self.options = self.options.with_loop(loop)

    async def handle(self, agents: Mapping[str, SwitchAgent], request: dict[str, Any]) -> Any:
        """Weights of new flows."""
        rules = QthreshLoop.model_validate({"flow_weights": request["rules"]})
        self.options = replace(self.options, flow_weight=rules.weight_of)
        for agent in agents.values():
            agent.control.use_options()
        return {"rules": len(rules.flow_weights)}
