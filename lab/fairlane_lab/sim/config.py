# SPDX-License-Identifier: Apache-2.0
"""A `Scenario` as the simulator's configuration (crate netsim, config): topology, flows with their addresses, changes, samples."""

from __future__ import annotations

import ipaddress
import random
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fairlane_topology import changes as fl_changes
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import Direction, LinkChange
from fairlane_topology.topology import managed_ports

from fairlane_lab.compiled import Program, find_program
from fairlane_lab.link_changes import changes_of
from fairlane_lab.programs import find_part
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import App, Flow, Scenario
from fairlane_lab.sim.kernel import KernelHosts, Machine
from fairlane_lab.sim.senders import tcp_object

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
TO_PORT = 5001
FROM_PORT = 10_000
"""Of flow 0; the next flows count up."""
START_SPREAD_S = 0.002
"""Connections that start together do so within this time, as processes on real hosts do; by the run's seed. Without it
every run of a deterministic network would be the same one, and flows alike would move in step (Floyd & Jacobson 1991)."""
TCP, UDP = 6, 17
ALWAYS = ("delay_us", "jitter_us", "rate_bps", "loss", "ber", "queue_packets")
"""Settings of a link that its configuration always names."""
TRAFFIC_MANAGER = ("link_layer", "scheduler", "queues", "queue_cells", "port_cells")
"""Further keys of a topology's switch port that the simulator's ports have under the same names."""


class FiveTuple(NamedTuple):
    """Addresses, protocol (6: TCP, 17: UDP) and ports of a connection, as its sender's packets have them."""

    src: Address
    dst: Address
    protocol: int
    src_port: int
    dst_port: int

    def __str__(self) -> str:
        return f"{'tcp' if self.protocol == TCP else 'udp'} {self.src}:{self.src_port} > {self.dst}:{self.dst_port}"


@dataclass(frozen=True)
class SimFlow:
    """One netsim flow: a `Flow`, or one of its `connections`."""

    name: str
    flow: Flow
    key: FiveTuple
    "Of its first connection; an application `web` opens others."

    @property
    def has_known_key(self) -> bool:
        """Whether all its packets have that key."""
        return self.flow.app.kind != "web" and self.flow.app.times == 1

    @property
    def is_greedy_tcp(self) -> bool:
        """Whether it sends over TCP as much as it may."""
        return self.key.protocol == TCP and self.flow.app.kind == "greedy"


