# SPDX-License-Identifier: Apache-2.0
"""The packet bed: two hosts in throw-away namespaces and the middle between them, and what the self-test does with it.

    sender  eth0 10.97.0.1 --- left [forwarder] right --- eth0 10.97.0.2  receiver

The namespaces have no names: this process has their descriptors, so they end with it, `kill -9` included.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from fairlane_switch import interfaces

from .. import apply, cgroups, loader, tcpinfo
from ..errors import HostsError
from ..host import Attachment, attach, host_of
from ..variants import Variant
from .gate import Gate, Rule, open_packet_socket, pass_all

MSS_BYTES = 1000
SENDER_ADDRESS, RECEIVER_ADDRESS = "10.97.0.1", "10.97.0.2"
_MACS = {SENDER_ADDRESS: "02:00:00:00:97:01", RECEIVER_ADDRESS: "02:00:00:00:97:02"}
_TIMEOUT_S = 10.0
_QUIET_S = 0.01
_SO_SNDBUFFORCE, _SEND_BUFFER_BYTES = 32, 1 << 20
_PIECE_BYTES = 65_536
_TOOLS = ("ip", "ethtool")
_numbers = itertools.count()
T = TypeVar("T")


def _run(command: str) -> None:
    interfaces.run(*command.split(), timeout_s=_TIMEOUT_S)


def _bring_up(interface: str, mtu: int) -> None:
    interfaces.quiet(interface)
    interfaces.disable_offloads(interface)
    _run(f"ip link set dev {interface} mtu {mtu} up")


class Network(contextlib.ExitStack[None]):
    """The namespaces `sender`, `receiver` and `middle`, joined by cables without offloads. Raises HostsError `check`, `namespace`."""

    def __init__(self, mtu: int = 1500) -> None:
        super().__init__()
        for tool in _TOOLS:
            if shutil.which(tool) is None:
                raise HostsError("check", f"the packet bed needs {tool}", "apt install iproute2 ethtool")
        self.name = f"bed-{os.getpid()}-{next(_numbers)}"
        self.netns = {role: self._new_namespace() for role in ("sender", "receiver", "middle")}
        """Path of each."""
        for role, side, own, peer in (
            ("sender", "left", SENDER_ADDRESS, RECEIVER_ADDRESS),
            ("receiver", "right", RECEIVER_ADDRESS, SENDER_ADDRESS),
        ):
            middle = self.netns["middle"]
            self.run(role, f"ip link add eth0 type veth peer name {side} netns {middle}")
            for where, interface in ((role, "eth0"), ("middle", side)):
                self._do(where, functools.partial(_bring_up, interface, mtu))
            for command in (
                "ip link set dev lo up",
                f"ip link set dev eth0 address {_MACS[own]}",
                f"ip addr add {own}/24 dev eth0",
                f"ip neigh replace {peer} lladdr {_MACS[peer]} dev eth0 nud permanent",
            ):
                self.run(role, command)

    def _new_namespace(self) -> Path:
        descriptors, libc = list[int](), ctypes.CDLL(None, use_errno=True)

        def unshare() -> None:
            if libc.unshare(apply.CLONE_NEWNET) == 0:
                descriptors.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))

        thread = threading.Thread(target=unshare)
        thread.start()
        thread.join()
        if not descriptors:
            raise HostsError("namespace", "cannot make a network namespace", "run it as root")
        self.callback(os.close, descriptors[0])
        return Path(f"/proc/{os.getpid()}/fd/{descriptors[0]}")

    def inside(self, role: str, action: Callable[[], T]) -> T:
        """Run `action` in a namespace."""
        return apply.run_in_namespace(self.netns[role], action)

    def run(self, role: str, command: str) -> None:
        """Run a command in a namespace. Raises HostsError `check`."""
        self._do(role, lambda: _run(command))

    def _do(self, role: str, action: Callable[[], None]) -> None:
        try:
            self.inside(role, action)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            raise HostsError("check", str(error)) from error

    def sides(self) -> tuple[socket.socket, socket.socket]:
        """The middle's packet sockets: towards the sender, and the receiver."""
        left, right = (self.inside("middle", lambda side=side: open_packet_socket(side)) for side in ("left", "right"))
        return left, right


