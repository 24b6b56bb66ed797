# SPDX-License-Identifier: Apache-2.0
"""The run time on a topology: settings that are remembered, options, and what people ask for through the control socket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, cast

from fairlane import Request, RunState, SwitchRequest, TopologyControl, find_by_name
from fairlane.loop import SwitchAgent
from pydantic import Field

from .control import QthreshControl
from .options import QthreshOptions
from .settings import FlowWeightConfig, QthreshLoop
from .store import LoopStore


class _Explain(SwitchRequest):
    """Why each flow of a port has what it has."""

    port: int


class _FlowWeights(Request):
    """Rules for the weights of new flows."""

    rules: Annotated[list[FlowWeightConfig], Field(max_length=1_000)]


class QthreshTopology(TopologyControl):
    """Settings of the policies of all switches."""

    control_type = QthreshControl
    requests: ClassVar[Mapping[str, type[Request]]] = {"explain": _Explain, "flow_weights": _FlowWeights}

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
        self.options = options or QthreshOptions(probes=probes)
        if run is not None and run.target == "bmv2":
            measure = replace(self.options.measure, sample_includes_t_d=False)
            self.options = replace(self.options, measure=measure)

    def use_loop(self, loop: Any) -> None:
        """Decide, tune and forget as it says."""
        self.options = self.options.with_loop(loop)

    async def handle(self, agents: Mapping[str, SwitchAgent], request: dict[str, Any]) -> Any:
        """Weights of new flows, or why flows have what they have."""
        if request["op"] == "explain":
            agent = find_by_name("switch", str(request["switch"]), agents)
            return cast("QthreshControl", agent.control).explain(request["port"])
        rules = QthreshLoop.model_validate({"flow_weights": request["rules"]})
        self.options = replace(self.options, flow_weight=rules.weight_of)
        for agent in agents.values():
            agent.control.use_options()
        return {"rules": len(rules.flow_weights)}
