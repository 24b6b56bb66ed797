# SPDX-License-Identifier: Apache-2.0
"""GFR in a simulated world: set up by the controller's own code, what each VC has sent and lost read while it runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

from fairlane import apply_plan, load_program
from fairlane.changes import EventLog
from fairlane.switch import put_entries, route_entries
from fairlane_lab.programs.part import LabPart, SimPart
from fairlane_lab.run_result import SeriesPoint, VcResult
from fairlane_lab.sim.result import Observed
from fairlane_lab.sim.world import SimWorld

from ..control import ActivityOptions
from ..plan import GfrPlan, GfrState, make_plan
from ..topology import GfrTopology
from .config import gfr_config
from .counters import added, grown, read_refusals
from .results import vc_results, vc_samples, vc_series
from .ways import gfr_ports

SAMPLE_S = 0.1
"""Between two looks at what the flows have carried."""


class GfrInSim(SimPart):
    """What a run with program `gfr` needs beside the simulation."""

    def __init__(self, part: LabPart, world: SimWorld) -> None:
        super().__init__(part, world)
        self._plan: GfrPlan | None = None
        self._samples: dict[str, list[tuple[float, float]]] = {}

    async def set_up(self) -> None:
        """Routes, and the configuration through the controller's checks."""
        world, scenario = self.world, self.world.config.scenario
        for state in world.run_state.switches:
            async with world.client(world.endpoint(state.name), write=True) as client:
                await put_entries(client, route_entries(client, state))
        config = gfr_config(scenario, world.config.topology)
        now_s = asyncio.get_running_loop().time()
        self._plan = make_plan(config, GfrState(), now_s, world.run_state, scenario.point)
        for name in self._plan.switches:
            async with world.client(world.endpoint(name), write=True) as client:
                await apply_plan(client, load_program("gfr"), self._plan)

    def start(self, log: EventLog) -> Sequence[Coroutine[Any, Any, None]]:
        """The sampling, and the controller's agents, which keep N and w_i current."""
        assert self._plan is not None
        options = ActivityOptions(measure=self.world.config.scenario.control.probes, keeps_counts=False)
        topology = GfrTopology(options=options, plan=self._plan)
        self.world.loop.stop_on_messages = options.measure
        return [self._sample_forever(), *self.run_agents(topology, log)]

    async def snapshot(self) -> dict[str, dict[str, int]]:
        """Frames that each VC has lost so far, by verdict."""
        assert self._plan is not None
        parts: list[dict[str, dict[str, int]]] = []
        for switch in self.world.managed_switches():
            async with self.world.client(self.world.endpoint(switch)) as client:
                parts.append(await read_refusals(client, self._plan.state.allocation))
        return added(parts)

    async def _sample_forever(self) -> None:
        while True:
            self.end()
            await asyncio.sleep(SAMPLE_S)

    def end(self) -> None:
        """Look at what each flow has carried."""
        now_s = self.world.simulation.now_ns / 1e9
        rows: list[dict[str, Any]] = json.loads(self.world.simulation.flows())
        for row in rows:
            points = self._samples.setdefault(row["flow"], [])
            if not points or points[-1][0] < now_s:
                points.append((now_s, float(row["received_bytes"])))

    def vcs(self, seen: Observed) -> list[VcResult]:
        scenario = self.world.config.scenario
        ports = list(gfr_ports(scenario, self.world.config.topology).values())
        return vc_results(
            scenario, ports, vc_samples(scenario, self._samples), grown(seen.before.of_program, seen.after.of_program)
        )

    def series(self) -> Iterator[SeriesPoint]:
        """Goodput of each VC over time."""
        return iter(vc_series(vc_samples(self.world.config.scenario, self._samples)))
