# SPDX-License-Identifier: Apache-2.0
"""`qthresh` in virtual time: set up and controlled by the controller's own code on the simulated switches."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairlane import apply_plan, set_up_program
from fairlane.changes import EventLog
from fairlane_lab.programs.part import LabPart, SimPart
from fairlane_lab.run_result import RunError
from fairlane_lab.sim.config import SimFlow
from fairlane_lab.sim.world import SimWorld

from ..flows import Flow, FlowKey
from ..names import Mode, Scheme
from ..settings import PolicyState
from ..store import LoopStore
from ..topology import QthreshOptions, QthreshTopology
from ..wanted import QthreshPlan, SetupPlan
from . import classes_of, configuration, first_threshold


class QthreshInSim(SimPart):
    """Entries of known flows where no loop gives them; else one `SwitchAgent` for each switch with managed ports."""

    def __init__(self, part: LabPart, world: SimWorld) -> None:
        super().__init__(part, world)
        self._control = world.config.scenario.control

    async def set_up(self) -> None:
        """Routes, limits of the managed ports, and the scenario's configuration. Raises RunError for a threshold that a port cannot have."""
        world, control, program = self.world, self._control, self.part.program
        ports = {(one.name, port.port): port for one in world.run_state.switches for port in one.ports}
        states = {place: ports[place] for place in world.config.managed}
        config = replace(program.config_of(configuration(control, states)), states=states)
        for place, port in states.items():
            self.thresholds[place] = first_threshold(control, port.queue_packets)
            if (self.thresholds[place] or 0) > port.queue_packets:
                bounds = f"it must be between 1 and {port.queue_packets} packets"
                raise RunError(f"threshold {self.thresholds[place]} is out of range: {bounds}")
        for state in world.run_state.switches:
            async with world.client(world.endpoint(state.name), write=True) as client:
                await set_up_program(client, program, SetupPlan(world.run_state, Scheme.DROP_TAIL), state)
                await apply_plan(client, program, QthreshPlan(config, world.run_state, LoopStore(None)))
                if state.name in world.managed_switches() and not control.needs_loop:
                    await client.write([+entry for entry in self._flow_entries()])

    def _flow_entries(self) -> list[Any]:
        """Each known flow has the slot of its place in the list."""
        return [
            key_of(each).entry(slot, Flow(weight=None if each.flow.weight == 1.0 else each.flow.weight))
            for slot, each in enumerate(self.world.config.flows)
            if each.has_known_key
        ]

    def start(self, log: EventLog) -> Sequence[Coroutine[Any, Any, None]]:
        """The control loop, where the scenario needs one."""
        control = self._control
        if not control.needs_loop:
            return ()
        self.world.loop.stop_on_messages = True
        mode = Mode.AUTO if isinstance(control.threshold, str) else Mode.MANUAL
        settings = PolicyState(mode=mode, self_tuning=control.threshold == "auto")
        store = LoopStore(None)
        store.put({(*port, number): settings for port in self.world.config.managed for number in classes_of(control)})
        options = QthreshOptions(flow_weight=self._weights(), keeps_counts=False)
        return self.run_agents(QthreshTopology(probes=control.probes, options=options, store=store), log)

    def _weights(self) -> Callable[[FlowKey], float | None] | None:
        """The weight that a new flow's entry gets: the scenario's, by its key or (`web`: many keys) by its sending host.

        Returns:
            None when every flow has the weight 1.

        Raises:
            RunError: Web flows of one host have different weights.
        """
        weights: dict[FlowKey | str, float] = {}
        for each in self.world.config.flows:
            key, weight = key_of(each) if each.has_known_key else str(each.key.src), each.flow.weight
            if weights.setdefault(key, weight) != weight:
                who = f"flow {each.name}: web flows of one host ({each.flow.sender})"
                raise RunError(f"{who} must have the same weight")
        if all(weight == 1.0 for weight in weights.values()):
            return None

        def weight_of(key: FlowKey) -> float | None:
            weight = weights.get(key, weights.get(key.hosts[0], 1.0))
            return None if weight == 1.0 else weight

        return weight_of

    def flow_slots(self, events: Sequence[Mapping[str, Any]]) -> Mapping[str, Sequence[tuple[str, int]]]:
        """The slots of each flow, the last one first."""
        flows = self.world.config.flows
        if not self._control.needs_loop:
            switches = self.world.managed_switches()
            return {each.name: [(name, slot) for name in switches] for slot, each in enumerate(flows)}
        names = {str(key_of(each)): each.name for each in flows}
        found: dict[str, list[tuple[str, int]]] = {}
        for event in reversed(events):
            if event["event"] == "flow" and event["flow"] in names:
                found.setdefault(names[event["flow"]], []).append((event["switch"], event["slot"]))
        return found


def key_of(flow: SimFlow) -> FlowKey:
    """The key of the flow's entry."""
    src, dst, *rest = flow.key
    return FlowKey(src.version, int(src), int(dst), *rest)
