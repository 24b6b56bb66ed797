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
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairlane_controller.switch.client import Endpoint
from fairlane_controller.switch.security import TlsFiles
from fairlane_switch import switch as embedded
from fairlane_switch.port_control import set_port, spike_port
from fairlane_switch.process import find_binary
from mininet.log import output, warn
from mininet.node import Host, Switch

from fairlane_topology import ports
from fairlane_topology.interfaces import disable_offloads, quiet
from fairlane_topology.processes import Service
from fairlane_topology.topology import CPU_PORT, GATEWAY_MAC, HostSpec, PortSpec

READY_TIMEOUT_S = 20.0
PROMPT = chr(127)
"""Of a node's shell: Mininet's sign that a command has ended."""
GATEWAY_V4 = "169.254.1.1"
GATEWAY_V6 = "fe80::ff:1"
QUIET = ("router_solicitations=0", "accept_dad=0")
"""Settings of IPv6 without which a host would send by itself."""
SCHEDULING = ("link_layer", "scheduler", "queues", "queue_cells", "port_cells")
"""Settings of a port that BMv2 has not: it has 8 strict-priority queues, counted in packets."""


class FairlaneHost(Host):
    """A host whose one interface is `eth0`, as in p4lang/tutorials, with static routes and neighbours."""

    pid: int

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:
        """Give the shell a command. What came late (a prompt after Ctrl-C, a job in the background) is printed, and not taken for the answer."""
        while not self.waiting and select.select([self.stdout], [], [], 0)[0]:
            output(self.read(1024).replace(PROMPT, ""))
        super().sendCmd(*args, **kwargs)

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
        self._must(
            f"ip addr flush dev eth0 && ip addr add {spec.ip} dev eth0 && ip link set eth0 up && ip link set lo up"
        )
        disable_offloads("eth0", self)
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


@dataclass(frozen=True)
class SwitchOptions:
    """What a switch process needs to start."""

    name: str
    """As in the topology file: without the instance's prefix."""
    device_id: int
    grpc: str
    ports: Mapping[int, PortSpec]
    folder: Path
    """The run state's: of the control socket `NAME.sock` and of `log/NAME.log`."""
    tls: Path | None = None
    """Folder with the files of `fairlane setup certs`: P4Runtime and gNMI speak mutual TLS."""
    seed: int | None = None
    """Of the embedded switch's `random()`, the run's; None: it draws one."""
    frame_bytes: int = 1514
    """Length of the frames for which BMv2's queues get their rate."""

    @property
    def control(self) -> Path:
        """Control socket of the embedded switch."""
        return self.folder / f"{self.name}.sock"


class P4Switch(Switch):
    """A switch in the root namespace that runs one process and serves P4Runtime on `options.grpc`."""

    target: str
    binary: str

    def __init__(self, name: str, options: SwitchOptions, **params: Any) -> None:
        super().__init__(name, **params)
        self.options = options
        self.service = Service(
            f"{self.binary} {name}",
            self.prepare,
            options.folder / "log" / f"{name}.log",
            lambda: ports.accepts(self.options.grpc, timeout_s=0.5),
            READY_TIMEOUT_S,
        )
        """Its process."""

    @property
    def endpoint(self) -> Endpoint:
        """Where its P4Runtime server is."""
        folder = self.options.tls
        tls = folder and TlsFiles(folder / "ca.pem", folder / "controller.pem", folder / "controller.key")
        return Endpoint(self.options.name, self.options.grpc, self.options.device_id, tls)

    def interfaces(self) -> dict[int, str]:
        """Port number to interface name, loopback left out."""
        return {port: str(interface) for port, interface in sorted(self.intfs.items()) if port > 0}

    def command(self) -> list[str]:
        """The command line of its process."""
        raise NotImplementedError

    def tls_files(self, prefix: str, names: Mapping[str, str]) -> list[str]:
        """Options of the server's PEM files; none without TLS."""
        folder = self.options.tls
        return [w for name, file in names.items() for w in (prefix + name, str(folder / file))] if folder else []

    def prepare(self) -> list[str]:
        """The command line, once the interfaces are as it needs them. Raises RuntimeError when another process listens on its address: it would answer."""
        try:
            chosen = ports.choose(self.options.grpc)
        except RuntimeError as error:
            raise RuntimeError(f"{self.name}: {error}") from None
        if chosen != self.options.grpc:
            warn(f"{self.name}: P4Runtime on {chosen}, an outgoing connection holds {self.options.grpc}\n")
            self.options = replace(self.options, grpc=chosen)
        for interface in self.interfaces().values():
            quiet(interface)
            disable_offloads(interface)
        return self.command()

    def shape(self) -> None:
        """Put the ports' rates and queues in force where the process could not be started with them."""

    def set_port_rate(self, port: int, rate_bps: int) -> None:
        """Change a port's rate while the switch runs. Raises RuntimeError with the switch's own words."""
        raise NotImplementedError

    def spike_port(self, port: int, duration_us: float) -> None:
        """Let nothing start on a port's line for so long. Raises RuntimeError where the target cannot, and with the switch's own words."""
        del duration_us
        raise RuntimeError(
            f'{self.name}: port {port} of {self.target} cannot be stopped for a time; a spike may block "delivery"'
        )

    def dpctl(self, *_words: str) -> str:
        """Mininet's command for OpenFlow switches."""
        return f"{self.name} speaks P4Runtime, no OpenFlow: 'sh fairlane p4 show_tables' lists its entries\n"


