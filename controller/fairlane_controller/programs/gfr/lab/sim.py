# SPDX-License-Identifier: Apache-2.0
"""GFR in a simulated world: set up by the controller's own code, what each VC has sent and lost read while it runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Sequence
from typing import Any

from fairlane.changes import EventLog
from fairlane.switch import SwitchClient
from fairlane_lab.programs.part import LabPart, SimPart
from fairlane_lab.sim.world import SimWorld

from ..plan import GfrPlan, GfrState, make_plan
from ..topology import GfrTopology
from .config import gfr_config
from .vcs import read_refusals

SAMPLE_S = 0.1
"""Between two looks at what the flows have carried."""


class GfrInSim(SimPart):
    """What a run with program `gfr` needs beside the simulation."""

    def __init__(self, part: LabPart, world: SimWorld) -> None:
        super().__init__(part, world)
        self._plan: GfrPlan | None = None

    def make_plan(self) -> GfrPlan:
        world, scenario = self.world, self.world.config.scenario
        config = gfr_config(scenario, world.config.topology)
        now_s = asyncio.get_running_loop().time()
        self._plan = make_plan(config, GfrState(), now_s, world.run_state, scenario.point)
        return self._plan

    def start(self, log: EventLog) -> Sequence[Coroutine[Any, Any, None]]:
        """The sampling, and the controller's agents, which keep N and w_i current."""
        assert self._plan is not None
        measures = self.world.config.scenario.control.probes
        topology = GfrTopology(measures=measures, keeps_counts=False, plan=self._plan)
        self.world.loop.stop_on_messages = measures
        return [self._sample_forever(), *self.run_agents(topology, log)]

    async def read(self, client: SwitchClient) -> dict[str, dict[str, int]]:
        """Frames that each VC has lost so far, by verdict."""
        assert self._plan is not None
        return await read_refusals(client, self._plan.state.allocation)

    async def _sample_forever(self) -> None:
        while True:
            self.end()
            await asyncio.sleep(SAMPLE_S)

    def end(self) -> None:
        """Look at what each flow has carried."""
        now_s = self.world.simulation.now_ns / 1e9
        rows: list[dict[str, Any]] = json.loads(self.world.simulation.flows())
        for row in rows:
            points = self.carried.setdefault(row["flow"], [])
            if not points or points[-1][0] < now_s:
                points.append((now_s, float(row["received_bytes"])))
