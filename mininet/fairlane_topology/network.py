# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""A running topology: Mininet's network, our switches and wire, and the state file that remembers what was made.

`Network(topology, …)` makes everything in `start()` and removes exactly that in `stop()`; as a context manager it does both.
Several run side by side: instance 0 has plain names (`s1-eth3`), instance k has `nk` before each (`n2s1-eth3`), see docs/architecture.md.
"""

from __future__ import annotations

import ipaddress
import json
import os
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from fairlane_controller.program.registry import load_program
from fairlane_controller.state.events import write_event
from fairlane_controller.state.run_state import DEFAULT_PROGRAM
from fairlane_controller.switch.certificates import make_certificates
from fairlane_controller.switch.client import PipelineFiles
from fairlane_switch.process import find_binary
from fairlane_switch.wire import LinkOptions, WireClient, WireError, WireUnreachableError
from fairlane_switch.wire import WireLink as WireSettings

from fairlane_topology import state as fl_state
from fairlane_topology.interfaces import HostInterface, VethLink, WireLink
from fairlane_topology.links import NO_TRACE
from fairlane_topology.mininet_net import FairlaneMininet
from fairlane_topology.nodes import SWITCH_CLASSES, FairlaneHost, P4Switch, SimpleSwitchGrpc, SwitchOptions
from fairlane_topology.processes import Service, Supervisor, stop_all
from fairlane_topology.signals import defer_signals
from fairlane_topology.topology import CPU_PORT, Endpoint, Topology

BASE_GRPC_PORT = 50050
PORTS_PER_INSTANCE = 20
WIRE_READY_TIMEOUT_S = 10.0
WIRE = "fairlane-wire"


@dataclass(frozen=True)
class NetworkOptions:
    """How to run a topology."""

    instance: int = 0
    """Number of this instance; 0 to 99."""
    target: str = "embedded"
    """`embedded` or `bmv2`."""
    program: str = DEFAULT_PROGRAM
    """Name, or path of its folder."""
    seed: int = 1
    """Of all chance in the run: the wire's links, the programs' `random()`."""
    tls: bool = False
    """Mutual TLS between controller and switches, with certificates of this run."""
    first_device_id: int = 1
    """Device id of s1; s2 has the next one."""
    routed: bool = True
    """The switches run our programs, which route: hosts of one subnet find each other by the gateway's MAC address and not by ARP."""

    @property
    def name(self) -> str:
        return str(self.instance)


