# SPDX-License-Identifier: Apache-2.0
"""The run time on a topology: the configuration in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fairlane import ErrorCode, FairlaneError, RunState, TopologyControl

from .control import ActivityOptions, GfrControl
from .plan import GfrPlan, GfrStore, plan_in_force


class GfrTopology(TopologyControl):
    """The plan of all switches."""

    control_type = GfrControl
    needs_all_switches = True
    dry_run_observes = True

    def __init__(
        self,
        run: RunState | None = None,
        *,
        probes: bool = True,
        options: ActivityOptions | None = None,
        plan: GfrPlan | None = None,
    ) -> None:
        """`plan`: instead of what is remembered."""
        super().__init__(run, probes=probes)
        if plan is None:
            if run is None:
                raise FairlaneError(ErrorCode.NO_TOPOLOGY, "VCs are a whole topology's: name its run state by --state")
            plan = plan_in_force(GfrStore(run.folder).state, run)
        self.options = options or ActivityOptions(probes=probes)
        self.plan = plan

    def use_loop(self, loop: Any) -> None:
        """Take the keys of `GfrLoop` into use."""
        self.options = replace(self.options, period_s=loop.activity_period, active_s=loop.active_time)

    def refresh(self, controls: Mapping[str, GfrControl]) -> None:
        """With the configuration that is remembered now."""
        del controls
        if self.run is not None and (state := GfrStore(self.run.folder).state) != self.plan.state:
            self.plan = plan_in_force(state, self.run)
