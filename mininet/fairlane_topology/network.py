# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""A running topology: Mininet's network, our switches and wire, and the state file that remembers what was made.

`Network(topology, …)` makes everything in `start()` and removes exactly that in `stop()`.
Several run side by side: instance 0 has plain names (`s1-eth3`), instance k has `nk` before each (`n2s1-eth3`), see docs/architecture.md.
"""

from __future__ import annotations

import ipaddress
import json
import os
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairlane_controller.program.registry import load_program
from fairlane_controller.state.events import write_event
from fairlane_controller.state.run_state import DEFAULT_PROGRAM, remember_port
from fairlane_controller.switch.certificates import make_certificates
from fairlane_controller.switch.client import PipelineFiles
from fairlane_switch.process import find_binary
from fairlane_switch.wire import WireClient, WireError, WireUnreachableError
from fairlane_switch.wire import WireLink as WireSettings

from fairlane_topology import state
from fairlane_topology.emulation import FairlaneMininet
from fairlane_topology.interfaces import FairlaneLink, HostInterface
from fairlane_topology.links import NO_TRACE
from fairlane_topology.nodes import SWITCH_CLASSES, FairlaneHost, P4Switch, SimpleSwitchGrpc, SwitchOptions
from fairlane_topology.processes import Service, Supervisor, stop_all
from fairlane_topology.signals import defer_signals
from fairlane_topology.state import OwnedProcess
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
        """Of the instance, as the run state has it."""
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
        self.folder = state.folder(self.options.name)
        self.prefix = "" if self.options.instance == 0 else f"n{self.options.instance}"
        self.mininet: Any = FairlaneMininet()
        self.hosts: dict[str, FairlaneHost] = {}
        self.switches: dict[str, P4Switch] = {}
        self.wire_links: list[dict[str, Any]] = []
        self.services: dict[str, Service] = {}
        """The processes that run as long as the topology does, by what they are."""
        self._supervisor: Supervisor | None = None
        self._interfaces: list[str] = []
        self._owned: dict[str, OwnedProcess] = {}
        """What is written down, by what it is."""
        self._routes = {name: [asdict(route) for route in topology.routes(name)] for name in topology.switches}
        self._stopped = True
        """Nothing of ours is there: before `start`, and after `stop`."""
        self._writing = threading.Lock()
        """Of who writes the state file, or removes it: changes of links are made in a thread of their own."""

    def start(self) -> None:
        """Make and start everything.

        What ends with this process needs no more than that: also when it is killed, another one removes all that was made (`stop.py --after`).

        Raises:
            RuntimeError: after cleaning up, when something does not start.
        """
        state.wait_while_ending(self.options.name)
        if state.running(self.options.name):
            raise RuntimeError(f"topology {self.options.name} is running already: 'make stop' ends it")
        state.clean(self.options.name)
        self._stopped = False
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remember(OwnedProcess.from_pid(os.getpid(), state.LAUNCHER))
            watcher = [sys.executable, "-m", "fairlane_topology.stop", "--after", str(os.getpid()), self.options.name]
            log = self.folder / "log" / "clean-up.log"
            self.run(Service(state.WATCHER, lambda: watcher, log, lambda: True, 1.0))
            with defer_signals():
                self._make_nodes()
                self._make_links()
            self.mininet.build()
            for name, host in self.hosts.items():
                host.prepare(self.topology.hosts[name], self.topology.mac(name), self._routed_peers(name))
            for switch in self.switches.values():
                self._launch(switch)
            if self.wire_links:
                self._start_wire()
            for switch in self.switches.values():
                switch.service.wait_ready()
            self._write()
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
            services = [service for what, service in self.services.items() if what != state.WATCHER]
            try:
                stop_all(services)
                if self._supervisor is not None:
                    self._supervisor.wait()
                    stop_all(services)  # what it has just started
                self.mininet.stop()
            finally:
                state.remove_interfaces(self._interfaces)
                with self._writing:
                    state.clean(self.options.name)
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

        def report(service: Service, how: str) -> None:
            write_event(self.folder, "process_died", process=service.what, why=f"{service.what} {how}")

        def restart(service: Service) -> None:
            self.run(service)
            service.wait_ready()

        self._supervisor = Supervisor(
            lambda: [service for what, service in list(self.services.items()) if what not in switches],
            restart,
            report,
            self._save_link_settings,
        )

    def dead(self) -> list[str]:
        """What has died of all that packets and control need, and how; what was started again is not dead."""
        found = [(what, service.death()) for what, service in self.services.items() if what != state.WATCHER]
        return [f"{what} {how}" for what, how in found if how is not None]

    def adopt(self, pid: int, what: str) -> None:
        """Write down a process that belongs to this run and ends by itself (a traffic generator), so that `make stop` ends it."""
        self._remember(OwnedProcess.identify_child(pid, what, may_end=True))

    def remember_rates(self, rates: Iterable[tuple[str, int, int]]) -> None:
        """Write down the rates, as (switch, port, bit/s), that ports have from now on: the control plane reads them there."""
        with self._writing:
            for switch, port, rate_bps in rates if not self._stopped else ():
                remember_port(self.folder, switch, port, {"rate_bps": rate_bps})

    def start_switch(self, name: str) -> None:
        """Start the process of a switch that was stopped; ready, without a program, when this returns. Raises RuntimeError."""
        self._launch(self.switches[name])
        self.switches[name].service.wait_ready()

    def stop_switch(self, name: str) -> None:
        """Stop the process of a switch; its ports stay."""
        self.switches[name].stop(deleteIntfs=False)
        self._owned.pop(self.switches[name].service.what, None)
        self._write()

    def grpc(self, switch: str) -> str:
        """P4Runtime address of a switch."""
        return self.switches[switch].options.grpc

    def wire_control(self) -> Path:
        """The wire's control socket."""
        return self.folder / "wire.sock"

    def _make_nodes(self) -> None:
        tls = None
        if self.options.tls:  # a CA and certificates of this run, which go when it ends
            tls = self.folder / "tls"
            tls.mkdir(mode=0o700, exist_ok=True)
            make_certificates(tls, force=True)
        for name in self.topology.hosts:
            mac = self.topology.mac(name)
            host = self.mininet.addHost(self.prefix + name, cls=FairlaneHost, ip=None, mac=mac)
            self.hosts[name] = host
            self._remember(OwnedProcess.from_pid(host.pid, f"host {name}"))
        for name in self.topology.switches:
            number = int(name[1:])
            port = BASE_GRPC_PORT + PORTS_PER_INSTANCE * self.options.instance + number
            options = SwitchOptions(
                name,
                self.options.first_device_id + number - 1,
                f"127.0.0.1:{port}",
                self.topology.ports[name],
                self.folder,
                tls,
                self.options.seed,
            )
            kind = SWITCH_CLASSES[self.options.target]
            self.switches[name] = self.mininet.addSwitch(self.prefix + name, cls=kind, options=options)
            self._remember(OwnedProcess.from_pid(self.switches[name].pid, f"shell of {name}"))

    def _make_links(self) -> None:
        """Raises RuntimeError when an interface of that name is there already: it is not ours, and stays."""
        links = self.topology.links
        wire_ends = {
            link.name: (f"{self.prefix}w{index}a", f"{self.prefix}w{index}b")
            for index, link in enumerate(links)
            if link.is_emulated
        }
        outer = [f"{self.prefix}{end.node}-eth{end.port}" for link in links for end in (link.a, link.b)]
        names = [*outer, *(name for ends in wire_ends.values() for name in ends)]
        for name in names:
            if Path(f"/sys/class/net/{name}").exists():
                raise RuntimeError(
                    f"there is an interface {name} already, which is not ours: end what made it, or 'ip link delete {name}'"
                )
        self._interfaces = names
        self._write()
        nodes = {**self.hosts, **self.switches}
        for link in links:
            ends = wire_ends.get(link.name)
            if ends is not None:
                self.wire_links.append(WireSettings(link.name, *ends, link.a_to_b, link.b_to_a).encode())
            params = {f"cls{n}": HostInterface for n, end in ((1, link.a), (2, link.b)) if end.node in self.hosts}
            params |= {"cls": FairlaneLink, "mtu": link.mtu, "wire_ends": ends}
            self.mininet.addLink(nodes[link.a.node], nodes[link.b.node], port1=link.a.port, port2=link.b.port, **params)

    def _routed_peers(self, name: str) -> list[str] | None:
        """The addresses of all other hosts; None for a host whose switch runs a program that is not ours."""
        switch = next(other for _, other in self.topology.neighbours(name))
        if switch in self.pipelines or not self.options.routed:
            return None
        others = [other for key, other in self.topology.hosts.items() if key != name]
        addresses = [address for other in others for address in (other.ip, other.ipv6) if address]
        return [str(ipaddress.ip_interface(address).ip) for address in addresses]

    def _launch(self, switch: P4Switch) -> None:
        with defer_signals():
            switch.start([])
            self.services[switch.service.what] = switch.service
            assert switch.service.owned is not None
            self._remember(switch.service.owned)

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

    def _save_link_settings(self) -> None:
        """Have the wire's settings as they are now in its file, for the case that it dies: `fairlane link` changes them."""
        if WIRE not in self.services:
            return
        with suppress(OSError, WireError, WireUnreachableError):  # it is dead, or the topology is ending
            with WireClient(self.wire_control(), timeout_s=1.0) as wire:
                links = [link.encode() for link in wire.links()]
            document = json.loads(self._links_file.read_text())
            if document["links"] != links:
                partial = self._links_file.with_suffix(".partial")
                partial.write_text(json.dumps({**document, "links": links}, indent=1) + "\n")
                partial.replace(self._links_file)

    def _remember(self, process: OwnedProcess) -> None:
        self._owned[process.what] = process
        self._write()

    def _write(self) -> None:
        hosts = [
            {
                "name": name,
                "pid": host.pid,
                "netns": state.namespace_of(host.pid),
                "ip": str(ipaddress.ip_interface(self.topology.hosts[name].ip).ip),
            }
            for name, host in self.hosts.items()
        ]
        links = [
            {"name": link.name, "a": asdict(link.a), "b": asdict(link.b)}
            | {"emulated": link.is_emulated, "preset": link.preset}
            for link in self.topology.links
        ]
        document: dict[str, Any] = {
            "name": self.options.name,
            "topology": self.topology.path,
            "target": self.options.target,
            "program": self.options.program,
            "switches": [self._switch_state(name) for name in self.switches],
            "wire": {"control": str(self.wire_control()), "links": [link["name"] for link in self.wire_links]},
            "links": links,
            "hosts": hosts,
            "interfaces": self._interfaces,
        }
        with self._writing:
            if not self._stopped:
                document["pids"] = [process.as_json() for process in list(self._owned.values())]
                state.write(self.options.name, document)

    def _switch_state(self, name: str) -> dict[str, Any]:
        switch = self.switches[name]
        endpoint = switch.endpoint
        files = self.pipelines.get(name) or load_program(self.options.program).pipeline()
        return {
            "name": name,
            "device_id": endpoint.device_id,
            "grpc": endpoint.grpc,
            "tls": endpoint.tls and {key: str(file) for key, file in asdict(endpoint.tls).items()},
            "cpu_port": CPU_PORT,
            "control": str(switch.options.control),
            **({"thrift": switch.thrift_port} if isinstance(switch, SimpleSwitchGrpc) else {}),
            "json": str(files.json),
            "p4info": str(files.p4info),
            "ports": [self._port_state(name, port) for port in self.topology.ports[name]],
            "routes": self._routes[name],
        }

    def _port_state(self, switch: str, port: int) -> dict[str, Any]:
        end = Endpoint(switch, port)
        settings = self.topology.ports[switch][port].model_dump(exclude={"settings"})
        return {
            "port": port,
            "interface": f"{self.prefix}{switch}-eth{port}",
            "mtu": next(link.mtu for link in self.topology.links if end in (link.a, link.b)),
            **{key: 0 if value is None else value for key, value in settings.items()},
            **self.topology.settings(switch, port),
        }
