# SPDX-License-Identifier: Apache-2.0
"""How the hosts' TCP is set for one scenario: variant, host programs, sysctls, and what Linux takes from a route (quick ACKs, RTO minimum, first window, largest window).

A route's `cwnd N lock` bounds the congestion window only of connections to a peer that the kernel has metrics of, and it
makes those when a connection ends: so one empty connection is made first, see `clamp`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import subprocess
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairlane_hosts.apply import namespace_of, run_in_namespace, use_on_host, write_sysctls
from fairlane_hosts.host import Attachment, attach, host_of
from fairlane_hosts.loader import Lease
from fairlane_hosts.variants import Variant, find_variant

from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario, tcp_of
from fairlane_lab.testbed.plan import UDP_KINDS

DEFAULT_RTO_MIN_S = 0.2
"""Linux's own."""
CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class HostWish:
    """What one namespace must be set to."""

    variant: Variant
    sysctls: dict[str, int]
    """`net.ipv4.*` beside the variant's."""
    programs: tuple[str, ...] = ()
    """Host programs: of the variants that it sends with, and of those that it receives from."""


@dataclass
class RouteWish:
    """Route attributes from one host to a peer."""

    rto_min_s: float = DEFAULT_RTO_MIN_S
    initial_window: int = 0
    window_packets: int = 0
    quick_ack: bool = False

    def words(self) -> list[str]:
        """In the words of ip-route(8); empty when the default route does."""
        words: list[str] = []
        if self.rto_min_s != DEFAULT_RTO_MIN_S:
            words += ["rto_min", f"{round(self.rto_min_s * 1000)}ms"]
        if self.initial_window:
            words += ["initcwnd", str(self.initial_window)]
        if self.window_packets:
            words += ["cwnd", "lock", str(self.window_packets)]
        if self.quick_ack:
            words += ["quickack", "1"]
        return words


@dataclass(frozen=True)
class Wishes:
    """Everything that a scenario wants of its hosts."""

    hosts: dict[str, HostWish]
    routes: dict[tuple[str, str], RouteWish]
    """By (host, peer)."""


def wishes(scenario: Scenario) -> Wishes:
    """What the scenario's flows want. Raises RunError where two flows want what one host cannot give both."""
    tcp_flows = [flow for flow in scenario.flows if flow.app.kind not in UDP_KINDS]
    hosts: dict[str, HostWish] = {}
    routes: dict[tuple[str, str], RouteWish] = {}
    owner: dict[tuple[str, str, str], tuple[str, Any]] = {}
    programs: dict[str, dict[str, None]] = {}

    def want(kind: str, a: str, b: str, flow: str, value: Any) -> None:
        first, other = owner.setdefault((kind, a, b), (flow, value))
        if other != value:
            where = f"{a} to {b}" if b else a
            raise RunError(
                f"flows {first} and {flow} want different settings ({kind}) of {where}; give one another host"
            )

    for flow in tcp_flows:
        variant, tcp = find_variant(flow.variant), tcp_of(scenario, flow)
        extra: dict[str, int] = {}
        if tcp.timestamps:
            extra["tcp_timestamps"] = 1
        if tcp.sack is not None:
            extra["tcp_sack"] = int(tcp.sack)
        want("sysctls", flow.sender, "", flow.name, {**variant.sysctls, **extra})
        hosts.setdefault(flow.sender, HostWish(variant, extra))
        needed = programs.setdefault(flow.sender, {})
        needed.update(dict.fromkeys(variant.programs))
        if tcp.receiver_program:
            programs.setdefault(flow.receiver, {}).update(dict.fromkeys(variant.receiver_programs))
        data, ack = (flow.sender, flow.receiver), (flow.receiver, flow.sender)
        initial = tcp.initial_window_packets if variant.builtin else 0
        settings = (tcp.rto_min_s, initial, flow.window_packets)
        want("rto_min_s, initial_window_packets, window_packets", *data, flow.name, settings)
        want("delayed_ack", *ack, flow.name, tcp.delayed_ack)
        out = routes.setdefault(data, RouteWish())
        out.rto_min_s, out.initial_window, out.window_packets = settings
        routes.setdefault(ack, RouteWish()).quick_ack = not tcp.delayed_ack
    for flow in tcp_flows:  # a host that only receives offers what its senders may ask for
        variant, tcp = find_variant(flow.variant), tcp_of(scenario, flow)
        held = hosts.get(flow.receiver)
        if held is not None and any(other.sender == flow.receiver for other in tcp_flows):
            continue
        sysctls = {} if held is None else dict(held.sysctls)
        for name, asked in (("tcp_timestamps", tcp.timestamps), ("tcp_sack", tcp.sack)):
            if asked or variant.sysctls[name]:
                sysctls[name] = 1
        hosts[flow.receiver] = HostWish(variant if held is None else held.variant, sysctls)
    needing = {name: replace(wish, programs=tuple(programs.get(name, ()))) for name, wish in hosts.items()}
    return Wishes(needing, routes)


