# SPDX-License-Identifier: Apache-2.0
"""The self-test's network: two hosts in throw-away namespaces, the gate between them, and what a variant needs.

    sender  eth0 10.97.0.1 --- left [gate] right --- eth0 10.97.0.2  receiver

The namespaces have no names: they live with the three child processes, which end with our end of their standard input,
`kill -9` included; programs and congestion controls end with the lease.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from .. import apply, loader
from ..errors import HostsError
from ..host import Attachment, attach, host_of
from ..variants import Variant
from .gate import Gate, Rule, open_packet_socket, pass_all

SENDER_ADDRESS, RECEIVER_ADDRESS = "10.97.0.1", "10.97.0.2"
_SENDER_MAC, _RECEIVER_MAC = "02:00:00:00:97:01", "02:00:00:00:97:02"
_TIMEOUT_S = 10.0
_QUIET_S = 0.01
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]
_TOOLS = ("ip", "unshare", "nsenter", "ethtool")


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise HostsError("check", f"{' '.join(command[:6])} …: not done within {_TIMEOUT_S:g} s") from error
    if done.returncode:
        raise HostsError("check", f"{' '.join(command[:6])} …: {done.stderr.strip() or done.stdout.strip()}")


class Child:
    """A process in a network namespace of its own that answers requests (see `agent`)."""

    def __init__(self, command: list[str]) -> None:
        paths = [str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            ["unshare", "--net", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
        )
        self.pid = self._process.pid

    @property
    def netns(self) -> Path:
        return Path(f"/proc/{self.pid}/ns/net")

    def wait_for_namespace(self) -> None:
        """Until it has left our namespace."""
        ours, deadline = Path("/proc/self/ns/net").stat().st_ino, time.monotonic() + _TIMEOUT_S
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError):
                if self.netns.stat().st_ino != ours:
                    return
            time.sleep(0.005)
        raise HostsError("check", "cannot make a network namespace", "run it as root")

    def inside(self, *command: str) -> None:
        _run(["nsenter", "-t", str(self.pid), "-n", *command])

    def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        """Raises HostsError `check` with what the other end says, or when it says nothing."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"op": op, **arguments}).encode() + b"\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], _TIMEOUT_S)
            line = process.stdout.readline() if ready else b""
        except OSError as error:
            raise HostsError("check", f"a host of the self-test went away at {op!r}: {error}") from error
        if not line:
            raise HostsError("check", f"a host of the self-test does not answer to {op!r}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise HostsError("check", str(answer["error"]))
        return answer

    def close(self) -> None:
        process = self._process
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=_TIMEOUT_S)


class CheckBed(contextlib.AbstractContextManager["CheckBed"]):
    """Two hosts and the gate; everything goes when it is left."""

    def __init__(self, lease: loader.Lease) -> None:
        self._lease = lease
        self._stack = contextlib.ExitStack()
        self._attached: dict[tuple[str, str], Attachment] = {}

    def __enter__(self) -> CheckBed:
        for tool in _TOOLS:
            if shutil.which(tool) is None:
                raise HostsError("check", f"the self-test needs {tool}", "apt install iproute2 util-linux ethtool")
        try:
            agent = [sys.executable, "-m", "fairlane_hosts.check.agent"]
            self.sender, self.receiver, middle = (self._child(command) for command in (agent, agent, ["cat"]))
            for child in (self.sender, self.receiver, middle):
                child.wait_for_namespace()
            self._connect(self.sender, middle, "left", _SENDER_MAC, SENDER_ADDRESS, RECEIVER_ADDRESS, _RECEIVER_MAC)
            self._connect(self.receiver, middle, "right", _RECEIVER_MAC, RECEIVER_ADDRESS, SENDER_ADDRESS, _SENDER_MAC)
            sides = [
                apply.run_in_namespace(middle.netns, lambda name=name: open_packet_socket(name))
                for name in ("left", "right")
            ]
            self.gate = Gate(*sides)
            self._stack.callback(self.gate.close)
            self._port: int | None = None
        except BaseException:
            self._stack.close()
            raise
        return self

    def _child(self, command: list[str]) -> Child:
        child = Child(command)
        self._stack.callback(child.close)
        return child

    def _connect(
        self, child: Child, middle: Child, side: str, mac: str, address: str, peer: str, peer_mac: str
    ) -> None:
        veth = ["type", "veth", "peer", "name", "eth0", "netns", str(child.pid)]
        _run(["ip", "link", "add", "name", side, "netns", str(middle.pid), *veth])
        offloads = " ".join(f"{name} off" for name in ("tx", "rx", "tso", "gso", "gro", "sg"))
        child.inside(
            *("sh", "-ec"),
            f"""echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
            ethtool -K eth0 {offloads}
            ip link set dev eth0 address {mac} up
            ip addr add {address}/24 dev eth0
            ip neigh replace {peer} lladdr {peer_mac} dev eth0 nud permanent""",
        )
        disable = "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6"
        middle.inside("sh", "-ec", f"{disable}\nethtool -K {side} {offloads}\nip link set dev {side} up")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for attachment in self._attached.values():
            with contextlib.suppress(HostsError):
                attachment.close()
        self._stack.close()

    def use(self, variant: Variant) -> None:
        """Give the sender a variant and its programs, the receiver's host its own. Raises HostsError."""
        for program in variant.programs:
            self._attach("sender", self.sender, program)
        for program in variant.receiver_programs:
            self._attach("receiver", self.receiver, program)
        if self._port is None:
            self._port = int(self.receiver.ask("listen")["port"])
        apply.use_on_host(variant, self.sender.netns, even_if_failed=True)

    def _attach(self, name: str, child: Child, program: str) -> None:
        if (name, program) not in self._attached:
            host = host_of(f"check-{os.getpid()}/{name}", child.netns)
            self._attached[name, program] = attach(host, [program], self._lease)
            self._port = None  # a listening socket is the older one's

    def counters(self, host: str, program: str) -> dict[str, int]:
        """A program's counters on `sender` or `receiver`."""
        return self._attached[host, program].counters()

    def begin(self, rule: Rule = pass_all) -> None:
        """End the connection that there was, with a reset; the gate's log and numbers begin anew, by this rule."""
        self.gate.open()
        self.sender.ask("close")
        self.gate.wait_quiet(_QUIET_S, _TIMEOUT_S)
        self.gate.begin(rule)

    def connect(self, cc: str | None = None) -> str:
        """A new connection of the sender; returns the congestion control that its socket uses."""
        return str(self.sender.ask("connect", to=RECEIVER_ADDRESS, port=self._port, cc=cc)["cc"])

    def send(self, bytes: int) -> None:
        self.sender.ask("send", bytes=bytes)

    def info(self) -> dict[str, Any]:
        """TCP_INFO of the sender's connection, and `netstat`: its namespace's TcpExt counters."""
        return self.sender.ask("info")

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
