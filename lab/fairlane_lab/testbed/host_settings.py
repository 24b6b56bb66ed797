# SPDX-License-Identifier: Apache-2.0
"""How the hosts' TCP is set for one scenario: variant, host programs, sysctls, and what Linux takes from a route (quick ACKs, RTO minimum, first window, largest window).

A route's `cwnd N lock` bounds the congestion window only of connections to a peer that the kernel has metrics of, and it
makes those when a connection ends: so one empty connection is made first, see `clamp`.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fairlane_hosts.apply import namespace_of, run_in_namespace, use_on_host, write_sysctls
from fairlane_hosts.host import Attachment, attach, host_of
from fairlane_hosts.loader import Lease

from fairlane_lab.run_result import RunError
from fairlane_lab.wishes import Wishes

CONNECT_TIMEOUT_S = 10.0


class HostSettings:
    """Puts wishes in force on the hosts of one running topology, and takes routes and programs away again."""

    def __init__(self, pids: dict[str, int], addresses: dict[str, str], lease: Lease, topology: str) -> None:
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


def _make_metrics(address: tuple[str, int]) -> None:
    setting = Path("/proc/sys/net/ipv4/tcp_no_metrics_save")
    before = setting.read_text()
    setting.write_text("0")
    try:
        with socket.create_connection(address, timeout=CONNECT_TIMEOUT_S) as connection:
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
    finally:
        setting.write_text(before)
