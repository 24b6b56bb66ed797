# SPDX-License-Identifier: Apache-2.0
"""The run time on a topology: the configuration in force."""

from __future__ import annotations

from collections.abc import Mapping

from fairlane import ErrorCode, FairlaneError, RunState, TopologyControl

from .config import GfrLoop
from .control import GfrControl
from .plan import GfrPlan, gfr_store, plan_in_force


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
        measures: bool = True,
        keeps_counts: bool = True,
        plan: GfrPlan | None = None,
    ) -> None:
        """Read what is remembered.

        Args:
            run: The topology.
            probes: Whether the links are probed for τ, where `measures`.
            measures: Whether the drain rate of the lines and τ are measured.
            keeps_counts: Whether what the switch counts as waiting is compared with its queues (`measure/occupancy.py`).
            plan: Instead of what is remembered.

        Raises:
            FairlaneError: NO_TOPOLOGY without both; BAD_FILE when the topology cannot have what is remembered.
        """
        super().__init__(run, probes=probes)
        self.loop, self.measures, self.keeps_counts = GfrLoop(), measures, keeps_counts
        if plan is None:
            if run is None:
                raise FairlaneError(ErrorCode.NO_TOPOLOGY, "VCs are a whole topology's: name its run state by --state")
            plan = plan_in_force(gfr_store(run.folder).get(), run)
        self.plan = plan

    def use_loop(self, loop: GfrLoop) -> None:
        """Take the keys of `GfrLoop` into use."""
        self.loop = loop

    def refresh(self, controls: Mapping[str, GfrControl]) -> None:
        """With the configuration that is remembered now."""
        del controls
        if self.run is not None and (state := gfr_store(self.run.folder).get()) != self.plan.state:
            self.plan = plan_in_force(state, self.run)
