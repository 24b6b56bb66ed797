# SPDX-License-Identifier: Apache-2.0
"""A `Scenario` as the simulator's configuration (crate netsim, config): topology, flows with their addresses and the `tcp` objects of their
senders and receivers, changes, samples.
"""

from __future__ import annotations

import ipaddress
import os
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fairlane_controller.errors import FairlaneError
from fairlane_hosts.simulator import (
    TEXTBOOK_VARIANTS,
    TIMESTAMP_BYTES,
    find_simulated,
    with_error_naming,
    without_receiver_programs,
)
from fairlane_switch.link_control import effects
from fairlane_switch.link_series import form_of, times_in
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import Direction, LinkChange
from fairlane_topology.qdisc import parse_qdisc
from fairlane_topology.topology import TRAFFIC_MANAGER, PortKey, managed_ports

from fairlane_lab.programs import Program, find_part, find_program
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import (
    UDP_KINDS,
    Flow,
    Place,
    Scenario,
    TcpOptions,
    changes_of,
    checked_topology,
    command_words,
    names_of,
    tcp_of,
    with_given,
)
from fairlane_lab.sim.kernel import KernelHosts, Machine

QUICK_ACKS = 255
"""So many segments of a new connection are acknowledged at once: Linux goes on with it for as long as the receive window opens.

With 255 a start-up on 2 Mbit/s peaks at 109 packets, as the kernel does (108 and 109); with TCP_MAX_QUICKACKS, 16, at 84.
"""
QUICK_ACKS_MAX = 16
"""TCP_MAX_QUICKACKS, which counts where the receive window is fixed."""


