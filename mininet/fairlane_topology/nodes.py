# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Mininet nodes: hosts with quiet, honest interfaces, and the two switch targets behind one shape.

A host talks to `eth0` and sends everything to the gateway's MAC: the switches route, and nobody needs ARP.
A switch node knows its interfaces and how to start and stop its process; what it forwards comes over P4Runtime.
"""

from __future__ import annotations

import ipaddress
import select
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairlane_switch.port_control import set_port, spike_port
from fairlane_switch.process import find_binary
from mininet.log import output, warn
from mininet.node import Host, Switch

from fairlane_topology import ports as fl_ports
from fairlane_topology.interfaces import disable_offloads, quiet
from fairlane_topology.processes import Service
from fairlane_topology.topology import CPU_PORT, GATEWAY_MAC, HostSpec, PortSpec

READY_TIMEOUT_S = 20.0
PROMPT = chr(127)
"""Of a node's shell: Mininet's sign that a command has ended."""
GATEWAY_V4 = "169.254.1.1"
GATEWAY_V6 = "fe80::ff:1"

QUIET_SYSCTLS = (
    "net.ipv6.conf.all.router_solicitations=0",
    "net.ipv6.conf.default.router_solicitations=0",
    "net.ipv6.conf.all.accept_dad=0",
    "net.ipv6.conf.default.accept_dad=0",
)


class FairlaneHost(Host):
    """A host whose one interface is `eth0`, as in p4lang/tutorials, with static routes and neighbours."""

    pid: int

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:
        """Give the shell a command. What it still had to say (a prompt after Ctrl-C, a job in the background) is reported, and not taken for the answer."""
        while not self.waiting and select.select([self.stdout], [], [], 0)[0]:
            output(self.read(1024).replace(PROMPT, ""))
        super().sendCmd(*args, **kwargs)

    def prepare(self, spec: HostSpec, mac: str, peers: list[str] | None) -> None:
        """Configure the interface once its link is there.

        `peers` are all other hosts' addresses without prefix length: those of the same subnet get the gateway's MAC address, because the
        switches route. None: the switch runs a program of its own, as in p4lang/tutorials. Hosts ask by ARP there, and a command of the
        topology file that fails is reported and left, as it is by the tutorials' own launcher; elsewhere it raises RuntimeError.
        """
        self.defaultIntf().rename("eth0")
        for setting in (
            QUIET_SYSCTLS
            if spec.ipv6
            else (*QUIET_SYSCTLS, "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        ):
            self.cmd(f"sysctl -qw {setting}")
        self._must(f"ip link set eth0 address {mac}")
        self._must(
            f"ip addr flush dev eth0 && ip addr add {spec.ip} dev eth0 && ip link set eth0 up && ip link set lo up"
        )
        disable_offloads("eth0", self)
        own = ipaddress.ip_interface(spec.ip)
        for peer in peers or ():
            address = ipaddress.ip_address(peer)
            if address.version == 4 and address in own.network:
                self._must(f"ip neigh replace {peer} lladdr {GATEWAY_MAC} dev eth0 nud permanent")
        if spec.ipv6:
            self._must(f"ip -6 addr add {spec.ipv6} dev eth0 nodad")
            self._must(f"ip -6 neigh replace {GATEWAY_V6} lladdr {GATEWAY_MAC} dev eth0 nud permanent")
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
            self._must(f"ip neigh replace {GATEWAY_V4} lladdr {GATEWAY_MAC} dev eth0 nud permanent")
            self._must(f"ip route replace default via {GATEWAY_V4} dev eth0 onlink")
        self.defaultIntf().updateIP()  # what Mininet's own commands (pingall, iperf, h1.IP()) go by

    def _must(self, command: str) -> None:
        output = self.cmd(f"( {command} ) 2>&1; echo exit=$?").strip()
        text, _, code = output.rpartition("exit=")
        if code.strip() != "0":
            raise RuntimeError(f"{self.name}: {command!r} failed: {text.strip()}")


@dataclass(frozen=True)
class SwitchOptions:
    """What a switch process needs to start. Rates are bit/s (0: unlimited), capacities are waiting packets."""

    device_id: int
    grpc: str
    ports: dict[int, PortSpec]
    log_dir: Path
    control: Path
    """Control socket of the embedded switch."""
    tls: Path | None = None
    """Folder with the files of `fairlane setup certs`: P4Runtime and gNMI speak mutual TLS."""
    seed: int | None = None
    """Of the embedded switch's `random()`, the run's; None: it draws one."""


class P4Switch(Switch):
    """A switch in the root namespace that runs one process and serves P4Runtime on `options.grpc`."""

    target = "none"
    binary = "none"

    def __init__(self, name: str, options: SwitchOptions, **params: Any) -> None:
        super().__init__(name, **params)
        self.options = options
        self.service = Service(
            f"{self.binary} {name}",
            self._prepare,
            options.log_dir / f"{name}.log",
            lambda: fl_ports.accepts(self.options.grpc, timeout_s=0.5),
            READY_TIMEOUT_S,
        )
        """Its process."""

    def interfaces(self) -> dict[int, str]:
        """Port number to interface name, loopback left out."""
        return {port: str(interface) for port, interface in sorted(self.intfs.items()) if port > 0}

    def command(self) -> list[str]:
        raise NotImplementedError

    def _prepare(self) -> list[str]:
        """The command line, once the interfaces are as it needs them. Raises RuntimeError when another process listens on its address: it would answer."""
        try:
            chosen = fl_ports.choose(self.options.grpc)
        except fl_ports.PortTakenError as error:
            raise RuntimeError(f"{self.name}: {error}") from None
        if chosen != self.options.grpc:
            warn(f"{self.name}: P4Runtime on {chosen}, an outgoing connection holds {self.options.grpc}\n")
            self.options = replace(self.options, grpc=chosen)
        for interface in self.interfaces().values():
            quiet(interface)
            disable_offloads(interface)
        return self.command()

    def shape(self, mean_frame_bytes: int) -> None:
        """Put the ports' rates and queues in force where the process could not be started with them."""

    def set_port_rate(self, port: int, rate_bps: int, mean_frame_bytes: int) -> None:
        """Change a port's rate while the switch runs. Raises RuntimeError with the switch's own words."""
        raise NotImplementedError

    def spike_port(self, port: int, duration_s: float) -> None:
        """Let nothing start on a port's line for so long. Raises RuntimeError where the target cannot, and with the switch's own words."""
        del duration_s
        raise RuntimeError(
            f'{self.name}: port {port} of {self.target} cannot be stopped for a time; a spike may block "delivery"'
        )

    def start(self, controllers: Any) -> None:
        """Mininet's start: nothing but the process; there is no OpenFlow controller."""
        del controllers
        self.service.launch()

    def dpctl(self, *_words: str) -> str:
        """Mininet's command for OpenFlow switches."""
        return f"{self.name} speaks P4Runtime, no OpenFlow: 'sh fairlane p4 show_tables' lists its entries\n"

    def stop(self, deleteIntfs: bool = True) -> None:
        """Mininet's stop of a single switch."""
        self.service.stop()
        super().stop(deleteIntfs)