class HostSettings:
    """Puts wishes in force on the hosts of one running topology, and takes routes and programs away again."""

    def __init__(
        self, pids: dict[str, int], addresses: dict[str, str], lease: Lease | None = None, topology: str = "lab"
    ) -> None:
        """`lease` holds the host programs; `topology` is a name for the cgroups that no other running one has."""
        self._pids = pids
        self._addresses = addresses
        self._routes: list[tuple[str, str]] = []
        self._lease = lease
        self._topology = topology
        self._attachments: dict[str, Attachment] = {}

    def apply(self, wanted: Wishes) -> dict[str, str]:
        """Set all hosts; returns the variant of each. Raises RunError, HostsError."""
        self.clear()
        for name, wish in wanted.hosts.items():
            namespace = self._namespace(name)
            use_on_host(wish.variant, namespace)
            if wish.sysctls:
                run_in_namespace(namespace, lambda wish=wish: write_sysctls(wish.sysctls))
            if wish.programs:
                if self._lease is None:
                    raise RunError(f"{name} needs host programs {', '.join(wish.programs)}, and there is no lease")
                self._attachments[name] = attach(
                    host_of(f"{self._topology}/{name}", namespace), wish.programs, self._lease
                )
        for (host, peer), wish in wanted.routes.items():
            if wish.words():
                self._route(host, peer, wish.words())
        return {name: wish.variant.name for name, wish in wanted.hosts.items()}

    def clamp(self, wanted: Wishes, ports: dict[tuple[str, str], int]) -> None:
        """Give the kernel the peer metrics that make a route's `cwnd lock` hold; the sinks must listen at `ports`.

        tcp_init_metrics() reads the lock from the peer's metrics, and those come into being when a connection ends
        while `tcp_no_metrics_save` is 0 (net/ipv4/tcp_metrics.c).
        """
        for (host, peer), wish in wanted.routes.items():
            if wish.window_packets:
                address = (self._addresses[peer], ports[host, peer])
                run_in_namespace(self._namespace(host), lambda address=address: _make_metrics(address))

    def entering(self, host: str, command: Sequence[str]) -> list[str]:
        """`command` as a process of the host: in its network namespace, its sockets under its programs."""
        inside = ["mnexec", "-a", str(self._pids[host]), *command]
        attachment = self._attachments.get(host)
        return attachment.host.entering(inside) if attachment else inside

    def counters(self) -> dict[str, dict[str, int]]:
        """Of the host programs, by host, since `apply`. Raises HostsError."""
        return {name: attachment.counters() for name, attachment in self._attachments.items()}

    def clear(self) -> None:
        """Take away the routes and programs that `apply` made, and the peers' metrics."""
        while self._attachments:
            self._attachments.popitem()[1].close()
        while self._routes:
            host, peer = self._routes.pop()
            self._ip(host, ["route", "delete", f"{self._addresses[peer]}/32"])
            self._ip(host, ["tcp_metrics", "flush", self._addresses[peer]], absent_is_fine=True)

    def _route(self, host: str, peer: str, words: list[str]) -> None:
        address = self._addresses[peer]
        (found,) = json.loads(self._ip(host, ["-j", "route", "get", address]))
        way = ["via", found["gateway"]] if "gateway" in found else []
        self._ip(host, ["route", "replace", f"{address}/32", *way, "dev", found["dev"], "onlink", *words])
        self._routes.append((host, peer))

    def _ip(self, host: str, words: list[str], *, absent_is_fine: bool = False) -> str:
        """What `ip` says in the host; `absent_is_fine`: also when what it should take away is not there (ESRCH).

        Only a peer that the host opened connections to has metrics, so a flush on the receiver's side finds nothing.
        """
        command = ["mnexec", "-a", str(self._pids[host]), "ip", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        if done.returncode != 0 and not (absent_is_fine and os.strerror(errno.ESRCH) in done.stderr):
            raise RunError(f"{host}: ip {' '.join(words)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def _namespace(self, host: str) -> Path | None:
        return namespace_of(pid=self._pids[host])


@contextlib.contextmanager
def _metrics_saved() -> Generator[None]:
    setting = Path("/proc/sys/net/ipv4/tcp_no_metrics_save")
    before = setting.read_text()
    setting.write_text("0")
    try:
        yield
    finally:
        setting.write_text(before)


def _make_metrics(address: tuple[str, int]) -> None:
    with _metrics_saved(), socket.create_connection(address, timeout=CONNECT_TIMEOUT_S) as connection:
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
