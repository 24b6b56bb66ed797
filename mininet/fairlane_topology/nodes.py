# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Mininet nodes: hosts with quiet, honest interfaces, and the two switch targets behind one shape.

A host talks to `eth0` and sends everything to the gateway's MAC: the switches route, and nobody needs ARP.
A switch node knows its interfaces and how to start and stop its process; what it forwards comes over P4Runtime.
"""

from __future__ import annotations

import ipaddress
import os
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from fairlane_controller.errors import FairlaneError, out_of_range
from fairlane_controller.state.run_state import DEFAULT_PROGRAM, changed_ports, read_run_state
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.switch.security import TlsFiles
from fairlane_switch import bmv2
from fairlane_switch.interfaces import disable_offloads, quiet
from fairlane_switch.port_control import set_port
from fairlane_switch.process import Service, accepts, find_binary
from fairlane_switch.switch import PortOptions, SwitchOptions
from mininet.log import output, warn
from mininet.node import Host, Switch

from fairlane_topology import ports, state
from fairlane_topology.interfaces import in_namespace
from fairlane_topology.topology import CPU_PORT, GATEWAY_MAC, TRAFFIC_MANAGER, HostSpec, PortSpec

READY_TIMEOUT_S = 20.0
NO_LIMIT = 2**64 - 1
"""What the embedded switch has where nothing limits what may wait at a port; in the run state that is 0."""
PROMPT = chr(127)
"""Of a node's shell: Mininet's sign that a command has ended."""
SETTLED = "settled"
SETTLE_TIMEOUT_S = 5.0
GATEWAY_V4 = "169.254.1.1"
GATEWAY_V6 = "fe80::ff:1"
QUIET = ("router_solicitations=0", "accept_dad=0")
"""Settings of IPv6 without which a host would send by itself."""


class FairlaneHost(Host):
    """A host whose one interface is `eth0`, as in p4lang/tutorials, with static routes and neighbours."""

    pid: int
    _is_interrupted = False

    def sendInt(self, intr: str = chr(3)) -> None:
        """Press Ctrl-C."""
        super().sendInt(intr)
        self._is_interrupted = True

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:
        """Give the shell a command. What came late (a prompt after Ctrl-C, a job in the background) is printed, and not taken for the answer."""
        if self._is_interrupted and not self.waiting:
            self._settle()
        while not self.waiting and select.select([self.stdout], [], [], 0)[0]:
            output(self.read(1024).replace(PROMPT, ""))
        super().sendCmd(*args, **kwargs)

    def _settle(self) -> None:
        """Give the shell an empty line: a Ctrl-C that it has not seen yet takes the next character along, the first of a command."""
        self.write(f"\nprintf {SETTLED}\n")
        late, deadline = "", time.monotonic() + SETTLE_TIMEOUT_S
        while (
            SETTLED + PROMPT not in late
            and select.select([self.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]
        ):
            late += self.read(1024)
        output(late.replace(SETTLED, "").replace(PROMPT, "").lstrip())
        self._is_interrupted = False

    def prepare(self, spec: HostSpec, peers: list[str] | None) -> None:
        """Configure the interface once its link is there.

        Args:
            spec: the host of the topology file.
            peers: all other hosts' addresses without prefix length: those of the same subnet get the gateway's MAC address, because
                the switches route. None: the switch runs a program of its own, as in p4lang/tutorials. Hosts ask by ARP there, and a
                command of the topology file that fails is reported and left, as it is by the tutorials' own launcher.

        Raises:
            RuntimeError: with the command that fails and what it prints.
        """
        self.defaultIntf().rename("eth0")
        self._given = (spec, peers)
        self.configure()

    def configure(self) -> None:
        """Give the interface all that belongs to it, also when it was down and has lost some of that. Raises as `prepare`."""
        spec, peers = self._given
        settings = QUIET if spec.ipv6 else (*QUIET, "disable_ipv6=1")
        self.cmd("sysctl -qw", *(f"net.ipv6.conf.{which}.{one}" for which in ("all", "default") for one in settings))
        self._must(f"sysctl -qw net.ipv4.ip_local_port_range='{ports.HOST_PORTS[0]} {ports.HOST_PORTS[-1]}'")
        self._must(
            f"ip addr flush dev eth0 && ip addr add {spec.ip} dev eth0 && ip link set eth0 up && ip link set lo up"
        )
        disable_offloads("eth0", in_namespace(self))
        own = ipaddress.ip_interface(spec.ip).network
        for peer in peers or ():
            if ipaddress.ip_address(peer) in own:
                self._through_gateway(peer)
        if spec.ipv6:
            self._must(f"ip -6 addr add {spec.ipv6} dev eth0 nodad")
            self._through_gateway(GATEWAY_V6)
            self._must(f"ip -6 route replace default via {GATEWAY_V6} dev eth0 onlink")
            self._must("sysctl -qw net.ipv6.conf.eth0.keep_addr_on_down=1")
        for command in spec.commands:
            try:
                self._must(command)
            except RuntimeError as problem:
                if peers is not None:
                    raise
                warn(f"warning: {problem}\n")
        if "default" not in self.cmd("ip -4 route show default"):
            self._through_gateway(GATEWAY_V4)
            self._must(f"ip route replace default via {GATEWAY_V4} dev eth0 onlink")
        self.defaultIntf().updateIP()  # what Mininet's own commands (pingall, iperf, h1.IP()) go by

    def _through_gateway(self, address: str) -> None:
        self._must(f"ip neigh replace {address} lladdr {GATEWAY_MAC} dev eth0 nud permanent")

    def _must(self, command: str) -> None:
        text, _, code = self.cmd(f"( {command} ) 2>&1; echo exit=$?").strip().rpartition("exit=")
        if code.strip() != "0":
            raise RuntimeError(f"{self.name}: {command!r} failed: {text.strip()}")


Processes = Literal["one", "separate"]


@dataclass(frozen=True)
class NetworkOptions:
    """How to run a topology."""

    instance: int = 0
    """Number of this instance; 0 to `ports.INSTANCE_MAX`."""
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
    processes: Processes = "one"
    """`one`: embedded switches and links are in one process, and frames between two switches do not cross the kernel.
    `separate`: a process for each switch, as BMv2 has it always, and one for the links."""
    frame_bytes: int = 1514
    """Length of full frames, the check sequence left aside: BMv2 has queue rates in packets."""

    def __post_init__(self) -> None:
        """Raises OUT_OF_RANGE for an instance whose ports are not its own."""
        if not 0 <= self.instance <= ports.INSTANCE_MAX:
            raise out_of_range("instance", self.instance, 0, ports.INSTANCE_MAX)

    @property
    def name(self) -> str:
        """Of the instance, as the run state has it."""
        return str(self.instance)

    @property
    def prefix(self) -> str:
        """Of the names of interfaces."""
        return f"n{self.instance}" if self.instance else ""

    @property
    def folder(self) -> Path:
        """The run state's: sockets, logs, certificates."""
        return state.folder(self.name)

    @property
    def packet_cpu(self) -> int | None:
        """The processor of the packet thread of switches in one process; None: there is no other one for the hosts."""
        cpus = sorted(os.sched_getaffinity(0))
        return cpus[-1 - self.instance % len(cpus)] if self.in_one_process and len(cpus) > 1 else None

    @property
    def in_one_process(self) -> bool:
        """Whether all switches are in one process."""
        return self.target == "embedded" and self.processes == "one"

    @property
    def tls_folder(self) -> Path | None:
        """Of the run's certificates; None: plain."""
        return self.folder / "tls" if self.tls else None


