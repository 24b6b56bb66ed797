# SPDX-License-Identifier: Apache-2.0
"""`qthresh` in virtual time: set up and controlled by the controller's own code on the simulated switches."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from fairlane import set_up_program
from fairlane.changes import EventLog
from fairlane.switch import put_entries
from fairlane_lab.programs.part import LabPart, SimPart
from fairlane_lab.run_result import RunError
from fairlane_lab.sim.config import SimConfig, SimFlow
from fairlane_lab.sim.measure import PortKey
from fairlane_lab.sim.world import SimWorld

from ..flows import Flow, FlowKey
from ..options import QthreshOptions
from ..policies import START_QTHRESH_PACKETS, Policy, Scheme, fitted
from ..store import LoopStore, Mode, PolicyState
from ..topology import QthreshTopology
from ..wanted import SetupPlan, class_entries, limit_of
from . import classes_of, settings_of


class QthreshInSim(SimPart):
    """Entries of known flows where no loop gives them; else one `SwitchAgent` for each switch with managed ports."""

    def __init__(self, part: LabPart, world: SimWorld) -> None:
        super().__init__(part, world)
        self._control = world.config.scenario.control

    async def set_up(self) -> None:
        """Routes, limits of the managed ports, scheme and, where it is fixed, the threshold."""
        world = self.world
        for state in world.run_state.switches:
            async with world.client(world.endpoint(state.name), write=True) as client:
                await set_up_program(client, self.part.program, SetupPlan(world.run_state, Scheme.DROP_TAIL), state)
                ports = world.run_state.managed_ports(state)
                if settings_of(self._control).ecn:
                    await put_entries(client, [limit_of(state, port, ecn=True).entry for port in ports])
                scheme = Scheme(self._control.scheme)
                if scheme is not Scheme.DROP_TAIL:
                    packets = {port.port: self.first_threshold((state.name, port.port)) for port in ports}
                    self.thresholds |= {(state.name, port): first for port, first in packets.items()}
                    policies = [
                        fitted(Policy(port.port, traffic_class, scheme, packets[port.port]), port)
                        for port in ports
                        for traffic_class in classes_of(self._control)
                    ]
                    await put_entries(client, [policy.entry for policy in policies])
                await put_entries(client, class_entries(settings_of(self._control).classes, state.name))
                if ports and not self._control.needs_loop:
                    await client.write([+entry for entry in self._flow_entries()])

    def first_threshold(self, port: PortKey) -> int:
        """Packets that the threshold of a managed port has at time 0. Raises RunError when it cannot have them."""
        threshold = self._control.threshold
        capacity = self.world.config.topology.ports[port[0]][port[1]].queue_packets
        if isinstance(threshold, str):
            return min(START_QTHRESH_PACKETS, capacity)
        if not 1 <= threshold <= capacity:
            raise RunError(f"threshold {threshold} is out of range: it must be between 1 and {capacity} packets")
        return threshold

    def _flow_entries(self) -> list[Any]:
        """Each known flow has the slot of its place in the list."""
        return [
            key_of(each).entry(slot, Flow(weight=None if each.flow.weight == 1.0 else each.flow.weight))
            for slot, each in enumerate(self.world.config.flows)
            if each.has_known_key
        ]

    def start(self, log: EventLog) -> Sequence[Coroutine[Any, Any, None]]:
        if not self._control.needs_loop:
            return ()
        world, control = self.world, self._control
        world.loop.stop_on_messages = True
        weights = _flow_weights(world.config)
        options = QthreshOptions(flow_weight=weights, probes=control.probes, keeps_counts=False)
        store = LoopStore(None)
        settings = PolicyState(
            mode=Mode.AUTO if isinstance(control.threshold, str) else Mode.MANUAL,
            self_tuning=control.threshold == "auto",
        )
        classes = classes_of(control)
        store.put({(*port, traffic_class): settings for port in world.config.managed for traffic_class in classes})
        topology = QthreshTopology(options=options, store=store)
        return self.run_agents(topology, log)

    def flow_slots(self, events: Sequence[Mapping[str, Any]]) -> Mapping[str, Sequence[tuple[str, int]]]:
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


def _flow_weights(config: SimConfig) -> Callable[[FlowKey], float | None] | None:
    """The weight that a new flow's entry gets: the scenario's, by its key or (`web`: many keys) by its sending host.

    None when every flow has the weight 1.
    """
    if all(flow.weight == 1.0 for flow in config.scenario.flows):
        return None
    by_key = {key_of(each): each.flow.weight for each in config.flows if each.has_known_key}
    by_sender: dict[str, float] = {}
    for each in config.flows:
        if not each.has_known_key and by_sender.setdefault(str(each.key.src), each.flow.weight) != each.flow.weight:
            raise RunError(f"flow {each.name}: web flows of one host ({each.flow.sender}) must have the same weight")

    def weight_of(key: FlowKey) -> float | None:
        weight = by_key.get(key, by_sender.get(key.hosts[0], 1.0))
        return None if weight == 1.0 else weight

    return weight_of
