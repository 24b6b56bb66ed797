# SPDX-License-Identifier: Apache-2.0
"""One simulation with its event loop and its switches, set up through P4Runtime by the controller's own code; and what a run is read at:
counters at both ends of the measured window, and the controller's events.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.program.contract import Plan
from fairlane_controller.program.control import TopologyControl
from fairlane_controller.program.setup import apply_plan, set_up_program
from fairlane_controller.state.events import EventLog
from fairlane_controller.state.run_state import PortState, RouteState, RunState, SwitchState
from fairlane_controller.switch.client import Endpoint
from fairlane_topology import topology as fl_topology
from fairlane_topology.topology import PortKey, managed_ports

from fairlane_lab.programs import find_part
from fairlane_lab.programs.part import LOOK_PERIOD_S, program_drops
from fairlane_lab.recording import CARRIED_STEP_S
from fairlane_lab.run_result import RunError
from fairlane_lab.sim.client import SimClient, SimSwitch
from fairlane_lab.sim.config import SimConfig, SimFlow
from fairlane_lab.sim.loop import VirtualTimeLoop

GRPC = "virtual-time"
"""Stands where a run state has an address: nothing connects to it."""


class SimWorld:
    """The network of a `SimConfig` at time 0, its switches without a program until `set_up`."""

    def __init__(self, config: SimConfig) -> None:
        """Raises RunError when the simulator is not built or refuses the configuration."""
        document = json.dumps(config.document())
        try:
            from fairlane_switch import native  # pyright: ignore[reportMissingModuleSource]

            self.simulation: Any = native.Simulation(document)
            "A `native.Simulation`; what it reports is JSON."
        except ImportError as problem:
            raise RunError(f"the simulator is not built ({problem}): run `make setup`") from None
        except ValueError as problem:
            raise RunError(f"the simulator refuses the configuration: {problem}") from None
        self.config = config
        self.run_state = run_state_of(config.topology, config.managed, config.scenario.program)
        self.switches: dict[str, SimSwitch] = {}
        for name in config.topology.switches:
            transport = self.simulation.p4rt(name)
            transport.set_pipeline(config.program.set_pipeline)
            self.switches[name] = SimSwitch(name, transport, config.program.schema, native.P4RuntimeError)
        self.loop = VirtualTimeLoop(self.simulation, self.deliver, stop_on_messages=False)
        self.client = partial(SimClient, find=self.switches.__getitem__)
        "Makes a `SwitchClient`; the factory that `SwitchAgent` takes."
        self.part = find_part(config.scenario.program)
        self.plans: Sequence[Plan] = ()
        "What the program had the switches set up with."
        self._control: TopologyControl | None = None
        self.thresholds: dict[PortKey, int | None] = {}
        self.agents: list[SwitchAgent] = []
        "The control loops, of `start`."
        self.log = MemoryLog()
        "Events of the control loops."
        self._tasks: list[asyncio.Task[None]] = []
        self.measured: dict[PortKey, list[tuple[float, Mapping[str, float | None]]]] = {}
        "For `Recording`."
        self.datagrams: dict[str, list[tuple[float, float]]] = {}
        "Bytes over time of each UDP flow, where the program has VCs."

    def close(self) -> None:
        """Cancel what still runs, and end the loop and the machine of real hosts."""
        self.loop.run_until_complete(cancel(asyncio.all_tasks(self.loop)))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()
        self.simulation.end_machine()

    def deliver(self) -> None:
        """Hand every switch's messages to whoever waits for them."""
        for switch in self.switches.values():
            switch.deliver()

    def endpoint(self, switch: str) -> Endpoint:
        """The switch, as the controller names it."""
        return Endpoint(switch, GRPC)

    def managed_switches(self) -> list[str]:
        """The switches that have a managed port."""
        return list(dict.fromkeys(switch for switch, _ in self.config.managed))

    async def set_up(self) -> None:
        """Set up the switches at time 0. Raises FairlaneError with what a switch, or the controller's own checks, refuse."""
        config, part = self.config, self.part
        self.plans = part.plans(self.run_state, config.scenario, config.topology)
        capacities = {key: spec.queue_packets for key, spec in managed_ports(config.topology).items()}
        self.thresholds = part.thresholds(config.scenario.control, capacities)
        self._control = part.control_loop(self.run_state, config.scenario, self.plans)
        for state in self.run_state.switches:
            async with self.client(self.endpoint(state.name), write=True) as client:
                await set_up_program(client, part.program, self.plans[0], state)
                for plan in self.plans[1:]:
                    await apply_plan(client, part.program, plan)
                if self._control is None and state.name in self.managed_switches():
                    await client.write([+entry for entry in part.flow_entries(config.flows)])

    def start(self) -> None:
        """Start what runs beside the simulation until `end`: a control loop's agent for each switch with managed ports."""
        self._tasks = [asyncio.create_task(job) for job in self._jobs()]

    async def end(self) -> None:
        """End it, whatever it is doing."""
        await cancel(self._tasks)

    def check(self) -> None:
        """Raises RunError when a loop has failed or is not there: in virtual time nothing may come between."""
        for task in self._tasks:
            if task.done():
                raise RunError(f"a control loop ended: {None if task.cancelled() else task.exception()!r}")
        for event in self.log.events:
            if event["event"] in ("error", "disconnected", "flow_refused"):
                raise RunError(f"the control loop of {event['switch']} failed at {event['t_s']:g} s: {event}")
        for agent in self.agents:
            if agent.last_error is not None:
                raise RunError(f"the control loop of {agent.endpoint.name} failed: {agent.last_error.message}")

    def _jobs(self) -> Iterator[Coroutine[Any, Any, None]]:
        if self.part.has_vcs and any(not each.is_tcp for each in self.config.flows):
            yield self._count_datagrams()
        if (control := self._control) is None:
            return
        if options := self.part.loop_options(flow_weights(self.config.flows)):
            control.use_loop(self.part.program.LoopSettings.model_validate(options))
        self.loop.stop_on_messages = control.listens
        states = {state.name: state for state in self.run_state.switches} if control.run is not None else {}
        self.agents = [
            SwitchAgent(self.endpoint(name), control, self.log, state=states.get(name), client_factory=self.client)
            for name in self.managed_switches()
        ]
        yield from (agent.run() for agent in self.agents)
        if self.part.loop_values:
            yield self._poll()

    async def _poll(self) -> None:
        """Read what the control loops have measured, for ever."""
        while True:
            await asyncio.sleep(LOOK_PERIOD_S)
            for agent in self.agents:
                for row in agent.control.measurements():
                    polls = self.measured.setdefault((agent.endpoint.name, row["port"]), [])
                    polls.append((self.loop.time(), self.part.loop_row(row)))

    async def _count_datagrams(self) -> None:
        """Read what UDP flows have carried, for ever: the simulator samples TCP flows only."""
        names = {each.name for each in self.config.flows if not each.is_tcp}
        while True:
            for row in json.loads(self.simulation.flows()):
                if row["flow"] in names:
                    self.datagrams.setdefault(row["flow"], []).append((self.loop.time(), row["received_bytes"]))
            await asyncio.sleep(CARRIED_STEP_S)