class P4Switch(Switch):
    """A switch in the root namespace that serves P4Runtime on `grpc`, in a process of its own or one that all share."""

    binary: str
    thrift_port: int | None = None

    def __init__(self, name: str, run: NetworkOptions, specs: Mapping[int, PortSpec], **params: Any) -> None:
        """`specs` are its ports."""
        super().__init__(name, **params)
        self.options, self.specs = run, specs
        number = int(name[1:])
        self.grpc = f"127.0.0.1:{ports.BASE_GRPC_PORT + ports.PORTS_PER_INSTANCE * run.instance + number}"
        self.control = run.folder / f"{name}.sock"
        """Control socket of the embedded switch."""
        self.device_id = run.first_device_id + number - 1
        log = run.folder / "log" / f"{name}.log"
        what = f"{self.binary} {name}"
        self.service = Service(what, self.prepare, log, lambda: accepts(self.grpc, timeout_s=0.5), READY_TIMEOUT_S)
        """Its own process."""

    @property
    def endpoint(self) -> Endpoint:
        """Where its P4Runtime server is."""
        folder = self.options.tls_folder
        tls = folder and TlsFiles(folder / "ca.pem", folder / "controller.pem", folder / "controller.key")
        return Endpoint(self.name, self.grpc, self.device_id, tls)

    def interfaces(self) -> dict[int, str]:
        """Port number to interface name, loopback left out."""
        return {port: str(interface) for port, interface in sorted(self.intfs.items()) if port > 0}

    def arguments(self) -> list[str]:
        """Of its process."""
        raise NotImplementedError

    def prepare(self) -> list[str]:
        """The command line, once the interfaces are as it needs them. Raises RuntimeError when another process listens on its address: it would answer."""
        try:
            chosen = ports.choose(self.grpc)
        except RuntimeError as error:
            raise RuntimeError(f"{self.name}: {error}") from None
        if chosen != self.grpc:
            warn(f"{self.name}: P4Runtime on {chosen}, an outgoing connection holds {self.grpc}\n")
            self.grpc = chosen
        for interface in self.interfaces().values():
            quiet(interface)
            disable_offloads(interface)
        return [str(find_binary(self.binary)), *self.arguments()]

    def shape(self) -> None:
        """Put the ports' rates and queues in force where the process could not be started with them: once it has its program."""

    def restore_ports(self) -> None:
        """Put in force what was set of the ports since the topology is up, where the process has started again with the file's values; `shape`
        does so where that is not possible before it has its program. Raises RuntimeError.
        """

    def dpctl(self, *_words: str) -> str:
        """Mininet's command for OpenFlow switches."""
        return f"{self.name} speaks P4Runtime, no OpenFlow: 'sh fairlane p4 show_tables' lists its entries\n"