class EmbeddedSwitch(P4Switch):
    """The embedded v1model switch (`fairlane-switch`)."""

    target = "embedded"
    binary = "fairlane-switch"

    def command(self) -> list[str]:
        options = embedded.SwitchOptions(
            ports=[
                port_options(number, interface, self.options.ports[number])
                for number, interface in self.interfaces().items()
            ],
            device_id=self.options.device_id,
            grpc=self.options.grpc,
            cpu_port=CPU_PORT,
            control=self.options.control,
            seed=self.options.seed,
        )
        tls = {"cert": "server.pem", "key": "server.key", "client-ca": "ca.pem"}
        return [str(find_binary(self.binary)), *options.arguments(), *self.tls_files("--tls-", tls)]

    def set_port_rate(self, port: int, rate_bps: int) -> None:
        """Exact, whatever the frames."""
        set_port(self.options.control, port, rate_bps=rate_bps)

    def spike_port(self, port: int, duration_us: float) -> None:
        """Exact from when the switch gets the request."""
        spike_port(self.options.control, port, duration_us)


class SimpleSwitchGrpc(P4Switch):
    """BMv2's `simple_switch_grpc`. Its queues are limited in packets per second, over Thrift: see `shape`."""

    target = "bmv2"
    binary = "simple_switch_grpc"

    def command(self) -> list[str]:
        """Reports which settings of the topology file do not hold on this target."""
        for port, spec in self.options.ports.items():
            if lost := not_on_bmv2(spec):
                warn(f"{self.name} port {port}: BMv2 has no {', '.join(lost)}\n")
        command = [str(find_binary(self.binary)), "--no-p4", "--device-id", str(self.options.device_id)]
        command += ["--thrift-port", str(self.thrift_port)]
        for port, interface in self.interfaces().items():
            command += ["-i", f"{port}@{interface}"]
        command += ["--", "--grpc-server-addr", self.options.grpc, "--cpu-port", str(CPU_PORT)]
        command += ["--priority-queues", "8"]  # of each port, as ours has
        tls = self.tls_files("--grpc-server-", {"cert": "server.pem", "key": "server.key", "cacert": "ca.pem"})
        return [*command, *tls, *(["--grpc-server-ssl", "--grpc-server-with-client-auth"] if tls else [])]

    def shape(self) -> None:
        """Queue rate in packets per second (all that BMv2 has: right for one frame length only) and depth, over Thrift.

        Raises RuntimeError with the command line's own words.
        """
        limited = {port: spec.rate_bps for port, spec in self.options.ports.items() if spec.rate_bps}
        rates = [self._queue_rate(port, rate_bps) for port, rate_bps in limited.items()]
        depths = [f"set_queue_depth {spec.queue_packets} {port}" for port, spec in self.options.ports.items()]
        self._thrift(*rates, *depths)

    def set_port_rate(self, port: int, rate_bps: int) -> None:
        """In packets per second: right for one frame length only."""
        self._thrift(self._queue_rate(port, rate_bps))

    def _queue_rate(self, port: int, rate_bps: int) -> str:
        return f"set_queue_rate {max(1, round(rate_bps / 8 / self.options.frame_bytes))} {port}"

    def _thrift(self, *lines: str) -> None:
        command = [str(find_binary("simple_switch_CLI")), "--thrift-port", str(self.thrift_port)]
        done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60)
        if done.returncode != 0 or "Error" in done.stdout:
            raise RuntimeError(f"{self.name}: {' '.join(command)}: {(done.stderr or done.stdout).strip()[-300:]}")

    @property
    def thrift_port(self) -> int:
        """Thrift port that follows from the gRPC one: 50051 and 30051 give 20051, below the ephemeral range."""
        return 20_000 + int(self.options.grpc.rpartition(":")[2]) % 10_000


def port_options(number: int, interface: str, spec: PortSpec) -> embedded.PortOptions:
    """What the embedded switch is started with for a port."""
    queues = spec.model_dump(include={"queue_packets", *SCHEDULING})
    return embedded.PortOptions(number, interface, rate_bps=spec.rate_bps or 0, **queues)


def not_on_bmv2(spec: PortSpec) -> list[str]:
    """Settings of a port that BMv2 cannot have, as `key value`."""
    plain = PortSpec()
    different = [key for key in SCHEDULING if getattr(spec, key) != getattr(plain, key)]
    return [f"{key} {getattr(spec, key)}" for key in different if key != "queues" or spec.queues > plain.queues]


SWITCH_CLASSES: dict[str, type[P4Switch]] = {"embedded": EmbeddedSwitch, "bmv2": SimpleSwitchGrpc}
