# SPDX-License-Identifier: Apache-2.0
"""One simulation with its event loop and its switches, set up through P4Runtime by the controller's own code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol, cast

from fairlane_controller.errors import FairlaneError
from fairlane_controller.state.run_state import PortState, RouteState, RunState, SwitchState
from fairlane_controller.switch.client import Endpoint
from fairlane_topology import topology as fl_topology
from fairlane_topology.topology import PortKey

from fairlane_lab.programs import find_part
from fairlane_lab.run_result import RunError
from fairlane_lab.sim.client import SimClient, SimSwitch, Transport
from fairlane_lab.sim.config import SimConfig
from fairlane_lab.sim.loop import VirtualTimeLoop

TRAFFIC_MANAGER: dict[str, Any] = {"port_cells": 0, "queue_cells": 0, "queues": 0, "scheduler": "", "link_layer": ""}
"""Keys of a port's traffic manager that a run state has too, and what stands there when the topology says nothing."""
GRPC = "virtual-time"
"""Stands where a run state has an address: nothing connects to it."""


class Simulation(Protocol):
    """`fairlane_switch.native.Simulation` as far as it is used here; what it says is JSON."""

    @property
    def now_ns(self) -> int: ...
    def run_until(self, t_ns: int, stop_on_messages: bool = False) -> int: ...
    def flows(self) -> str: ...
    def ports(self) -> str: ...
    def switches(self) -> str: ...
    def transfers(self) -> str: ...
    def unfinished_transfers(self) -> str: ...
    def series(self) -> dict[str, bytes]: ...
    def p4rt(self, switch: str) -> Any: ...
    def machine_failure(self) -> str | None: ...
    def end_machine(self) -> None: ...


class SimWorld:
    """The network of a `SimConfig` at time 0, its switches without a program until `set_up`."""

    def __init__(self, config: SimConfig) -> None:
        """Raises RunError when the simulator is not built or refuses the configuration."""
        native = _native()
        try:
            self.simulation: Simulation = native.Simulation(json.dumps(config.document()))
        except ValueError as problem:
            raise RunError(f"the simulator refuses the configuration: {problem}") from None
        self.config = config
        self.run_state = run_state_of(config.topology, config.managed, config.scenario.program)
        self.switches: dict[str, SimSwitch] = {}
        for name in config.topology.switches:
            transport = self.simulation.p4rt(name)
            transport.set_pipeline(config.program.set_pipeline)
            schema, error = config.program.schema, native.P4RuntimeError
            self.switches[name] = SimSwitch(name, cast("Transport", transport), schema, error)
        self.loop = VirtualTimeLoop(self.simulation, self.deliver, stop_on_messages=False)
        self.client = partial(SimClient, find=self.switches.__getitem__)
        "Makes a `SwitchClient`; the factory that `SwitchAgent` takes."
        self.part = find_part(config.scenario.program).in_sim(self)

    def close(self) -> None:
        """Cancel what still runs, and end the loop and the machine of real hosts."""
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        self.loop.run_until_complete(_ended(left))
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
        """What the program sets up. Raises RunError with what a switch, or the controller's own checks, refuse."""
        try:
            await self.part.set_up()
        except FairlaneError as problem:
            raise RunError(problem.message) from None


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def run_state_of(topology: fl_topology.Topology, managed: Sequence[PortKey], program: str) -> RunState:
    """A topology as the controller knows a running one; `managed` are its bottlenecks."""
    switches: list[SwitchState] = []
    mtus = {end: link.mtu for link in topology.links for end in (link.a, link.b)}
    for name in topology.switches:
        ports = tuple(
            PortState(
                port=number,
                rate_bps=spec.rate_bps or 0,
                queue_packets=spec.queue_packets,
                bottleneck=(name, number) in managed,
                mtu=mtus[fl_topology.Endpoint(name, number)],
                **topology.settings(name, number),
                **{key: getattr(spec, key, None) or fallback for key, fallback in TRAFFIC_MANAGER.items()},
            )
            for number, spec in topology.ports[name].items()
        )
        routes = tuple(RouteState(prefix=r.prefix, port=r.port, mac=r.mac) for r in topology.routes(name))
        switches.append(SwitchState(name=name, grpc=GRPC, ports=ports, routes=routes))
    return RunState(name="sim", target="sim", program=program, switches=tuple(switches))


def _native() -> Any:
    """The binding. Raises RunError when it is not built."""
    try:
        from fairlane_switch import native  # pyright: ignore[reportMissingModuleSource]
    except ImportError as problem:
        raise RunError(f"the simulator is not built ({problem}): run `make setup`") from None
    return native