class EmbeddedSwitch(P4Switch):
    """The embedded v1model switch (`fairlane-switch`)."""

    binary = "fairlane-switch"

    def arguments(self) -> list[str]:
        used = self.interfaces().items()
        return SwitchOptions(
            ports=[port_options(number, interface, self.specs[number]) for number, interface in used],
            device_id=self.device_id,
            grpc=self.grpc,
            cpu_port=CPU_PORT,
            control=self.control,
            seed=self.options.seed,
            tls=self.options.tls_folder,
        ).arguments()

    def restore_ports(self) -> None:
        try:
            for port, values in changed_ports(self.options.folder, self.name).items():
                if form := values.pop("rate_follows", None):
                    values["rate_bps"] = form
                settings = {
                    key: NO_LIMIT if value == 0 and key != "rate_bps" else value for key, value in values.items()
                }
                set_port(self.control, port, **settings)
        except FairlaneError as error:
            raise RuntimeError(f"{self.name}: the ports are as the topology file has them: {error}") from None


class SimpleSwitchGrpc(P4Switch):
    """BMv2's `simple_switch_grpc`. Its queues are limited in packets per second, over Thrift: see `shape`."""

    binary = bmv2.BINARY

    def arguments(self) -> list[str]:
        """Reports which settings of the topology file do not hold on this target."""
        for port, spec in self.specs.items():
            if lost := not_on_bmv2(spec):
                warn(f"{self.name} port {port}: BMv2 has no {', '.join(lost)}\n")
        options = bmv2.Bmv2Options(self.interfaces(), self.grpc, self.thrift_port, self.device_id, CPU_PORT)
        return replace(options, tls=self.options.tls_folder).arguments()

    def shape(self) -> None:
        """Queue rate in packets per second (all that BMv2 has: right for one frame length only) and depth, over Thrift, as the run state has them.

        Raises RuntimeError with the command line's own words.
        """
        for spec in self.specs.values():
            bmv2.check_rate(self.name, spec.rate_bps)
        ports = read_run_state(self.options.folder).switch(self.name).ports
        rates = [
            bmv2.queue_rate(one.port, round(one.rate_bps), self.options.frame_bytes) for one in ports if one.rate_bps
        ]
        depths = [bmv2.queue_depth(one.port, one.queue_packets) for one in ports]
        try:
            bmv2.run_cli(self.thrift_port, *rates, *depths)
        except RuntimeError as error:
            raise RuntimeError(f"{self.name}: {error}") from None

    @property
    def thrift_port(self) -> int:
        """Thrift port that follows from the gRPC one: 50051 and 30051 give 20051, below the ephemeral range."""
        return 20_000 + int(self.grpc.rpartition(":")[2]) % 10_000


def port_options(number: int, interface: str, spec: PortSpec) -> PortOptions:
    """What the embedded switch is started with for a port."""
    queues = spec.model_dump(include={"queue_packets", *TRAFFIC_MANAGER})
    return PortOptions(number, interface, rate_bps=spec.rate_bps or 0, **queues)


def not_on_bmv2(spec: PortSpec) -> list[str]:
    """Settings of a port that BMv2 cannot have, as `key value`."""
    plain = PortSpec()
    different = [key for key in TRAFFIC_MANAGER if getattr(spec, key) != getattr(plain, key)]
    return [f"{key} {getattr(spec, key)}" for key in different if key != "queues" or spec.queues > plain.queues]


SWITCH_CLASSES: dict[str, type[P4Switch]] = {"embedded": EmbeddedSwitch, "bmv2": SimpleSwitchGrpc}
