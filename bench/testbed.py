# SPDX-License-Identifier: Apache-2.0
"""The test bed of the benchmarks: a probe in a namespace of its own, two veth pairs to whatever forwards between them.

pktgen ── pa ── da ▒ forwarder ▒ db ── pb      (pa and pb in the probe's namespace, da and db in ours)
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import finsy as fy
import psutil
from fairlane_switch.bmv2 import BINARY, Bmv2Options
from fairlane_switch.interfaces import disable_offloads, quiet, run
from fairlane_switch.process import Service, accepts
from fairlane_switch.switch import PortOptions, Switch, SwitchOptions, start_switch

ROOT = Path(__file__).resolve().parent.parent
SWITCH = ROOT / "switch"
COMPILED = ROOT / "p4src" / "compiled"
NETWORK = "10.0.2.0/24"
FLOW_ADDRESSES = {"src": "10.0.1.1", "dst": "10.0.2.2"}
UDP, UDP_PORT = 17, 5000
BATCH = 1000
BMV2_START_S = 30.0


@functools.cache
def build_example(package: str, *names: str, built: str = "") -> Path:
    """Path of the first of these examples of a crate, and the others beside it; the environment variable `built` names one that is built already."""
    if path := os.environ.get(built):
        return Path(path)
    examples = [word for name in names for word in ("--example", name)]
    command = ["cargo", "build", "--release", "--quiet", "--package", package, *examples]
    subprocess.run(command, cwd=SWITCH, check=True, timeout=1800)
    return Path(os.environ.get("CARGO_TARGET_DIR", SWITCH / "target")) / "release" / "examples" / names[0]


def pktgen() -> Path:
    """Path of the generator; `copy_loop` is beside it."""
    return build_example("netio", "pktgen", "copy_loop", built="FAIRLANE_PKTGEN")


def run_example(package: str, name: str, *arguments: str | Path) -> str:
    """What an example of a crate prints. Raises RuntimeError with its own words."""
    return run(build_example(package, name), *arguments, timeout_s=1800)


def free_addresses(count: int) -> list[str]:
    """Addresses on loopback that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]


def pin(pid: int, *, name: str = "", last: bool = True) -> None:
    """All threads of a forwarder, or those of a name, run on the last processor that we may use; the generator has the first."""
    processors = os.sched_getaffinity(0)
    for task in Path(f"/proc/{pid}/task").iterdir():
        if name in ("", (task / "comm").read_text().strip()):
            os.sched_setaffinity(int(task.name), {max(processors) if last else min(processors)})


@dataclass(frozen=True)
class Bed:
    """The probe's namespace and our two interfaces."""

    netns: str
    left: str
    """Our interface behind the one that the generator sends into."""
    right: str
    """Our interface before the one that frames arrive at."""

    def inside(self, *command: str | int | float | Path) -> list[str]:
        """A command line in the probe's namespace."""
        return ["ip", "netns", "exec", self.netns, *map(str, command)]

    def probe_command(self, *arguments: str | int | float) -> list[str]:
        """Command line of the generator in its namespace, on the first processor that it may use."""
        return self.inside("taskset", "-c", min(os.sched_getaffinity(0)), pktgen(), *arguments)

    def probe(self, *arguments: str | int | float, timeout_s: float = 60) -> dict[str, Any]:
        """Run the generator to its end; returns what it printed."""
        result: dict[str, Any] = json.loads(run(*self.probe_command(*arguments), timeout_s=timeout_s))
        return result

    def arrived(self) -> int:
        """Frames that arrived at `pb` so far, by the kernel's count."""
        return int(run(*self.inside("cat", "/sys/class/net/pb/statistics/rx_packets")))

    def throughput_pps(self, *, seconds: float, length: int = 64, flows: int = 1, warm_up_s: float = 0.5) -> float:
        """Frames a second that arrive while the generator sends as many as it can."""
        command = self.probe_command(
            "--from", "pa", "--seconds", seconds + warm_up_s + 1, "--length", length, "--flows", flows
        )
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as generator:
            try:
                time.sleep(warm_up_s)  # not for readiness: the first moments are not measured
                begin, frames = time.monotonic(), self.arrived()
                time.sleep(seconds)
                frames, elapsed = self.arrived() - frames, time.monotonic() - begin
            finally:
                generator.terminate()
                generator.wait(timeout=10)
        return frames / elapsed


@contextlib.contextmanager
def bridge(name: str, interfaces: Iterable[str]) -> Generator[None]:
    """A Linux bridge between interfaces."""
    run("ip", "link", "add", name, "type", "bridge", "stp_state", "0", "forward_delay", "0")
    try:
        quiet(name)
        for interface in interfaces:
            run("ip", "link", "set", interface, "master", name)
        run("ip", "link", "set", name, "up")
        yield
    finally:
        run("ip", "link", "del", name)


