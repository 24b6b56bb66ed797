# SPDX-License-Identifier: Apache-2.0
"""`gfr` in Mininet: the control loop gets the scenario's VCs."""

from __future__ import annotations

from fairlane.switch import SwitchClient
from fairlane_lab.programs.part import MininetPart
from fairlane_lab.scenario import Scenario
from fairlane_lab.testbed.plan import Plan

from ..cli_vc import VCS
from ..plan import gfr_store
from .config import gfr_config
from .vcs import read_refusals


class GfrInMininet(MininetPart):
    """VCs and schemes through the control loop."""

    def begin(self, scenario: Scenario, plan: Plan) -> dict[tuple[str, int], int | None]:
        del plan
        config = gfr_config(scenario, self.bed.network.topology)
        plain = config.model_dump(mode="json")
        VCS.change(str(self.bed.state), lambda data: data.update(plain), scenario.point, from_file=True)
        return {}

    async def read(self, client: SwitchClient) -> dict[str, dict[str, int]]:
        return await read_refusals(client, gfr_store(self.bed.state).get().allocation)