def _discard(connection: socket.socket) -> None:
    with contextlib.suppress(OSError), connection:
        while True:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            if not connection.recv(_PIECE_BYTES):
                return


class CheckBed(Network):
    """The network with a gate in its middle, and one connection at a time."""

    def __init__(self, lease: loader.Lease) -> None:
        super().__init__()
        self._lease = lease
        self._attached = dict[tuple[str, str], Attachment]()
        self._connection: socket.socket | None = None
        self.gate = Gate(*self.sides())
        self.callback(self.gate.close)
        self.callback(self._end_connection)

    def use(self, variant: Variant) -> None:
        """Give the sender a variant and its programs, the receiver's host its own. Raises HostsError."""
        for role, programs in (("sender", variant.programs), ("receiver", variant.receiver_programs)):
            for program in programs:
                if (role, program) not in self._attached:
                    host = host_of(f"{self.name}/{role}", self.netns[role])
                    self._attached[role, program] = self.enter_context(attach(host, [program], self._lease))
        apply.use_on_host(variant, self.netns["sender"], even_if_failed=True)

    def counters(self, role: str, program: str) -> dict[str, int]:
        """A program's counters on `sender` or `receiver`."""
        return self._attached[role, program].counters()

    def begin(self, rule: Rule = pass_all) -> None:
        """End the connection that there was, with a reset; the gate's log and numbers begin anew, by this rule."""
        self.gate.open()
        self._end_connection()
        self.gate.wait_quiet(_QUIET_S, _TIMEOUT_S)
        self.gate.begin(rule)

    def _end_connection(self) -> None:
        if self._connection is not None:
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._connection.close()
            self._connection = None

    def _make_socket(self, role: str, make: Callable[[], socket.socket]) -> socket.socket:
        """A socket of a host: made while we are in its cgroup, so that it runs the host's programs."""
        attached = [attachment.host for (where, _), attachment in self._attached.items() if where == role]
        if not attached:
            return self.inside(role, make)
        origin = cgroups.cgroup_of(os.getpid())
        cgroups.move([os.getpid()], attached[0].cgroup)
        try:
            return self.inside(role, make)
        finally:
            cgroups.move([os.getpid()], origin)

    def connect(self, cc: str | None = None) -> str:
        """A new connection of the sender; returns the congestion control that its socket uses."""
        with self._make_socket("receiver", lambda: socket.create_server(("", 0))) as listener:
            connection = self._connection = self._make_socket("sender", socket.socket)
            for opened in (listener, connection):
                opened.settimeout(_TIMEOUT_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, MSS_BYTES)
            connection.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _SEND_BUFFER_BYTES)
            if cc is not None:
                apply.use_on_socket(connection, cc)
            try:
                connection.connect((RECEIVER_ADDRESS, listener.getsockname()[1]))
                accepted, _ = listener.accept()
            except OSError as error:
                raise HostsError("check", f"no connection: {error}") from error
        accepted.settimeout(None)
        threading.Thread(target=_discard, args=(accepted,), daemon=True).start()
        return apply.congestion_control_of(connection)

    def send(self, bytes: int) -> None:
        """All at once, into the socket's buffer."""
        assert self._connection is not None
        self._connection.sendall(b"x" * bytes)

    def info(self) -> dict[str, Any]:
        """TCP_INFO of the sender's connection, and `netstat`: its namespace's TcpExt counters."""
        assert self._connection is not None
        text = self.inside("sender", Path("/proc/thread-self/net/netstat").read_text)
        names, values = (line.split()[1:] for line in text.splitlines() if line.startswith("TcpExt"))
        counters = dict(zip(names, map(int, values), strict=True))
        return {**tcpinfo.read(self._connection)._asdict(), "netstat": counters}

    def wait_drained(self, bytes: int, timeout_s: float = 8.0) -> dict[str, Any]:
        """Until `bytes` are acknowledged; the last TCP_INFO. Raises HostsError `check` when it takes too long."""
        deadline = time.monotonic() + timeout_s
        while True:
            info = self.info()
            if info["bytes_acked"] >= bytes and info["unacked"] == 0:
                return info
            if time.monotonic() > deadline:
                raise HostsError("check", f"{info['bytes_acked']} of {bytes} bytes arrived within {timeout_s:g} s")
            time.sleep(0.01)