@dataclass(frozen=True)
class SimConfig:
    """What a run is made of."""

    scenario: Scenario
    topology: fl_topology.Topology
    program: Program
    flows: tuple[SimFlow, ...]
    managed: tuple[tuple[str, int], ...]
    "(switch, port) of the bottlenecks: those marked so, or else every port with a rate."
    sample_period_ns: int
    changes: tuple[tuple[float, LinkChange], ...] = ()
    "(s, change) of links, in order of time."
    machine: Machine | None = None
    "What the hosts run in; None: they are simulated."

    def document(self) -> dict[str, Any]:
        """The simulator's configuration as plain data."""
        topology, scenario = self.topology, self.scenario
        addresses = {name: str(host_address(topology, name)) for name in topology.hosts}
        real = None if self.machine is None else KernelHosts(scenario, addresses)
        return {
            "seed": scenario.seed,
            "programs": {self.program.name: {"json": str(self.program.files.json)}},
            "switches": [self._switch(name) for name in topology.switches],
            "hosts": [
                {
                    "name": name,
                    "ip": addresses[name],
                    "mac": topology.mac(name),
                    "gateway_mac": fl_topology.GATEWAY_MAC,
                    **({} if real is None else {"linux": real.host(name)}),
                }
                for name in topology.hosts
            ],
            "links": [_link(link) for link in topology.links],
            "flows": [self._flow(flow, real) for flow in self.flows],
            "changes": [part for at_s, change in self.changes for part in _parts(at_s, change, topology)],
            "sample": self._sample(),
            "machine": None if self.machine is None else self.machine.document(scenario, self.sample_period_ns),
        }

    def _switch(self, name: str) -> dict[str, Any]:
        ports = [
            {
                "port": number,
                "rate_bps": spec.rate_bps or 0,
                "queue_packets": spec.queue_packets,
                **_traffic_manager(spec),
            }
            for number, spec in self.topology.ports[name].items()
        ]
        # P4Runtime loads the program; the simulator needs it only to find registers, and to load it takes milliseconds.
        program = self.program.name if self.scenario.series else None
        return {"name": name, "program": program, "cpu_port": fl_topology.CPU_PORT, "ports": ports}

    def _flow(self, each: SimFlow, real: KernelHosts | None) -> dict[str, Any]:
        flow = each.flow
        spread_s = random.Random(f"{self.scenario.seed}/start/{each.name}").uniform(0.0, START_SPREAD_S)
        document: dict[str, Any] = {
            "name": each.name,
            "from": flow.sender,
            "to": flow.receiver,
            "start_ns": _ns(flow.start_s + spread_s),
            "stop_ns": None if flow.stop_s is None else _ns(flow.stop_s),
            "from_port": each.key.src_port,
            "to_port": each.key.dst_port,
            "app": self._command(each) if flow.app.kind == "command" else _app(flow.app),
        }
        if real is not None:
            document["linux"] = real.flow(flow)
        elif each.key.protocol == TCP:
            document["tcp"] = tcp_object(flow, self.scenario.tcp)
        read_interval_s = flow.tcp.get("read_interval_s", self.scenario.tcp.read_interval_s)
        if read_interval_s and each.key.protocol == TCP:
            document["read_interval_ns"] = _ns(read_interval_s)
        return document

    def _command(self, each: SimFlow) -> dict[str, Any]:
        """A program of the user's. Raises RunError where there is none, or no Linux to run it."""
        flow, key = each.flow, each.key
        if self.machine is None:
            raise RunError(f"flow {each.name}: a command needs Linux hosts: --runtime kernel")
        seconds = (self.scenario.duration_s if flow.stop_s is None else flow.stop_s) - flow.start_s
        words = {"sender": key.src, "receiver": key.dst, "port": key.dst_port, "seconds": f"{seconds:g}"}

        def fill(command: tuple[str, ...]) -> list[str]:
            if not command:
                return []
            program = shutil.which(command[0])
            if program is None:
                raise RunError(f"flow {each.name}: there is no program {command[0]!r}")
            return [program, *(_filled(word, words) for word in command[1:])]

        return {"kind": "command", "sender": fill(flow.app.command), "receiver": fill(flow.app.receiver_command)}

    def _sample(self) -> dict[str, Any]:
        ports = [{"switch": switch, "port": port} for switch, port in self.managed]
        registers: list[dict[str, Any]] = []
        if self.scenario.series:
            registers = find_part(self.scenario.program).sampled_registers(self)
        return {"period_ns": self.sample_period_ns, "ports": ports, "registers": registers}


def resolve(scenario: Scenario, sample_period_ns: int, machine: Machine | None = None) -> SimConfig:
    """Check a scenario and fix every address and port of it; with a `machine` its hosts are real. Raises RunError that says what and what is allowed."""
    if not 0 <= scenario.warmup_s < scenario.duration_s:
        raise RunError(f"warmup_s {scenario.warmup_s:g} must be 0 or more and below duration_s {scenario.duration_s:g}")
    try:
        topology = fl_topology.check(dict(scenario.topology))
    except fl_topology.TopologyError as problem:
        raise RunError(str(problem)) from None
    for name, host in topology.hosts.items():
        if ipaddress.ip_interface(host.ip).version != 4:
            raise RunError(f"host {name}: {host.ip} is not an IPv4 address, and the simulator has no other")
    for name, switch in topology.switches.items():
        if switch.runtime_json is not None:
            raise RunError(f"switch {name}: runtime_json is for Mininet only; the simulator sets switches up by itself")
    flows = tuple(_flows(scenario, topology))
    if len(flows) > 2**16 - FROM_PORT:
        raise RunError(f"{len(flows)} connections; the simulator has source ports for {2**16 - FROM_PORT}")
    managed = tuple(managed_ports(topology))
    changes = tuple(changes_of(scenario, topology))
    return SimConfig(
        scenario, topology, find_program(scenario.program), flows, managed, sample_period_ns, changes, machine
    )


def host_address(topology: fl_topology.Topology, host: str) -> Address:
    """The host's address without its prefix length."""
    return ipaddress.ip_interface(topology.hosts[host].ip).ip


