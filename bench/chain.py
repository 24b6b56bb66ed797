# SPDX-License-Identifier: Apache-2.0
"""Measures a path over several switches: all in one process (`fairlane-switch network`), each in its own, and Linux bridges.

Packets a second over three of them, and one TCP flow with its round-trip time over two; the TCP flow is iperf3's.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path

import finsy as fy
from fairlane_switch.interfaces import disable_offloads, quiet, receive_on, run
from fairlane_switch.process import find_binary, start_process
from summary import Run, ratios
from testbed import Bed, bridge, configure, entries, free_addresses, make_bed

ONE, EACH, BRIDGES = "switches in one process", "a process for each switch", "Linux bridges"
SWITCHES, FLOWS = 3, 1_000
PACKETS_AIM, TCP_AIM, RTT_AIM = 2.0, 0.9, 2.0
TCP_SWITCHES = 2
SENDER, RECEIVER = "10.0.1.1", "10.0.2.2"
MACS = {"pa": "08:00:00:00:01:01", "pb": "08:00:00:00:02:02"}

Ports = Sequence[tuple[str, str]]
"""Of each switch: the interfaces of its ports 1 and 2."""
Forwarders = Callable[[Bed, int], AbstractContextManager[None]]


@contextlib.contextmanager
def pairs(bed: Bed, switches: int) -> Generator[Ports]:
    """A veth pair between each two neighbours."""
    ends = [(f"{bed.left[:-1]}{i}l", f"{bed.left[:-1]}{i}r") for i in range(1, switches)]
    try:
        for pair in ends:
            run("ip", "link", "add", pair[0], "type", "veth", "peer", "name", pair[1])
            for name in pair:
                quiet(name)
                disable_offloads(name)
                run("ip", "link", "set", name, "up")
        names = [bed.left, *(name for pair in ends for name in pair), bed.right]
        yield list(zip(names[::2], names[1::2], strict=True))
    finally:
        for left, _ in ends:
            subprocess.run(["ip", "link", "del", left], capture_output=True, timeout=30)


def routes() -> list[fy.P4TableEntry]:
    """Both ways for TCP, and the flows of the generator on a managed port."""
    back = fy.P4TableEntry(
        "ipv4_lpm",
        match=fy.Match({"hdr.ipv4.dst": f"{SENDER}/32"}),
        action=fy.Action("forward", dst_mac=int(MACS["pa"].replace(":", ""), 16), port=1),
    )
    return [back, *entries(FLOWS)]


def packet_cpu() -> int:
    """The processor of the packet thread, as the launcher chooses it for one network; the hosts receive on the others."""
    return max(os.sched_getaffinity(0))


@contextlib.contextmanager
def started(command: Sequence[str | Path], addresses: Sequence[str]) -> Generator[None]:
    """A process that serves these switches, with their programs."""
    with start_process(command, timeout_s=30):
        for address in addresses:
            configure(address, routes())
        yield


def arguments(address: str, left: str, right: str) -> list[str]:
    """Of one switch."""
    return ["--grpc", address, "-i", f"1@{left}", "-i", f"2@{right}"]


@contextlib.contextmanager
def one_process(bed: Bed, switches: int) -> Generator[None]:
    """All switches in one process; only the outer interfaces carry frames."""
    addresses = free_addresses(switches)
    with pairs(bed, switches) as ports, tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "network.json")
        nodes = [
            {"name": f"s{i}", "arguments": arguments(address, *port)}
            for i, (address, port) in enumerate(zip(addresses, ports, strict=True))
        ]
        links = [
            {"name": f"s{i}-s{i + 1}", "a": {"switch": f"s{i}", "port": 2}, "b": {"switch": f"s{i + 1}", "port": 1}}
            for i in range(switches - 1)
        ]
        config.write_text(json.dumps({"switches": nodes, "links": links}))
        binary = find_binary("fairlane-switch")
        command = [binary, "network", "--config", config, "--control", Path(folder, "socket")]
        command += ["--cpu", str(packet_cpu())]
        with started(command, addresses):
            yield


@contextlib.contextmanager
def process_each(bed: Bed, switches: int) -> Generator[None]:
    """A process for each switch."""
    with pairs(bed, switches) as ports, ExitStack() as stack:
        for address, port in zip(free_addresses(switches), ports, strict=True):
            stack.enter_context(started([find_binary("fairlane-switch"), *arguments(address, *port)], [address]))
        yield


@contextlib.contextmanager
def bridges(bed: Bed, switches: int) -> Generator[None]:
    """A Linux bridge for each switch."""
    with pairs(bed, switches) as ports, ExitStack() as stack:
        for i, interfaces in enumerate(ports):
            stack.enter_context(bridge(f"{bed.left[:-1]}b{i}", interfaces))
        yield


PATHS: dict[str, Forwarders] = {ONE: one_process, EACH: process_each, BRIDGES: bridges}


def throughput(table: Run) -> None:
    """Packets a second over three in a row, in turns; ratios are of the pairs of one round."""

    def through(name: str) -> float:
        with make_bed() as bed, PATHS[name](bed, SWITCHES):
            pps = bed.throughput_pps(seconds=table.seconds, flows=FLOWS)
        if pps == 0:
            raise RuntimeError(f"{SWITCHES} {name}: nothing arrived")
        return pps

    samples = table.in_turns({name: partial(through, name) for name in PATHS})
    group = f"{SWITCHES} switches in a row, 64-byte frames"
    for name, values in samples.items():
        table.row(group, name, values, "packets/s")
    for beside, aim in ((EACH, PACKETS_AIM), (BRIDGES, None)):
        over = f"{group}: {ONE} over another"
        table.row(over, beside, ratios(samples[ONE], samples[beside]), "times", at_least=aim)
    table.raw["chain_pps"] = samples


@contextlib.contextmanager
def receiver(bed: Bed) -> Generator[str]:
    """Moves `pb` into a namespace of its own and gives both hosts addresses; returns that namespace."""
    far = f"{bed.netns}r"
    run("ip", "netns", "add", far)
    try:
        run("ip", "-n", bed.netns, "link", "set", "pb", "netns", far)
        ends = ((bed.netns, "pa", SENDER, RECEIVER, "pb"), (far, "pb", RECEIVER, SENDER, "pa"))
        for netns, name, address, peer, there in ends:
            run("ip", "netns", "exec", netns, "sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=1")
            run("ip", "-n", netns, "link", "set", name, "address", MACS[name], "up")
            run("ip", "-n", netns, "address", "add", f"{address}/16", "dev", name)
            run("ip", "-n", netns, "neigh", "add", peer, "lladdr", MACS[there], "dev", name)
            run("ip", "netns", "exec", netns, *receive_on(os.sched_getaffinity(0) - {packet_cpu()}, name))
        yield far
    finally:
        run("ip", "netns", "del", far)


def tcp_flow(bed: Bed, far: str, seconds: float) -> tuple[float, float]:
    """One greedy flow: bit/s of its receiver, and its mean round-trip time in ms."""
    server = ["ip", "netns", "exec", far, "iperf3", "--server", "--one-off", "--forceflush"]
    with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stdout or ():
                if "listening" in line:
                    break
            client = bed.inside("iperf3", "--client", RECEIVER, "--time", int(seconds))
            end = json.loads(run(*client, "--omit", "1", "--json", timeout_s=seconds + 30))["end"]
        finally:
            process.terminate()
            process.wait(timeout=10)
    return end["sum_received"]["bits_per_second"], end["streams"][0]["sender"]["mean_rtt"] / 1000


def tcp(table: Run) -> None:
    """One TCP flow over two, in turns; offloads are off."""
    if shutil.which("iperf3") is None:
        return

    def flow(name: str) -> tuple[float, float]:
        with make_bed() as bed, receiver(bed) as far, PATHS[name](bed, TCP_SWITCHES):
            return tcp_flow(bed, far, table.seconds)

    found = table.in_turns({name: partial(flow, name) for name in PATHS})
    rates = {name: [rate / 1e9 for rate, _ in flows] for name, flows in found.items()}
    times = {name: [rtt for _, rtt in flows] for name, flows in found.items()}
    group = f"one TCP flow over {TCP_SWITCHES} switches"
    for name, values in rates.items():
        table.row(group, name, values, "Gbit/s")
    for name, values in times.items():
        table.row(f"{group}: its round-trip time", name, values, "ms")
    over = f"{group}: {ONE} over {BRIDGES}"
    table.row(over, "throughput", ratios(rates[ONE], rates[BRIDGES]), "times", at_least=TCP_AIM)
    table.row(over, "round-trip time", ratios(times[ONE], times[BRIDGES]), "times", at_most=RTT_AIM)
    table.raw |= {"chain_tcp_gbps": rates, "chain_tcp_rtt_ms": times}