class EmbeddedSwitch(P4Switch):
    """The embedded v1model switch (`fairlane-switch`)."""

    target = "embedded"
    binary = "fairlane-switch"

    def command(self) -> list[str]:
        options = self.options
        command = [
            str(find_binary(self.binary)),
            "--device-id",
            str(options.device_id),
            "--grpc",
            options.grpc,
            "--cpu-port",
            str(CPU_PORT),
            "--control",
            str(options.control),
        ]
        if options.seed is not None:
            command += ["--seed", str(options.seed)]
        if options.tls is not None:
            for option, file in (("cert", "server.pem"), ("key", "server.key"), ("client-ca", "ca.pem")):
                command += [f"--tls-{option}", str(options.tls / file)]
        for port, interface in self.interfaces().items():
            command += ["-i", f"{port}@{interface}"]
            spec = options.ports.get(port, PortSpec())
            command += ["--port", f"{port}:{port_option(spec)}"]
        return command

    def set_port_rate(self, port: int, rate_bps: int, mean_frame_bytes: int) -> None:
        """Exact, whatever the frames."""
        del mean_frame_bytes
        set_port(self.options.control, port, rate_bps=rate_bps)

    def spike_port(self, port: int, duration_s: float) -> None:
        """Exact from when the switch hears of it."""
        spike_port(self.options.control, port, duration_s * 1e6)


