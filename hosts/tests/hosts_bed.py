# SPDX-License-Identifier: Apache-2.0
"""A bottleneck in network namespaces for the tests: senders, a router with a token bucket, a receiver.

    s0 --.
          router --[rate, queue]-- sink        10.99.i.1 -- 10.99.i.254,  10.99.200.254 -- 10.99.200.1
    s1 --'

The bottleneck is at the next hop: on the sender's own interface TSQ would hide it. There is no delay but the queue's.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

PACKET_BYTES = 1000
_counter = itertools.count()
HOSTS_ROOT = Path(__file__).resolve().parents[1]


def run(*command: str, timeout_s: float = 20) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr or done.stdout}"
    return done.stdout


def wait_until(condition: object, timeout_s: float, what: str) -> None:
    assert callable(condition)
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"timed out after {timeout_s} s: {what}"
        time.sleep(0.02)


def do_nothing(*_: object) -> None:
    """Stands for what a killed process does not come to do."""


@dataclass
class Bed:
    """Namespace names by role; `start` runs the traffic tool in one of them."""

    senders: list[str]
    router: str
    sink: str
    sink_address: str = "10.99.200.1"

    def netns(self, name: str) -> Path:
        return Path("/run/netns") / name

    def start(self, netns: str, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["ip", "netns", "exec", netns, sys.executable, "-m", "fairlane_hosts.traffic", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(HOSTS_ROOT)},
        )

    def start_sink(self, directory: Path, *arguments: str, port: int = 5001) -> subprocess.Popen[str]:
        ready = directory / f"sink{port}.ready"
        ready.unlink(missing_ok=True)
        process = self.start(self.sink, "sink", "--port", str(port), "--ready-file", str(ready), *arguments)
        wait_until(lambda: ready.exists() or process.poll() is not None, 10, "the sink to listen")
        assert process.poll() is None, process.stderr and process.stderr.read()
        return process


def finish(process: subprocess.Popen[str], timeout_s: float, code: int = 0) -> str:
    """Wait for a process that must end with `code`; returns its standard output."""
    try:
        out, error = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate(timeout=5)
        raise
    assert process.returncode == code, error
    return out


def _connect(a: str, a_if: str, a_address: str, b: str, b_if: str, b_address: str) -> None:
    run("ip", "-n", a, "link", "add", a_if, "type", "veth", "peer", "name", b_if, "netns", b)
    for netns, interface, address in ((a, a_if, a_address), (b, b_if, b_address)):
        run("ip", "-n", netns, "addr", "add", f"{address}/24", "dev", interface)
        features = [word for name in ("tx", "rx", "tso", "gso", "gro", "sg") for word in (name, "off")]
        run("ip", "netns", "exec", netns, "ethtool", "-K", interface, *features)
        run("ip", "-n", netns, "link", "set", interface, "up")


@contextlib.contextmanager
def bed(senders: int = 1, rate_bps: int = 2_000_000, queue_packets: int = 50) -> Generator[Bed]:
    """Build it, and take away exactly what was built."""
    prefix = f"hs{os.getpid() % 100000}x{next(_counter)}"
    made = Bed([f"{prefix}s{i}" for i in range(senders)], f"{prefix}r", f"{prefix}d")
    names = [*made.senders, made.router, made.sink]
    created = list[str]()
    try:
        for name in names:
            run("ip", "netns", "add", name)
            created.append(name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for index, name in enumerate(made.senders):
            _connect(name, "eth0", f"10.99.{index}.1", made.router, f"in{index}", f"10.99.{index}.254")
            run("ip", "-n", name, "route", "add", "default", "via", f"10.99.{index}.254")
        _connect(made.sink, "eth0", "10.99.200.1", made.router, "out", "10.99.200.254")
        run("ip", "-n", made.sink, "route", "add", "default", "via", "10.99.200.254")
        run("ip", "netns", "exec", made.router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        limit = (PACKET_BYTES + 14) * queue_packets
        shape = ["rate", f"{rate_bps}bit", "burst", "1600", "limit", str(limit)]
        run("tc", "-n", made.router, "qdisc", "add", "dev", "out", "root", "tbf", *shape)
        yield made
    finally:
        for name in created:
            run("ip", "netns", "del", name)
