# SPDX-License-Identifier: Apache-2.0
"""A small real network for the wire's tests and its benchmark: two hosts in namespaces of their own, and the wire between.

<p>a ──── <p>w: wa ▒wire▒ wb ──── <p>b          p = wr<pid>
10.9.0.1                          10.9.0.2
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

CLONE_NEWNET = 0x40000000
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
ADDRESSES = {"a": "10.9.0.1", "b": "10.9.0.2"}
MACS = {"a": "02:00:00:00:09:01", "b": "02:00:00:00:09:02"}
_OFFLOADS = ("rx", "tx", "sg", "tso", "gso", "gro", "rxvlan", "txvlan")


def run(*command: str) -> str:
    """Run a command that must succeed; returns its output. Raises RuntimeError with its own words."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 5.0) -> None:
    """Wait until `condition` holds. Raises TimeoutError naming `what`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s} s: {what}")
        time.sleep(0.005)


def socket_in(netns: str, family: int, kind: int, protocol: int = 0) -> socket.socket:
    """A socket of another network namespace (made by a thread that enters it, and ends)."""
    made: list[socket.socket] = []

    def make() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        fd = os.open(f"/run/netns/{netns}", os.O_RDONLY)
        try:
            if libc.setns(fd, CLONE_NEWNET) == 0:
                made.append(socket.socket(family, kind, protocol))
        finally:
            os.close(fd)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join(timeout=10)
    if not made:
        raise RuntimeError(f"no socket in network namespace {netns}")
    return made[0]


class WireNet:
    """The two hosts and the wire's namespace. A context manager: leaving it removes all three."""

    def __init__(self) -> None:
        prefix = f"wr{os.getpid()}"
        self.host = {"a": f"{prefix}a", "b": f"{prefix}b"}
        self.netns = f"{prefix}w"
        """The namespace of the wire's interfaces `wa` and `wb`."""

    def __enter__(self) -> WireNet:
        try:
            for name in (*self.host.values(), self.netns):
                run("ip", "netns", "add", name)
                run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
                run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
            for end in "ab":
                self.add_host_link(end)
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the namespaces, and the interfaces with them."""
        for name in (*self.host.values(), self.netns):
            with contextlib.suppress(RuntimeError):
                run("ip", "netns", "del", name)

    def add_host_link(self, end: str) -> None:
        """Make the veth pair between host `end` and the wire's namespace: `eth0` there, `wa` or `wb` here."""
        other = "b" if end == "a" else "a"
        run("ip", "-n", self.host[end], "link", "add", "eth0", "address", MACS[end], "type", "veth",
            "peer", "name", f"w{end}", "netns", self.netns)  # fmt: skip
        self.offloads("off", end)
        run("ip", "-n", self.netns, "link", "set", f"w{end}", "up")
        run("ip", "-n", self.host[end], "link", "set", "eth0", "up")
        run("ip", "-n", self.host[end], "addr", "add", f"{ADDRESSES[end]}/24", "dev", "eth0")
        # No ARP: the k-th frame on the link is the k-th that a test sends.
        run("ip", "-n", self.host[end], "neigh", "replace", ADDRESSES[other], "lladdr", MACS[other],
            "nud", "permanent", "dev", "eth0")  # fmt: skip

    def offloads(self, state: str, end: str) -> None:
        """Switch the offloads of both interfaces of a host's veth pair `on` or `off`."""
        for netns, name in ((self.host[end], "eth0"), (self.netns, f"w{end}")):
            for feature in _OFFLOADS:
                subprocess.run(
                    ["ip", "netns", "exec", netns, "ethtool", "-K", name, feature, state],
                    capture_output=True,
                    timeout=30,
                )

    def udp(self, end: str, port: int = 7777) -> socket.socket:
        """A UDP socket of a host, bound to `port`, connected to the other host's, with room for thousands of datagrams."""
        other = "b" if end == "a" else "a"
        made = socket_in(self.host[end], socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)
        made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        made.bind((ADDRESSES[end], port))
        made.connect((ADDRESSES[other], port))
        made.settimeout(5)
        return made

    def snmp(self, end: str, protocol: str) -> dict[str, int]:
        """A host's protocol counters, such as `Udp` with `InCsumErrors`."""
        lines = run("ip", "netns", "exec", self.host[end], "cat", "/proc/net/snmp").splitlines()
        names, values = (line.split()[1:] for line in lines if line.startswith(f"{protocol}: "))
        return dict(zip(names, map(int, values), strict=True))


def stamped(receiver: socket.socket) -> tuple[bytes, int]:
    """The next datagram and the instant that the kernel received it, ns of the wall clock."""
    data, ancillary, _, _ = receiver.recvmsg(65536, 1024)
    for level, kind, value in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds = int.from_bytes(value[:8], "little")
            return data, seconds * 1_000_000_000 + int.from_bytes(value[8:16], "little")
    raise RuntimeError("the kernel gave no stamp")


def drain(receiver: socket.socket) -> list[bytes]:
    """All datagrams that are there already."""
    receiver.setblocking(False)
    taken: list[bytes] = []
    with contextlib.suppress(BlockingIOError):
        while True:
            taken.append(receiver.recv(65536))
    receiver.settimeout(5)
    return taken


def socket_mode(path: Path) -> int:
    """Permission bits of a file."""
    return path.stat().st_mode & 0o777