class Network:
    """One running topology."""

    def __init__(
        self,
        topology: Topology,
        options: NetworkOptions | None = None,
        pipelines: Mapping[str, PipelineFiles] | None = None,
    ) -> None:
        self.topology = topology
        self.pipelines = pipelines or {}
        """The compiled program of a switch that runs another one than `options.program`."""
        self.options = options or NetworkOptions()
        self.folder = fl_state.folder(self.options.name)
        self.prefix = "" if self.options.instance == 0 else f"n{self.options.instance}"
        self.mininet: Any = FairlaneMininet()
        self.hosts: dict[str, FairlaneHost] = {}
        self.switches: dict[str, P4Switch] = {}
        self.wire_links: list[dict[str, Any]] = []
        self.services: dict[str, Service] = {}
        """The processes that run as long as the topology does, by what they are."""
        self._supervisor: Supervisor | None = None
        self._interfaces: list[str] = []
        self._owned: dict[str, fl_state.OwnedProcess] = {}
        """What is written down, by what it is."""
        self._routes = {name: [asdict(route) for route in topology.routes(name)] for name in topology.switches}
        self._stopped = True
        """Nothing of ours is there: before `start`, and after `stop`."""
        self._writing = threading.Lock()
        """Held by who writes the state file, or removes it: changes of links are made in a thread of their own."""

    def __enter__(self) -> Network:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Make and start everything. Raises RuntimeError, after cleaning up, when something does not start.

        What ends with this process needs no more than that: also when it is killed, another one removes all that was made (`stop.py --after`).
        """
        fl_state.wait_while_ending(self.options.name)
        if fl_state.running(self.options.name):
            raise RuntimeError(f"topology {self.options.name} is running already: 'make stop' ends it")
        fl_state.clean(self.options.name)
        self._stopped = False
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remember(fl_state.OwnedProcess.from_pid(os.getpid(), fl_state.LAUNCHER))
            self.run(self._watcher())
            self._build()
            self._start_processes()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop and remove everything that `start` made: nothing when it has refused, or was not called. Safe to call twice; what was stopped does not start again."""
        if self._stopped:
            return
        self._stopped = True
        with defer_signals():
            if self._supervisor is not None:
                self._supervisor.close()
            # The watcher last: until then this process may be killed.
            services = [service for what, service in self.services.items() if what != fl_state.WATCHER]
            try:
                stop_all(services)
                if self._supervisor is not None:
                    self._supervisor.wait()
                    stop_all(services)  # what it has just started
                self.mininet.stop()
            finally:
                fl_state.remove_interfaces(self._interfaces)
                with self._writing:
                    fl_state.clean(self.options.name)
                    stop_all(self.services.values())
                self._owned = {}

    def run(self, service: Service) -> None:
        """Start a process of this topology: it is written down, and ends with it. Raises RuntimeError when it runs."""
        with defer_signals():
            self.services[service.what] = service
            self._remember(service.launch())

    def supervise(self) -> None:
        """From now on start wire and control loop again when they die. A switch stays dead, as one whose power has gone: `fairlane status` shows it."""
        switches = {switch.service.what for switch in self.switches.values()}
        self._supervisor = Supervisor(
            lambda: [service for what, service in list(self.services.items()) if what not in switches],
            self._restart,
            lambda service, how: write_event(
                self.folder, "process_died", process=service.what, why=f"{service.what} {how}"
            ),
            self._keep_link_settings,
        )

    def dead(self) -> list[str]:
        """What has died of all that packets and control need, and how; what was started again is not dead."""
        found = [(what, service.death()) for what, service in self.services.items() if what != fl_state.WATCHER]
        return [f"{what} {how}" for what, how in found if how is not None]

    def adopt(self, pid: int, what: str) -> None:
        """Write down a process that belongs to this run and ends by itself (a traffic generator), so that `make stop` ends it."""
        self._remember(fl_state.OwnedProcess.identify_child(pid, what, may_end=True))

    def remember_rates(self, rates: Iterable[tuple[str, int, int]]) -> None:
        """Write down the rates, as (switch, port, bit/s), that ports have from now on: the control plane reads them there."""

        with self._writing:
            for switch, port, rate_bps in rates if not self._stopped else ():
                fl_state.remember_rate(self.options.name, switch, port, rate_bps)

    def start_switch(self, name: str) -> None:
        """Start the process of a switch that was stopped; ready, without a program, when this returns. Raises RuntimeError."""
        self._launch(self.switches[name])
        self.switches[name].service.wait_ready()

    def stop_switch(self, name: str) -> None:
        """Stop the process of a switch; its ports stay."""
        self.switches[name].stop(deleteIntfs=False)
        with self._writing:
            self._owned.pop(self.switches[name].service.what, None)
        self._write()

    def grpc(self, switch: str) -> str:
        """P4Runtime address of a switch."""
        return self.switches[switch].options.grpc

    def wire_control(self) -> Path:
        """The wire's control socket."""
        return self.folder / "wire.sock"

    def _build(self) -> None:
        tls = self._certificates() if self.options.tls else None
        with defer_signals():
            self._make_nodes(tls)
            self._make_links()
        self.mininet.build()
        for name, host in self.hosts.items():
            host.prepare(self.topology.hosts[name], self.topology.mac(name), self._routed_peers(name))

    def _make_nodes(self, tls: Path | None) -> None:
        topology = self.topology
        for name in topology.hosts:
            self.hosts[name] = self.mininet.addHost(
                self.prefix + name, cls=FairlaneHost, ip=None, mac=topology.mac(name)
            )
            self._remember(fl_state.OwnedProcess.from_pid(self.hosts[name].pid, f"host {name}"))
        for name in topology.switches:
            number = int(name[1:])
            options = SwitchOptions(
                device_id=self.options.first_device_id + number - 1,
                grpc=f"127.0.0.1:{BASE_GRPC_PORT + PORTS_PER_INSTANCE * self.options.instance + number}",
                ports=topology.ports[name],
                log_dir=self.folder / "log",
                control=self.folder / f"{name}.sock",
                tls=tls,
                seed=self.options.seed,
            )
            self.switches[name] = self.mininet.addSwitch(
                self.prefix + name, cls=SWITCH_CLASSES[self.options.target], options=options
            )
            self._remember(fl_state.OwnedProcess.from_pid(self.switches[name].pid, f"shell of {name}"))

    def _make_links(self) -> None:
        """Raises RuntimeError when an interface of that name is there already: it is not ours, and stays."""
        links = self.topology.links
        wire_ends = {
            link.name: (f"{self.prefix}w{index}a", f"{self.prefix}w{index}b")
            for index, link in enumerate(links)
            if link.is_emulated
        }
        names = [name for link in links for name in (self._interface(link.a), self._interface(link.b))]
        names += [name for ends in wire_ends.values() for name in ends]
        taken = [name for name in names if Path(f"/sys/class/net/{name}").exists()]
        if taken:
            raise RuntimeError(
                f"there is an interface {taken[0]} already, which is not ours: end what made it, or 'ip link delete {taken[0]}'"
            )
        self._interfaces = names
        self._write()
        for link in links:
            params: dict[str, Any] = {"cls": VethLink, "mtu": link.mtu}
            if ends := wire_ends.get(link.name):
                params |= {"cls": WireLink, "wire_ends": ends}
                forward, back = (LinkOptions(**way.model_dump()) for way in (link.a_to_b, link.b_to_a))
                self.wire_links.append(WireSettings(link.name, *ends, forward, back).encode())
            params |= {f"cls{n}": HostInterface for n, end in ((1, link.a), (2, link.b)) if end.node in self.hosts}
            self.mininet.addLink(self._node(link.a), self._node(link.b), port1=link.a.port, port2=link.b.port, **params)

    def _routed_peers(self, name: str) -> list[str] | None:
        """The addresses of all other hosts; None for a host whose switch runs a program that is not ours."""
        switch = next(other for _, other in self.topology.neighbours(name))
        if switch in self.pipelines or not self.options.routed:
            return None
        others = [other for key, other in self.topology.hosts.items() if key != name]
        addresses = [address for other in others for address in (other.ip, other.ipv6) if address]
        return [str(ipaddress.ip_interface(address).ip) for address in addresses]

    def _start_processes(self) -> None:
        for switch in self.switches.values():
            self._launch(switch)
        if self.wire_links:
            self._start_wire()
        for switch in self.switches.values():
            switch.service.wait_ready()
        self._write()

    def _launch(self, switch: P4Switch) -> None:
        with defer_signals():
            switch.start([])
            self.services[switch.service.what] = switch.service
            assert switch.service.owned is not None
            self._remember(switch.service.owned)

    def _restart(self, service: Service) -> None:
        self.run(service)
        service.wait_ready()

    def _watcher(self) -> Service:
        command = [sys.executable, "-m", "fairlane_topology.stop", "--after", str(os.getpid())]
        log = self.folder / "log" / "clean-up.log"
        return Service(fl_state.WATCHER, lambda: [*command, self.options.name], log, lambda: True, 1.0)

    def _start_wire(self) -> None:
        document: dict[str, Any] = {"links": self.wire_links}
        traces = {change.trace for change in self.topology.changes if change.trace not in (None, NO_TRACE)}
        if traces:  # read by the wire before it carries anything
            document["traces"] = sorted(traces)
        self._links_file.write_text(json.dumps(document, indent=1) + "\n")
        ready, log = self.folder / "wire.ready", self.folder / "log" / "wire.log"

        def command() -> list[str]:
            ready.unlink(missing_ok=True)
            words = [str(find_binary("fairlane-wire")), "--config", str(self._links_file)]
            words += ["--control", str(self.wire_control()), "--seed", str(self.options.seed)]
            return [*words, "--ready-file", str(ready)]

        wire = Service(WIRE, command, log, ready.exists, WIRE_READY_TIMEOUT_S)
        self.run(wire)
        wire.wait_ready()

    @property
    def _links_file(self) -> Path:
        return self.folder / "links.json"

    def _keep_link_settings(self) -> None:
        """Have the wire's settings as they are now in its file, for the case that it dies: `fairlane link` changes them."""
        if WIRE not in self.services:
            return
        try:
            with WireClient(self.wire_control(), timeout_s=1.0) as wire:
                links = [link.encode() for link in wire.links()]
            document = json.loads(self._links_file.read_text())
            if document["links"] != links:
                partial = self._links_file.with_suffix(".partial")
                partial.write_text(json.dumps({**document, "links": links}, indent=1) + "\n")
                partial.replace(self._links_file)
        except (OSError, WireError, WireUnreachableError):
            pass  # it is dead, or the topology is ending

    def _node(self, end: Endpoint) -> Any:
        return self.hosts[end.node] if end.node in self.hosts else self.switches[end.node]

    def _interface(self, end: Endpoint) -> str:
        return f"{self.prefix}{end.node}-eth{end.port}"

    def _remember(self, process: fl_state.OwnedProcess) -> None:
        with self._writing:
            self._owned[process.what] = process
        self._write()

    def _write(self) -> None:
        state: dict[str, Any] = {
            "name": self.options.name,
            "topology": self.topology.path,
            "target": self.options.target,
            "program": self.options.program,
            "pids": [],
            "switches": [self._switch_state(name) for name in self.switches],
            "wire": {"control": str(self.wire_control()), "links": [link["name"] for link in self.wire_links]},
            "links": [
                {
                    "name": link.name,
                    "a": asdict(link.a),
                    "b": asdict(link.b),
                    "emulated": link.is_emulated,
                    "preset": link.preset,
                }
                for link in self.topology.links
            ],
            "hosts": [
                {
                    "name": name,
                    "pid": host.pid,
                    "netns": fl_state.namespace_of(host.pid),
                    "ip": str(ipaddress.ip_interface(self.topology.hosts[name].ip).ip),
                }
                for name, host in self.hosts.items()
            ],
            "interfaces": self._interfaces,
        }

        with self._writing:
            if not self._stopped:
                state["pids"] = [process.as_json() for process in self._owned.values()]
                fl_state.write(self.options.name, state)

    def _certificates(self) -> Path:
        """A CA and certificates of this run, in the run-state folder, which goes when the run ends."""
        folder = self.folder / "tls"
        folder.mkdir(mode=0o700, exist_ok=True)
        make_certificates(folder, force=True)
        return folder

    def _mtu(self, switch: str, port: int) -> int:
        end = Endpoint(switch, port)
        return next(link.mtu for link in self.topology.links if end in (link.a, link.b))

    def _switch_state(self, name: str) -> dict[str, Any]:
        switch = self.switches[name]
        files = self.pipelines.get(name) or load_program(self.options.program).pipeline()
        return {
            "name": name,
            "device_id": switch.options.device_id,
            "grpc": switch.options.grpc,
            "tls": switch.options.tls
            and {
                "ca": str(switch.options.tls / "ca.pem"),
                "cert": str(switch.options.tls / "controller.pem"),
                "key": str(switch.options.tls / "controller.key"),
            },
            "cpu_port": CPU_PORT,
            "control": str(switch.options.control),
            **({"thrift": switch.thrift_port} if isinstance(switch, SimpleSwitchGrpc) else {}),
            "json": str(files.json),
            "p4info": str(files.p4info),
            "ports": [
                {
                    "port": port,
                    "interface": f"{self.prefix}{name}-eth{port}",
                    "rate_bps": spec.rate_bps or 0,
                    "queue_packets": spec.queue_packets,
                    "queue_cells": spec.queue_cells or 0,
                    "port_cells": spec.port_cells or 0,
                    "queues": spec.queues,
                    "scheduler": spec.scheduler,
                    "link_layer": spec.link_layer,
                    "mtu": self._mtu(name, port),
                    "bottleneck": spec.bottleneck,
                    **self.topology.settings(name, port),
                }
                for port, spec in switch.options.ports.items()
            ],
            "routes": self._routes[name],
        }


def with_link(topology: Topology, name: str, **changes: Any) -> Topology:
    """A copy of a topology in which link `name` has other values (`delay_us`, `bandwidth_bps`, …). Raises KeyError for an unknown link."""
    if name not in {link.name for link in topology.links}:
        raise KeyError(f"there is no link {name}; there are {', '.join(link.name for link in topology.links)}")
    links = tuple(_changed(link, changes) if link.name == name else link for link in topology.links)
    ports = {switch: dict(specs) for switch, specs in topology.ports.items()}
    if "bandwidth_bps" in changes:
        link = next(link for link in links if link.name == name)
        for end in (link.a, link.b):
            if end.port:
                ports[end.node][end.port] = ports[end.node][end.port].model_copy(
                    update={"rate_bps": changes["bandwidth_bps"]}
                )
    return replace(topology, links=links, ports=ports)


def _changed(link: Any, changes: dict[str, Any]) -> Any:
    wire = {key: value for key, value in changes.items() if key != "bandwidth_bps"}
    return replace(
        link,
        a_to_b=link.a_to_b.model_copy(update=wire),
        b_to_a=link.b_to_a.model_copy(update=wire),
        bandwidth_bps=changes.get("bandwidth_bps", link.bandwidth_bps),
    )