def _flows(scenario: Scenario, topology: fl_topology.Topology) -> Iterable[SimFlow]:
    index = 0
    names: set[str] = set()
    for flow in scenario.flows:
        for role, host in (("sender", flow.sender), ("receiver", flow.receiver)):
            if host not in topology.hosts:
                there = ", ".join(topology.hosts)
                raise RunError(f"flow {flow.name}: there is no {role} {host!r}; there are {there}")
        if flow.connections < 1:
            raise RunError(f"flow {flow.name}: connections must be 1 or more, not {flow.connections}")
        for number in range(1, flow.connections + 1):
            name = flow.name if flow.connections == 1 else f"{flow.name}-{number}"
            if name in names:
                raise RunError(f"two flows are called {name!r}")
            names.add(name)
            protocol = UDP if flow.app.kind == "cbr_udp" else TCP
            source, target = host_address(topology, flow.sender), host_address(topology, flow.receiver)
            # A program listens by itself: at a port that is no other flow's.
            to_port = TO_PORT + 1 + index if flow.app.kind == "command" else TO_PORT
            key = FiveTuple(source, target, protocol, FROM_PORT + index, to_port)
            yield SimFlow(name, replace(flow, connections=1), key)
            index += 1


def _filled(word: str, words: Mapping[str, Any]) -> str:
    for name, value in words.items():
        word = word.replace(f"{{{name}}}", str(value))
    return word


def _app(app: App) -> dict[str, Any]:
    """The simulator's `app` object: the fields that the kind uses, times in ns."""
    found: dict[str, Any] = {"kind": app.kind}
    for name, value in app.settings.items():
        is_time = name.endswith("_s") and not name.endswith("_per_s")
        found |= {f"{name[:-2]}_ns": _ns(value)} if is_time else {name: value}
    return found


def _traffic_manager(spec: fl_topology.PortSpec) -> dict[str, Any]:
    """What a port's traffic manager has other than by default."""
    plain = fl_topology.PortSpec()
    return {key: getattr(spec, key) for key in TRAFFIC_MANAGER if getattr(spec, key) != getattr(plain, key)}


def _link(link: fl_topology.Link) -> dict[str, Any]:
    def end(endpoint: fl_topology.Endpoint) -> dict[str, Any]:
        return {"node": endpoint.node} if endpoint.port == 0 else {"node": endpoint.node, "port": endpoint.port}

    def direction(settings: Direction) -> dict[str, Any]:
        plain = Direction().model_dump()
        values = settings.model_dump()
        return _settings({name: value for name, value in values.items() if name in ALWAYS or value != plain[name]})

    return {
        "name": link.name,
        "a": end(link.a),
        "b": end(link.b),
        "a_to_b": direction(link.a_to_b),
        "b_to_a": direction(link.b_to_a),
    }


def _settings(values: dict[str, Any]) -> dict[str, Any]:
    """A direction's values by the simulator's names: times in ns."""
    return {
        name.replace("_us", "_ns"): value * 1000 if name.endswith("_us") else value for name, value in values.items()
    }


def _parts(at_s: float, change: LinkChange, topology: fl_topology.Topology) -> Iterable[dict[str, Any]]:
    """The simulator's changes: of the link itself, and of the rate of what sends into it."""
    link = next(link for link in topology.links if link.name == change.link)
    at = {"at_ns": _ns(at_s)}
    todo = fl_changes.effects(change, link)
    for way, values in todo.wire:
        yield {**at, "link": link.name, "direction": way, "set": _settings(values)}
    blocks = {} if change.spike_blocks is None else {"spike_blocks": change.spike_blocks}
    for way in todo.wire_spikes:
        yield {**at, "link": link.name, "direction": way, "spike_ns": _ns(change.spike_s or 0.0), **blocks}
    if change.outage_s is not None:
        yield {**at, "link": link.name, "direction": change.direction, "outage_ns": _ns(change.outage_s)}
    for switch, port, rate_bps in todo.ports:  # the queue belongs to the switch
        yield {**at, "switch": switch, "port": port, "rate_bps": rate_bps}
    for switch, port in todo.port_spikes:
        yield {**at, "switch": switch, "port": port, "spike_ns": _ns(change.spike_s or 0.0)}


def rate_steps(config: SimConfig, switch: str, port: int) -> list[tuple[float, float]]:
    """(t_s, bit/s) from which on a switch port has a rate; the first at 0."""
    steps = [(0.0, float(config.topology.ports[switch][port].rate_bps or 0))]
    for part in (part for at_s, change in config.changes for part in _parts(at_s, change, config.topology)):
        if (part.get("switch"), part.get("port")) == (switch, port) and "rate_bps" in part:
            steps.append((part["at_ns"] / 1e9, float(part["rate_bps"])))
    return steps


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
