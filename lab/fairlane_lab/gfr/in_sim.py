# SPDX-License-Identifier: Apache-2.0
"""GFR in a simulated world: set up by the controller's own code, what each VC has sent and lost read while it runs."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.loop.session import Log
from fairlane_controller.programs.gfr.control import ActivityOptions
from fairlane_controller.programs.gfr.deploy import Plan, deploy, make_plan
from fairlane_controller.programs.gfr.store import GfrState
from fairlane_controller.programs.gfr.topology import GfrTopology
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.setup import route_entries

from fairlane_lab.gfr.config import gfr_config
from fairlane_lab.gfr.counters import added, grown, read_refusals
from fairlane_lab.gfr.results import summed, vc_results, vc_series
from fairlane_lab.gfr.ways import gfr_ports
from fairlane_lab.gfr.windows import connections_of
from fairlane_lab.run_result import SeriesPoint, VcResult

if TYPE_CHECKING:
    from fairlane_lab.sim.world import SimWorld

SAMPLE_S = 0.1
"""Between two looks at what the flows have carried."""


class GfrInSim:
    """What a run with program `gfr` needs beside the simulation; `start` and `stop` frame the run."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._plan: Plan | None = None
        self._samples: dict[str, list[tuple[float, float]]] = {}
        self.agents: list[SwitchAgent] = []
        "One for each managed switch, once `follow` was called: they keep N and w_i current."

    async def set_up(self) -> None:
        """Routes, and the configuration through the controller's checks. Raises FairlaneError."""
        world = self._world
        for state in world.run_state.switches:
            async with world.client(world.endpoint(state.name), write=True) as client:
                await client.put_entries(route_entries(client, state))
        scenario, topology = world.config.scenario, world.config.topology
        config = gfr_config(scenario, topology)
        now_s = asyncio.get_running_loop().time()
        self._plan = make_plan(config, GfrState(), now_s, world.run_state, scenario.point)
        await deploy(self._plan, self._writer)

    def follow(self, log: Log) -> list[asyncio.Task[None]]:
        """Start the controller's agents and the sampling; returns their tasks, which end when they are cancelled."""
        assert self._plan is not None
        options = ActivityOptions(measure=self._world.config.scenario.control.probes, keeps_counts=False)
        topology = GfrTopology(options=options, plan=self._plan)
        for switch in self._world.managed_switches():
            self._world.loop.stop_on_messages = options.measure
            endpoint = self._world.endpoint(switch)
            self.agents.append(SwitchAgent(endpoint, topology, log, client_factory=self._world.client))
        jobs = [self._sample_forever(), *(agent.run() for agent in self.agents)]
        return [asyncio.create_task(job) for job in jobs]

    def _writer(self, switch: str) -> SwitchClient:
        return self._world.client(self._world.endpoint(switch), write=True)

    async def refusals(self) -> dict[str, dict[str, int]]:
        """Frames that each VC has lost so far, by verdict."""
        assert self._plan is not None
        parts: list[dict[str, dict[str, int]]] = []
        for switch in self._world.managed_switches():
            async with self._world.client(self._world.endpoint(switch)) as client:
                parts.append(await read_refusals(client, self._plan.state.allocation))
        return added(parts)

    async def _sample_forever(self) -> None:
        while True:
            self.sample()
            await asyncio.sleep(SAMPLE_S)

    def sample(self) -> None:
        """Look at what each flow has carried."""
        now_s = self._world.simulation.now_ns / 1e9
        rows: list[dict[str, Any]] = json.loads(self._world.simulation.flows())
        udp = {each.name for each in self._world.config.flows if each.flow.app.kind == "cbr_udp"}
        for row in rows:
            carried = row["received_bytes" if row["flow"] in udp else "acked_bytes"]
            points = self._samples.setdefault(row["flow"], [])
            if not points or points[-1][0] < now_s:
                points.append((now_s, float(carried)))

    def results(self, before: dict[str, dict[str, int]], after: dict[str, dict[str, int]]) -> list[VcResult]:
        """What each VC got; `before` and `after` are `refusals` at both ends of the measured window."""
        scenario = self._world.config.scenario
        ports = list(gfr_ports(scenario, self._world.config.topology).values())
        return vc_results(scenario, ports, self._of_vcs(), grown(before, after))

    def series(self) -> list[SeriesPoint]:
        """Goodput of each VC over time."""
        return vc_series(self._of_vcs())

    def _of_vcs(self) -> dict[str, list[tuple[float, float]]]:
        scenario = self._world.config.scenario
        return {vc.name: summed([self._samples[name] for name in connections_of(scenario, vc)]) for vc in scenario.vcs}
