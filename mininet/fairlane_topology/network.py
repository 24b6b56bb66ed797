# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""A running topology: Mininet's network, our switches and links, and the state file that remembers what was made.

`Network(topology, …)` makes everything in `start()` and removes exactly that in `stop()`.
One process (`fairlane-switch network`) has the links and the embedded switches; BMv2 and `separate` have a process for each switch.
Several run side by side: nodes have the topology's names in each; interfaces of instance 0 too (`s1-eth3`), those of instance k have `nk` before it (`n2s1-eth3`).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from fairlane_controller.program.registry import load_program
from fairlane_controller.state.events import write_event
from fairlane_controller.state.processes import OwnedProcess, namespace_of
from fairlane_controller.switch.certificates import make_certificates
from fairlane_controller.switch.client import PipelineFiles
from fairlane_switch.interfaces import receive_on, run
from fairlane_switch.link_control import WAYS
from fairlane_switch.link_series import form_of
from fairlane_switch.process import Service, find_binary, stop_all
from fairlane_switch.wire import WireClient

from fairlane_topology import state
from fairlane_topology.emulation import FairlaneMininet
from fairlane_topology.interfaces import FairlaneLink, HostInterface, in_namespace
from fairlane_topology.links import Link
from fairlane_topology.nodes import SWITCH_CLASSES, FairlaneHost, P4Switch
from fairlane_topology.nodes import NetworkOptions as NetworkOptions
from fairlane_topology.processes import Supervisor
from fairlane_topology.signals import defer_signals
from fairlane_topology.topology import CPU_PORT, LinkEnd, Topology