def _quick_acks(options: TcpOptions) -> int:
    """Segments of a new connection that are acknowledged at once: half of what a fixed window holds (tcp_incr_quickack())."""
    if not options.receive_window_bytes:
        return QUICK_ACKS
    return min(QUICK_ACKS_MAX, max(2, options.receive_window_bytes // (2 * options.mss_bytes)))


def tcp_object(flow: Flow, shared: TcpOptions) -> dict[str, Any]:
    """The `tcp` object of a flow's connections. Raises RunError for a variant or an option that there is not."""
    try:
        variant = find_simulated(flow.variant)
    except FairlaneError as error:
        raise RunError(f"flow {flow.name}: {error}") from error
    options = with_given(shared, flow)
    tcp: dict[str, Any] = {
        "mss_bytes": options.mss_bytes,
        "delayed_ack": not options.acks_at_once,
        "quick_acks": _quick_acks(options),
        "timestamps": options.timestamps,
        "window_scale": True,
        "receive_window_bytes": options.receive_window_bytes,
        "initial_window_packets": options.initial_window_packets,
        "cwnd_clamp_packets": flow.window_packets,
        "rto_min_ns": round(options.rto_min_s * 1e9),
        **variant,
    }
    if tcp["timestamps"] and not options.timestamps:
        tcp["mss_bytes"] -= TIMESTAMP_BYTES  # the kernel takes the option from the segment (RFC 6691)
    if "initial_window_packets" in flow.tcp:
        tcp["initial_window_packets"] = options.initial_window_packets
    if options.delayed_ack_s:
        tcp["delayed_ack_timeout_ns"] = round(options.delayed_ack_s * 1e9)
    if options.backoff != TcpOptions.backoff:
        tcp["backoff"] = options.backoff
    if options.tick_s:
        tcp["tick_ns"] = round(options.tick_s * 1e9)
        if "rto_min_ns" in variant:  # MRTO's: a tick
            tcp["rto_min_ns"] = tcp["tick_ns"]
    if options.ecn:
        tcp["ecn"] = True
    tcp = with_error_naming(tcp, options.error_naming)
    if not options.receiver_program:
        tcp = without_receiver_programs(tcp)
    if "rto_min_s" in flow.tcp:
        tcp["rto_min_ns"] = round(options.rto_min_s * 1e9)
    if options.sack is not None and (options.sack or tcp["recovery"] == "sack"):
        tcp["recovery"] = "sack" if options.sack else "newreno"
        tcp["rack"] = options.sack and flow.variant not in TEXTBOOK_VARIANTS
    return tcp


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
THREADS_VARIABLE = "FAIRLANE_SIM_THREADS"
"""Environment variable: threads of a run of many switches or flows; its results do not depend on them."""


class FiveTuple(NamedTuple):
    """Addresses, protocol (6: TCP, 17: UDP) and ports of a connection, as its sender's packets have them."""

    src: Address
    dst: Address
    protocol: int
    src_port: int
    dst_port: int

    def __str__(self) -> str:
        src, dst = (f"[{ip}]" if ip.version == 6 else ip for ip in (self.src, self.dst))
        return f"{'tcp' if self.protocol == TCP else 'udp'} {src}:{self.src_port} > {dst}:{self.dst_port}"


@dataclass(frozen=True)
class SimFlow:
    """One netsim flow: a `Flow`, or one of its `connections`."""

    name: str
    flow: Flow
    key: FiveTuple
    "Of its first connection; an application `web` opens others."

    @property
    def is_tcp(self) -> bool:
        """Whether it has connections."""
        return self.key.protocol == TCP

    @property
    def has_known_key(self) -> bool:
        """Whether all its packets have that key."""
        return self.flow.app.kind != "web" and self.flow.app.times == 1


@dataclass(frozen=True)
class SimConfig:
    """What a run is made of."""

    scenario: Scenario
    topology: fl_topology.Topology
    program: Program
    flows: tuple[SimFlow, ...]
    managed: tuple[PortKey, ...]
    "The bottlenecks: ports marked so, or else every port with a rate."
    sample_period_ns: int
    changes: tuple[tuple[float, LinkChange], ...] = ()
    "(s, change) of links, in order of time."
    machine: Machine | None = None
    "What the hosts run in; None: they are simulated."

    @property
    def programs(self) -> list[str]:
        """Those of the user's. Raises RunError where there is none."""
        flows = [each for each in self.flows if each.flow.app.kind == "command"]
        return [
            words[0]
            for each in flows
            for words in command_words(each.name, each.flow, self.scenario, self._places()).values()
            if words
        ]

    def document(self) -> dict[str, Any]:
        """The simulator's configuration as plain data. Raises RunError."""
        topology, scenario, program = self.topology, self.scenario, self.program
        addresses = {name: list(map(str, topology.addresses(name))) for name in topology.hosts}
        real = None if self.machine is None else KernelHosts(scenario, addresses)
        # P4Runtime loads the program; the simulator needs it only to find registers, and to load it takes milliseconds.
        network = network_of(topology, program=program.name if scenario.series else None)
        if real is not None:
            for host in network["hosts"]:
                host["linux"] = real.host(host["name"])
        return {
            "seed": scenario.seed,
            "threads": int(os.environ.get(THREADS_VARIABLE, "1")),
            "programs": {program.name: {"json": str(program.files.json)}},
            **network,
            "flows": [self._flow(flow, real) for flow in self.flows],
            "changes": [part for at_s, change in self.changes for part in _parts(at_s, change, topology)],
            "sample": {
                "period_ns": self.sample_period_ns,
                "ports": [{"switch": switch, "port": port} for switch, port in self.managed],
                "registers": find_part(scenario.program).sampled_registers(self) if scenario.series else [],
            },
            "captures": [{"link": link, "file": str(file)} for link, file in scenario.captures.items()],
            "machine": None if self.machine is None else self.machine.document(scenario, self.sample_period_ns),
        }

    def _places(self) -> dict[str, Place]:
        return {each.name: Place(str(each.key.src), str(each.key.dst), each.key.dst_port) for each in self.flows}

    def _flow(self, each: SimFlow, real: KernelHosts | None) -> dict[str, Any]:
        flow, scenario, is_tcp = each.flow, self.scenario, each.is_tcp
        spread_s = random.Random(f"{scenario.seed}/start/{each.name}").uniform(0.0, START_SPREAD_S)
        document: dict[str, Any] = {
            "name": each.name,
            "from": flow.sender,
            "to": flow.receiver,
            "start_ns": _ns(flow.start_s + spread_s),
            "stop_ns": None if flow.stop_s is None else _ns(flow.stop_s),
            "from_port": each.key.src_port,
            "to_port": each.key.dst_port,
            **({"ipv6": True} if each.key.src.version == 6 else {}),
            "app": {"kind": flow.app.kind, **_in_ns(flow.app.settings)},
        }
        if flow.app.kind == "command":
            if real is None:
                raise RunError(f"flow {each.name}: a command needs Linux hosts: --runtime kernel")
            document["app"] = {"kind": "command", **command_words(each.name, flow, scenario, self._places())}
        if real is not None:
            document["linux"] = real.flow(flow)
        elif is_tcp:
            document["tcp"] = tcp_object(flow, scenario.tcp)
        read_interval_s = flow.tcp.get("read_interval_s", scenario.tcp.read_interval_s)
        return document | ({"read_interval_ns": _ns(read_interval_s)} if read_interval_s and is_tcp else {})


def network_of(
    topology: fl_topology.Topology, *, program: str | None = None, cpu_port: int = fl_topology.CPU_PORT
) -> dict[str, Any]:
    """Switches, hosts and links of a topology as the simulator has them; the switches begin with a program of its configuration, or with none."""
    return {
        "switches": [
            {
                "name": name,
                "program": program,
                "cpu_port": cpu_port,
                "ports": [_port(number, spec) for number, spec in topology.ports[name].items()],
            }
            for name in topology.switches
        ],
        "hosts": [
            {
                "name": name,
                **dict(zip(("ip", "ipv6"), map(str, topology.addresses(name)), strict=False)),
                "mac": topology.mac(name),
                "gateway_mac": fl_topology.GATEWAY_MAC,
            }
            for name in topology.hosts
        ],
        "links": [
            {
                "name": link.name,
                "mtu": link.mtu,
                **{key: _end(end) for key, end in (("a", link.a), ("b", link.b))},
                **{key: _direction(way) for key, way in (("a_to_b", link.a_to_b), ("b_to_a", link.b_to_a))},
            }
            for link in topology.links
        ],
    }


def resolve(scenario: Scenario, sample_period_ns: int, machine: Machine | None = None) -> SimConfig:
    """Check a scenario and fix every address and port of it; with a `machine` its hosts are real. Raises RunError that says what and what is allowed."""
    topology = checked_topology(scenario)
    for name, host in topology.hosts.items():
        if ipaddress.ip_interface(host.ip).version != 4:
            raise RunError(f"host {name}: {host.ip} is not an IPv4 address, and the simulator has no other")
    for name, switch in topology.switches.items():
        if switch.runtime_json is not None:
            raise RunError(f"switch {name}: runtime_json is for Mininet only; the simulator sets switches up by itself")
    if machine is None and topology.kernel_only:
        raise RunError(topology.kernel_only)
    flows = [(flow, name) for flow in scenario.flows for name in names_of(flow)]
    if len(flows) > 2**16 - FROM_PORT:
        raise RunError(f"{len(flows)} connections; the simulator has source ports for {2**16 - FROM_PORT}")
    managed, changes = tuple(managed_ports(topology)), tuple(changes_of(scenario, topology))
    made = tuple(_sim_flow(topology, scenario, flow, name, index) for index, (flow, name) in enumerate(flows))
    program = find_program(scenario.program)
    return SimConfig(scenario, topology, program, made, managed, sample_period_ns, changes, machine)


def _address(topology: fl_topology.Topology, host: str, version: int) -> Address:
    found = next((ip for ip in topology.addresses(host) if ip.version == version), None)
    if found is None:
        raise RunError(f"host {host} has no IPv6 address: give it `ipv6` in the topology")
    return found


def _sim_flow(topology: fl_topology.Topology, scenario: Scenario, flow: Flow, name: str, index: int) -> SimFlow:
    version = 6 if tcp_of(scenario, flow).ipv6 else 4
    source, target = (_address(topology, host, version) for host in (flow.sender, flow.receiver))
    # A program listens by itself: at a port that is no other flow's.
    to_port = TO_PORT + 1 + index if flow.app.kind == "command" else TO_PORT
    protocol = UDP if flow.app.kind in UDP_KINDS else TCP
    return SimFlow(name, replace(flow, connections=1), FiveTuple(source, target, protocol, FROM_PORT + index, to_port))


def _in_ns(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the simulator's names: times in ns."""
    return {name: form_of(value) for name, value in times_in("ns", values).items()}


def _port(number: int, spec: fl_topology.PortSpec) -> dict[str, Any]:
    """A switch port, with what its traffic manager has other than by default."""
    manager = spec.model_dump(include={*TRAFFIC_MANAGER}, exclude_defaults=True)
    if spec.qdisc:
        kind, options = parse_qdisc(spec.qdisc)
        manager["qdisc"] = {"kind": kind, "options": list(options)}
    return {"port": number, "rate_bps": form_of(spec.rate_bps or 0), "queue_packets": spec.queue_packets, **manager}


def _end(end: fl_topology.LinkEnd) -> dict[str, Any]:
    return {"node": end.node} if end.port == 0 else {"node": end.node, "port": end.port}


def _direction(way: Direction) -> dict[str, Any]:
    return _in_ns({**way.model_dump(include={*ALWAYS}), **way.model_dump(exclude_defaults=True)})


def _parts(at_s: float, change: LinkChange, topology: fl_topology.Topology) -> Iterable[dict[str, Any]]:
    """The simulator's changes: of the link itself, and of the rate of what sends into it."""
    link = next(link for link in topology.links if link.name == change.link)
    todo, spike = effects(change.change, link), {"spike_ns": _ns(change.spike_s or 0.0)}
    of_link: list[tuple[str, dict[str, Any]]] = [(way, {"set": _in_ns(values)}) for way, values in todo.wire]
    blocks = {} if change.spike_blocks is None else {"spike_blocks": change.spike_blocks}
    of_link += [(way, spike | blocks) for way in todo.wire_spikes]
    if change.outage_s is not None:
        of_link.append((change.direction, {"outage_ns": _ns(change.outage_s)}))
    # a switch port's queue belongs to the switch
    of_ports = [(end, {"rate_bps": form_of(change.change.rate_bps)}) for end in todo.ports]
    of_ports += [(end, spike) for end in todo.port_spikes]
    yield from ({"at_ns": _ns(at_s), "link": link.name, "direction": way, **part} for way, part in of_link)
    yield from ({"at_ns": _ns(at_s), "switch": end.node, "port": end.port, **part} for end, part in of_ports)


def rate_steps(config: SimConfig, switch: str, port: int) -> list[tuple[float, float]]:
    """(t_s, bit/s) from which on a switch port has a rate; the first at 0. Of a function of time its mean."""
    steps = [(0.0, float(config.topology.ports[switch][port].rate_bps or 0))]
    parts = ((part, change) for at_s, change in config.changes for part in _parts(at_s, change, config.topology))
    for part, change in parts:
        if (part.get("switch"), part.get("port")) == (switch, port) and "rate_bps" in part:
            steps.append((part["at_ns"] / 1e9, float(change.change.rate_bps or 0)))
    return steps


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