@contextlib.contextmanager
def make_bed(mtu: int = 1500) -> Generator[Bed]:
    """Make the namespace and the pairs; take them away at the end."""
    tag = os.getpid() % 100_000
    bed = Bed(f"dv{tag}p", f"dv{tag}a", f"dv{tag}b")
    run("ip", "netns", "add", bed.netns)
    try:
        for scope in ("all", "default"):
            run(*bed.inside("sysctl", "-qw", f"net.ipv6.conf.{scope}.disable_ipv6=1"))
        for ours, theirs in ((bed.left, "pa"), (bed.right, "pb")):
            run("ip", "link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", bed.netns)
            quiet(ours)
            for prefix, name in (((), ours), (bed.inside(), theirs)):
                disable_offloads(name, prefix)
                run(*prefix, "ip", "link", "set", name, "mtu", str(mtu), "up")
        yield bed
    finally:
        # The kernel removes what is in a namespace later: the next bed may have the same names.
        for ours in (bed.left, bed.right):
            subprocess.run(["ip", "link", "del", ours], capture_output=True, timeout=30)
        run("ip", "netns", "del", bed.netns)


def entries(flows: int, port: int = 2, max_packets: int = 900, qthresh: int = 60_000) -> list[fy.P4TableEntry]:
    """Tables of qthresh.p4 for a managed port: every packet takes the whole way (flow, threshold, occupancy)."""
    table = [
        fy.P4TableEntry(
            "ipv4_lpm",
            match=fy.Match({"hdr.ipv4.dst": NETWORK}),
            action=fy.Action("forward", dst_mac=0x080000000202, port=port),
        ),
        fy.P4TableEntry(
            "port_limit",
            match=fy.Match(egress_port=port),
            action=fy.Action(
                "set_port_limit", max_packets=max_packets, max_bytes=0xFFFFFFFF, report_period_us=0, ecn=0
            ),
        ),
        fy.P4TableEntry(
            "policy",
            match=fy.Match(egress_port=port, traffic_class=0),
            action=fy.Action("set_qthresh", qthresh=qthresh, weight=256),
        ),
    ]
    table += [
        fy.P4TableEntry(
            "flow_v4",
            match=fy.Match(**FLOW_ADDRESSES, protocol=UDP, src_port=flow, dst_port=UDP_PORT, vid=0),
            action=fy.Action("set_flow", flow_id=flow),
        )
        for flow in range(flows)
    ]
    return table


def configure(grpc: str, table: list[fy.P4TableEntry], device_id: int = 1, timeout_s: float = 120) -> None:
    """Push qthresh.p4 and the entries to a switch. Raises TimeoutError."""

    async def push() -> None:
        options = fy.SwitchOptions(
            p4info=COMPILED / "qthresh.p4info.txtpb", p4blob=COMPILED / "qthresh.json", device_id=device_id
        )
        async with fy.Switch("bench", grpc, options) as switch:
            for start in range(0, len(table), BATCH):
                await switch.insert(table[start : start + BATCH])

    asyncio.run(asyncio.wait_for(push(), timeout_s))


@contextlib.contextmanager
def start_ours(ports: Sequence[PortOptions], table: list[fy.P4TableEntry], **options: Any) -> Generator[Switch]:
    """fairlane-switch with these ports, qthresh.p4 and entries; `options` are more of `SwitchOptions`."""
    with start_switch(SwitchOptions(ports=ports, **options)) as switch:
        configure(switch.grpc, table)
        yield switch


@contextlib.contextmanager
def start_bmv2(interfaces: Sequence[str], table: list[fy.P4TableEntry]) -> Generator[Bmv2Options]:
    """BMv2 with these interfaces as ports 1, 2, …, qthresh.p4 and entries. Raises RuntimeError when it ends or does not serve in time."""
    grpc, thrift = free_addresses(2)
    has_thrift = "thrift" in subprocess.run([BINARY, "--help"], capture_output=True, text=True, timeout=60).stdout
    options = Bmv2Options(dict(enumerate(interfaces, 1)), grpc, int(thrift.rpartition(":")[2]) if has_thrift else None)
    command = [BINARY, *options.arguments()]
    with Service(BINARY, lambda: command, None, lambda: accepts(grpc, timeout_s=1), BMV2_START_S).start():
        configure(grpc, table)
        yield options


def bmv2_is_installed() -> bool:
    """Whether there is something to compare with."""
    return shutil.which(BINARY) is not None


def resident_mb(pid: int) -> float:
    """Resident memory of a process, MB (10^6 bytes)."""
    return psutil.Process(pid).memory_info().rss / 1e6
