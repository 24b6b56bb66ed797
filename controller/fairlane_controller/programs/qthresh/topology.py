# SPDX-License-Identifier: Apache-2.0
"""The run time on a topology: settings that are remembered, options, and what people ask for through the control socket."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Annotated, Any

from fairlane import Plain, Request, RunState, SwitchRequest, TopologyControl, find_by_name
from fairlane.changes import loop_runs
from fairlane.loop import SwitchAgent
from pydantic import Field

from .control import QthreshControl
from .follower import DryFollower
from .options import QthreshOptions
from .settings import WeightRules
from .store import LoopStore

MAX_RULES = 1_000


class _Explain(SwitchRequest):
    """Why each flow of a port has what it has."""

    port: int


class _FlowWeights(Request):
    rules: Annotated[list[Plain], Field(max_length=MAX_RULES)]


REQUESTS: dict[str, type[Request]] = {"explain": _Explain, "flow_weights": _FlowWeights}


class QthreshTopology(TopologyControl):
    """Settings of the policies of all switches."""

    control_type = QthreshControl
    requests = REQUESTS

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
        options = options or QthreshOptions(probes=probes)
        if run is not None and run.target == "bmv2":
            options = replace(options, measure=replace(options.measure, sample_includes_t_d=False))
        self.options = options

    def use_loop(self, loop: Any) -> None:
        """Decide, tune and forget as it says."""
        self.options = self.options.options_of_loop(loop)

    async def handle(self, agents: Mapping[str, SwitchAgent], request: dict[str, Any]) -> Any:
        """Weights of new flows, or why flows have what they have."""
        if request["op"] == "explain":
            return _control(find_by_name("switch", str(request["switch"]), agents)).explain(request["port"])
        rules = WeightRules.parse(request["rules"])
        self.options = replace(self.options, flow_weight=rules)
        for agent in agents.values():
            agent.control.use_options()
        return {"rules": len(rules.rules)}

    def follow(self, log: Any) -> Callable[[Callable[[], None]], Coroutine[Any, Any, None]] | None:
        """Where a loop runs, decide by what it measures."""
        if self.run is None or not loop_runs(self.run.folder):
            return None
        return DryFollower(self.run, log, self.options).run


def _control(agent: SwitchAgent) -> QthreshControl:
    assert isinstance(agent.control, QthreshControl)
    return agent.control
