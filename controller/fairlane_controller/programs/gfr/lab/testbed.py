# SPDX-License-Identifier: Apache-2.0
"""`gfr` in Mininet: the control loop gets the scenario's VCs."""

from __future__ import annotations

from fairlane.switch import SwitchClient
from fairlane_lab.programs.part import MininetPart
from fairlane_lab.scenario import Scenario
from fairlane_lab.testbed.plan import Plan

from ..changes import change
from ..plan import GfrStore
from .config import gfr_config
from .counters import read_refusals


class GfrInMininet(MininetPart):
    """VCs and schemes through the control loop."""

    def begin(self, scenario: Scenario, plan: Plan) -> dict[tuple[str, int], int | None]:
        del plan
        config = gfr_config(scenario, self.bed.network.topology)
        change(
            str(self.bed.state), {"op": "gfr_apply", "config": config.model_dump(mode="json"), "source": scenario.point}
        )
        return {}

    async def read(self, client: SwitchClient) -> dict[str, dict[str, int]]:
        return await read_refusals(client, GfrStore(self.bed.state).state.allocation)