def flow_weights(flows: Sequence[SimFlow]) -> list[dict[str, Any]]:
    """Rules for the weights of flows that do not weigh 1: by address and port, of `web` (many ports) by the address. Raises RunError."""
    of_hosts: dict[str, float] = {}
    for each in flows:
        host, weight = each.flow.sender, each.flow.weight
        if not each.has_known_key and of_hosts.setdefault(host, weight) != weight:
            raise RunError(f"flow {each.name}: web flows of one host ({host}) must have the same weight")
    others = {host for host, weight in of_hosts.items() if weight != 1.0}
    rules: list[dict[str, Any]] = []
    for each in sorted(flows, key=lambda one: not one.has_known_key):
        if each.flow.weight != 1.0 or each.flow.sender in others:
            port = {"src_port": each.key.src_port} if each.has_known_key else {}
            rules.append({"src": str(each.key.src), **port, "weight": each.flow.weight})
    return rules


async def cancel(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks, until all have ended, however they end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def run_state_of(topology: fl_topology.Topology, managed: Sequence[PortKey], program: str) -> RunState:
    """A topology as the controller knows a running one; `managed` are its bottlenecks."""
    switches: list[SwitchState] = []
    for name in topology.switches:
        states = (topology.port_state(name, port) for port in topology.ports[name])
        ports = tuple(
            PortState.model_validate({**state, "bottleneck": (name, state["port"]) in managed}) for state in states
        )
        routes = tuple(RouteState(prefix=one.prefix, port=one.port, mac=one.mac) for one in topology.routes(name))
        switches.append(SwitchState(name=name, grpc=GRPC, ports=ports, routes=routes))
    return RunState(name="sim", target="sim", program=program, switches=tuple(switches))


class MemoryLog(EventLog):
    """The controller's event log, kept in memory with `t_s` of the running loop instead of wall-clock times."""

    def __init__(self) -> None:
        super().__init__(None)
        self.events: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        """One event."""
        t_s = round(asyncio.get_running_loop().time(), 9)
        self.events.append({"t_s": t_s, "event": event, **fields})


@dataclass(frozen=True)
class Snapshot:
    """All counters at one instant."""

    t_s: float
    flows: dict[str, dict[str, Any]]
    ports: dict[PortKey, dict[str, Any]]
    "Of the managed ones `drops` are those refused by the program, and by the queue behind."
    of_program: dict[str, Any]
    "What the program reads of each switch beside that."


async def snapshot(world: SimWorld) -> Snapshot:
    """Read everything, once every control loop is known to work; takes no virtual time. Raises RunError."""
    world.check()
    flows = {row["flow"]: row for row in json.loads(world.simulation.flows())}
    ports = {(row["switch"], row["port"]): row for row in json.loads(world.simulation.ports())}
    of_program: dict[str, Any] = {}
    for switch in world.managed_switches():
        numbers = [port for name, port in world.config.managed if name == switch]
        async with world.client(world.endpoint(switch)) as client:
            for port, refused in (await program_drops(client, world.part, numbers)).items():
                ports[switch, port]["drops"] = refused + sum(ports[switch, port]["drops"].values())
            of_program[switch] = await world.part.read(client, world.config.managed, world.plans)
    return Snapshot(world.loop.time(), flows, ports, of_program)