NETWORK_START_TIMEOUT_S = 65.0
"""Longer than it waits for one of its switches."""
NETWORK = "fairlane-switch network"
"""The process that has the links, and the switches where they are in one process."""


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
        self.folder = self.options.folder
        self.wire_control = self.folder / "wire.sock"
        """Control socket of the process that has the links."""
        self.prefix = self.options.prefix
        self.mininet: Any = FairlaneMininet()
        self.hosts: dict[str, FairlaneHost] = {}
        self.switches: dict[str, P4Switch] = {}
        # Files of changes are read before anything is carried.
        changes = [
            {name: form_of(value) for name, value in change.change.settings.items()} for change in topology.changes
        ]
        self._process: dict[str, Any] = {"switches": [], "links": [], "changes": changes}
        """Configuration of the process that has the links."""
        self._process_file, self._ready = self.folder / "network.json", self.folder / "network.ready"
        self._down: set[str] = set()
        """Switches in one process that were stopped."""
        self.services: dict[str, Service] = {}
        """The processes that run as long as the topology does, by what they are."""
        self._supervisor: Supervisor | None = None
        self._interfaces: list[str] = []
        self._owned: dict[str, OwnedProcess] = {}
        """What is written down, by what it is."""
        self._routes = {name: [route.model_dump() for route in topology.routes(name)] for name in topology.switches}
        self._stopped = True
        """Nothing of ours is there: before `start`, and after `stop`."""
        self._writing = threading.Lock()
        """Of who writes the state file, or removes it: the supervisor is a thread of its own."""

    def start(self) -> None:
        """Make and start everything.

        What ends with this process needs no more than that: also when it is killed, another one removes all that was made (`stop.py --after`).

        Raises:
            RuntimeError: after cleaning up, when something does not start.
        """
        if self.topology.kernel_only:
            raise RuntimeError(self.topology.kernel_only)
        state.wait_while_ending(self.options.name)
        if state.alive(self.options.name):
            raise RuntimeError(f"topology {self.options.name} is running already: 'make stop' ends it")
        state.clean(self.options.name)
        self._stopped = False
        try:
            self._remember(OwnedProcess.from_pid(os.getpid(), state.LAUNCHER))
            watcher = [sys.executable, "-m", "fairlane_topology.stop", "--after", str(os.getpid()), self.options.name]
            log = self.folder / "log" / "clean-up.log"
            self.run(Service(state.WATCHER, lambda: watcher, log, lambda: True, 1.0))
            with defer_signals():
                self._make_nodes()
                self._make_links()
            self.mininet.build()
            for name, host in self.hosts.items():
                host.prepare(self.topology.hosts[name], self._routed_peers(name))
                if self.options.packet_cpu is not None:
                    others = os.sched_getaffinity(0) - {self.options.packet_cpu}
                    run(*in_namespace(host), *receive_on(others, "eth0"))
            self._start_processes()
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
            finally:
                with self._writing:
                    state.clean(self.options.name)
                    stop_all(self.services.values())
                self.mininet.stop()

    def run(self, service: Service) -> None:
        """Start a process of this topology: it is written down, and ends with it. Raises RuntimeError when it runs."""
        with defer_signals():
            self.services[service.what] = service
            self._remember(service.launch())

    def supervise(self, program: Callable[[Sequence[str]], object]) -> None:
        """From now on start links, control loop, and switches in one process again when they die. A switch with a process of its own stays dead, as one whose power has gone: `fairlane status` shows it.

        Args:
            program: gives switches that were started again what no control loop restores.
        """
        switches = [switch.service for switch in self.switches.values()]

        def report(service: Service, how: str) -> None:
            write_event(self.folder, "process_died", process=service.what, why=f"{service.what} {how}")

        def restart(service: Service) -> None:
            self.run(service)
            service.wait_ready()
            if service.what == NETWORK and self.options.in_one_process:
                for name in sorted(self._down):
                    self.set_switch(name, "stop")
                there = [name for name in self.switches if name not in self._down]
                for work in (*(self.switches[name].restore_ports for name in there), partial(program, there)):
                    try:
                        work()
                    except RuntimeError as error:
                        report(service, f"is started again, but: {error}")

        self._supervisor = Supervisor(
            lambda: [service for service in list(self.services.values()) if service not in switches],
            restart,
            report,
            self._save_link_settings,
        )

    def dead(self) -> list[str]:
        """What has died of all that packets and control need, and how; what was started again is not dead."""
        return [
            f"{what} {how}"
            for what, service in self.services.items()
            if what != state.WATCHER and (how := service.death())
        ]

    def adopt(self, pid: int, what: str) -> None:
        """Write down a process that belongs to this run and ends by itself (a traffic generator), so that `make stop` ends it."""
        self._remember(OwnedProcess.identify_child(pid, what, may_end=True))

    def set_switch(self, name: str, what: str) -> None:
        """`start` a switch that was stopped (ready, with its ports as they were and without a program, when this returns), or `stop` one, with all that waits in it: its interfaces stay, and all others forward. Raises RuntimeError."""
        service = self.switches[name].service
        if self.options.in_one_process:
            with WireClient(self.wire_control, NETWORK_START_TIMEOUT_S) as network:
                network.request({"op": f"{what}_switch", "switch": name})
            (self._down.add if what == "stop" else self._down.discard)(name)
        elif what == "start":
            self.run(service)
            service.wait_ready()
        else:
            service.stop()
            self._owned.pop(service.what, None)
            self._write()
        if what == "start":
            self.switches[name].restore_ports()

    def _make_nodes(self) -> None:
        if (tls := self.options.tls_folder) is not None:  # a CA and certificates of this run, which go when it ends
            shutil.rmtree(tls, ignore_errors=True)
            tls.mkdir(mode=0o700)
            make_certificates(tls)
        for name in self.topology.hosts:
            mac = self.topology.mac(name)
            host = self.hosts[name] = self.mininet.addHost(name, cls=FairlaneHost, ip=None, mac=mac)
            self._remember(OwnedProcess.from_pid(host.pid, f"host {name}"))
        kind = SWITCH_CLASSES[self.options.target]
        for name in self.topology.switches:
            given = {"run": self.options, "specs": self.topology.ports[name]}
            switch = self.switches[name] = self.mininet.addSwitch(name, cls=kind, **given)
            self._remember(OwnedProcess.from_pid(switch.pid, f"shell of {name}"))

    def _make_links(self) -> None:
        """Raises RuntimeError when an interface of that name is there already: it is not ours, and stays."""
        plans = [self._plan_link(index, link) for index, link in enumerate(self.topology.links)]
        names = [name for link in self.topology.links for name in map(self._interface, (link.a, link.b))]
        names += [name for _, wire_ends in plans for name in wire_ends]
        for name in names:
            if Path(f"/sys/class/net/{name}").exists():
                raise RuntimeError(
                    f"there is an interface {name} already, which is not ours: end what made it, or 'ip link delete {name}'"
                )
        self._interfaces = names
        self._process["links"] = [carried for carried, _ in plans if carried]
        self._write()
        nodes = {**self.hosts, **self.switches}
        for link, (_, wire_ends) in zip(self.topology.links, plans, strict=True):
            params: dict[str, Any] = {"cls": FairlaneLink, "mtu": link.mtu, "wire_ends": wire_ends}
            for n, end in enumerate((link.a, link.b), 1):
                params |= {f"port{n}": end.port, f"intfName{n}": self._interface(end)}
                params |= {} if end.port else {f"cls{n}": HostInterface}
            self.mininet.addLink(nodes[link.a.node], nodes[link.b.node], **params)

    def _plan_link(self, index: int, link: Link) -> tuple[dict[str, Any], tuple[str, ...]]:
        """A link as the process that has the links gets it, empty where it is a bare veth pair, and the process's own interfaces of it.

        At a switch of the process there are none: where a host is, and behind a link that is captured, frames come and go at the interface of the other end.
        """
        wire_ends: tuple[str, ...] = ()
        if self.options.in_one_process and not link.a.port == link.b.port == 0:
            ours = [end for end in (link.a, link.b) if end.port][: 1 if link.capture else 2]
            outside = {"interface": self._interface(ours[0])}
            places = [{"switch": end.node, "port": end.port} if end in ours else outside for end in (link.a, link.b)]
        elif link.is_emulated:
            wire_ends = (f"{self.prefix}w{index}a", f"{self.prefix}w{index}b")
            places = [{"interface": name} for name in wire_ends]
        else:
            return {}, ()
        ways = {way: getattr(link, way).model_dump() for way in WAYS}
        return {"name": link.name, **dict(zip("ab", places, strict=True)), **ways}, wire_ends

    def _interface(self, end: LinkEnd) -> str:
        return f"{self.prefix}{end.node}-eth{end.port}"

    def _routed_peers(self, name: str) -> list[str] | None:
        """The addresses of all other hosts; None for a host whose switch runs a program that is not ours."""
        switch = next(other for _, other in self.topology.neighbours(name))
        if switch in self.pipelines or not self.options.routed:
            return None
        return [str(one) for other in self.topology.hosts if other != name for one in self.topology.addresses(other)]

    def _start_processes(self) -> None:
        one = self.options.in_one_process
        services = [] if one else [switch.service for switch in self.switches.values()]
        if one or self._process["links"]:
            log = self.folder / "log" / "network.log"
            services.append(Service(NETWORK, self._network_command, log, self._ready.exists, NETWORK_START_TIMEOUT_S))
        for service in services:
            self.run(service)
        for service in services:
            service.wait_ready()

    def _network_command(self) -> list[str]:
        """The command line of the process that has the links, once its configuration is written."""
        ours = self.switches.items() if self.options.in_one_process else ()
        self._process["switches"] = [{"name": name, "arguments": switch.prepare()[1:]} for name, switch in ours]
        self._write_process()
        self._ready.unlink(missing_ok=True)
        options = {"--config": self._process_file, "--control": self.wire_control, "--ready-file": self._ready}
        options |= {"--seed": self.options.seed}
        if self.options.packet_cpu is not None:
            options |= {"--cpu": self.options.packet_cpu}
        return [str(find_binary("fairlane-switch")), "network", *(str(word) for one in options.items() for word in one)]

    def _write_process(self) -> None:
        self._process_file.write_text(json.dumps(self._process, indent=1) + "\n")

    def _save_link_settings(self) -> None:
        """Have the links' settings as they are now in the file, for the case that their process dies: `fairlane link` changes them."""
        if NETWORK not in self.services:
            return
        with suppress(OSError, RuntimeError):  # it is dead, or the topology is ending
            with WireClient(self.wire_control, timeout_s=1.0) as wire:
                shown = {link["name"]: link for link in wire.request({"op": "get"})["links"]}
            links = [{**link, **{way: shown[link["name"]][way] for way in WAYS}} for link in self._process["links"]]
            if links != self._process["links"]:
                self._process["links"] = links
                self._write_process()

    def _remember(self, process: OwnedProcess) -> None:
        self._owned[process.what] = process
        self._write()

    def _write(self) -> None:
        wired = [link["name"] for link in self._process["links"]]
        document: dict[str, Any] = {
            "name": self.options.name,
            "topology": self.topology.path,
            "target": self.options.target,
            "program": self.options.program,
            "switches": [self._switch_state(name) for name in self.switches],
            "wire": {"control": str(self.wire_control)},
            "links": [
                {"name": link.name, "a": asdict(link.a), "b": asdict(link.b)}
                | {"emulated": link.name in wired, "preset": link.preset}
                for link in self.topology.links
            ],
            "hosts": [
                {
                    "name": name,
                    "pid": host.pid,
                    "netns": namespace_of(host.pid),
                    "ip": self.topology.address(name),
                }
                for name, host in self.hosts.items()
            ],
            "interfaces": self._interfaces,
        }
        with self._writing:
            if not self._stopped:
                document["pids"] = [process.as_json() for process in list(self._owned.values())]
                state.write(self.options.name, document)

    def _switch_state(self, name: str) -> dict[str, Any]:
        switch, tls = self.switches[name], self.switches[name].endpoint.tls
        files = self.pipelines.get(name) or load_program(self.options.program).pipeline()
        return {
            "name": name,
            "device_id": switch.device_id,
            "grpc": switch.grpc,
            "tls": tls and {key: str(file) for key, file in asdict(tls).items()},
            "cpu_port": CPU_PORT,
            "control": str(switch.control),
            "thrift": switch.thrift_port,
            "frame_bytes": self.options.frame_bytes,
            "json": str(files.json),
            "p4info": str(files.p4info),
            "ports": [
                {"interface": self._interface(LinkEnd(name, port)), **self.topology.port_state(name, port)}
                for port in self.topology.ports[name]
            ],
            "routes": self._routes[name],
        }