class SimpleSwitchGrpc(P4Switch):
    """BMv2's `simple_switch_grpc`. Its queues are limited in packets per second, over Thrift: see `shape`."""

    target = "bmv2"
    binary = "simple_switch_grpc"

    def command(self) -> list[str]:
        options = self.options
        command = [
            str(find_binary(self.binary)),
            "--no-p4",
            "--device-id",
            str(options.device_id),
            "--thrift-port",
            str(self.thrift_port),
        ]
        for port, interface in self.interfaces().items():
            command += ["-i", f"{port}@{interface}"]
        command += ["--", "--grpc-server-addr", options.grpc, "--cpu-port", str(CPU_PORT)]
        command += ["--priority-queues", "8"]  # of each port, as ours has
        if options.tls is not None:
            for option, file in (("cert", "server.pem"), ("key", "server.key"), ("cacert", "ca.pem")):
                command += [f"--grpc-server-{option}", str(options.tls / file)]
            command += ["--grpc-server-ssl", "--grpc-server-with-client-auth"]
        return command

    def start(self, controllers: Any) -> None:
        """Says aloud which settings of the topology file do not hold on this target, then starts it."""
        for port, spec in self.options.ports.items():
            if lost := not_on_bmv2(spec):
                warn(f"{self.name} port {port}: BMv2 has no {', '.join(lost)}\n")
        super().start(controllers)

    def shape(self, mean_frame_bytes: int) -> None:
        """Queue rate in packets per second (all that BMv2 has: right for one frame length only) and depth, over Thrift.

        Raises RuntimeError with the command line's own words.
        """
        lines: list[str] = []
        for port, spec in self.options.ports.items():
            if spec.rate_bps:
                lines.append(_queue_rate(port, spec.rate_bps, mean_frame_bytes))
            lines.append(f"set_queue_depth {spec.queue_packets} {port}")
        self._say(lines)

    def set_port_rate(self, port: int, rate_bps: int, mean_frame_bytes: int) -> None:
        """In packets per second: right for one frame length only."""
        self._say([_queue_rate(port, rate_bps, mean_frame_bytes)])

    def _say(self, lines: list[str]) -> None:
        command = [str(find_binary("simple_switch_CLI")), "--thrift-port", str(self.thrift_port)]
        done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60)
        if done.returncode != 0 or "Error" in done.stdout:
            raise RuntimeError(f"{self.name}: {' '.join(command)}: {(done.stderr or done.stdout).strip()[-300:]}")

    @property
    def thrift_port(self) -> int:
        """Thrift port that follows from the gRPC one: 50051 and 30051 give 20051, below the ephemeral range."""
        return 20_000 + int(self.options.grpc.rpartition(":")[2]) % 10_000


def port_option(spec: PortSpec) -> str:
    """What `fairlane-switch --port` takes behind the port's number; defaults are left out."""
    values: dict[str, object] = {"rate": spec.rate_bps or 0, "queue_packets": spec.queue_packets}
    plain = PortSpec()
    for key in ("link_layer", "scheduler", "queues", "queue_cells", "port_cells"):
        if getattr(spec, key) != getattr(plain, key):
            values[key] = getattr(spec, key)
    return ",".join(f"{key}={value}" for key, value in values.items())


def not_on_bmv2(spec: PortSpec) -> list[str]:
    """Settings of a port that BMv2 cannot have, as `key value`: it has 8 strict-priority queues, counted in packets."""
    plain = PortSpec()
    keys = ("link_layer", "scheduler", "queue_cells", "port_cells")
    told = [f"{key} {getattr(spec, key)}" for key in keys if getattr(spec, key) != getattr(plain, key)]
    return [*told, f"queues {spec.queues}"] if spec.queues > plain.queues else told


def _queue_rate(port: int, rate_bps: int, mean_frame_bytes: int) -> str:
    return f"set_queue_rate {max(1, round(rate_bps / 8 / mean_frame_bytes))} {port}"


SWITCH_CLASSES: dict[str, type[P4Switch]] = {"embedded": EmbeddedSwitch, "bmv2": SimpleSwitchGrpc}
