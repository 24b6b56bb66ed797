# SPDX-License-Identifier: Apache-2.0
"""Measures forwarding: fairlane-switch with qthresh.p4 beside a Linux bridge and BMv2 between the same interfaces, memory,
rate of a shaped port, delay.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any

from fairlane_lab.results.statistics import aggregate
from fairlane_switch.switch import PortOptions, Switch
from summary import Run, ratios
from testbed import Bed, bmv2_is_installed, bridge, entries, make_bed, pin, pktgen, resident_mb, start_bmv2, start_ours

BRIDGE, COPY, OURS, BMV2 = "Linux bridge", "bare copy loop", "fairlane-switch", "simple_switch_grpc"
GENERATOR = "the generator alone"
GENERATOR_LIMITS = 0.95
"""A forwarder that passes on so much of what the generator can send is held back by it."""
SPIN_US = 100
SPINNING = f"{OURS} --spin-us {SPIN_US}"
BMV2_AIM, BRIDGE_AIM, COPY_AIM, DELAY_AIM = 12.0, 1.2, 0.85, 2.0
THROUGHPUT_FLOWS = 1_000
DELAY_LOADS = (0.1, 0.5, 0.9)
DRAINED = 65_536
"""Frames in a full ring."""
RSS_AIM_MB = 150.0
RATE_ERROR_AIM = 0.001
RATES_BPS = (1_000_000, 10_000_000, 100_000_000)
FLOWS = (1, 1_000, 65_536)

Forwarder = Callable[[Bed], contextlib.AbstractContextManager[object]]
"""Between the two interfaces of a bed."""


@contextlib.contextmanager
def copy_loop(bed: Bed) -> Generator[None]:
    """Frames copied through packet sockets by a loop that does nothing else."""
    command = [pktgen().with_name("copy_loop"), bed.left, bed.right]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError(f"copy_loop ended with code {process.wait(timeout=10)}")
            pin(process.pid)
            yield
        finally:
            process.terminate()


@contextlib.contextmanager
def fairlane(bed: Bed, flows: int = 0, rate_bps: int = 0, **options: Any) -> Generator[Switch]:
    """fairlane-switch between the two interfaces, with qthresh.p4 on a managed port; `options` are more of `SwitchOptions`."""
    ports = (PortOptions(1, bed.left), PortOptions(2, bed.right, rate_bps=rate_bps, queue_packets=1000))
    with start_ours(ports, entries(flows), **options) as switch:
        pin(switch.process.pid)
        yield switch


def bmv2(bed: Bed) -> contextlib.AbstractContextManager[object]:
    """simple_switch_grpc between the two interfaces, with qthresh.p4 on a managed port."""
    return start_bmv2((bed.left, bed.right), entries(0, max_packets=60))


def forwarders() -> dict[str, Forwarder]:
    """What is measured between the same two interfaces, by name; BMv2 only where it is installed."""
    there: dict[str, Forwarder] = {
        BRIDGE: lambda bed: bridge(bed.left[:-1] + "r", (bed.left, bed.right)),
        COPY: copy_loop,
        OURS: lambda bed: fairlane(bed, flows=THROUGHPUT_FLOWS),
    }
    return there | ({BMV2: bmv2} if bmv2_is_installed() else {})


def pps_through(name: str, forwarder: Forwarder, seconds: float) -> float:
    """Packets a second through a forwarder. Raises RuntimeError when nothing arrives."""
    with make_bed() as bed, forwarder(bed):
        pps = bed.throughput_pps(seconds=seconds, flows=THROUGHPUT_FLOWS)
    if pps == 0:
        raise RuntimeError(f"throughput through {name}: nothing arrived")
    return pps


def throughput(run: Run) -> None:
    """Packets a second through each forwarder, in turns; ratios are of the pairs of one round."""

    def generated() -> float:
        with make_bed() as bed:  # nobody takes what is sent
            pps: float = bed.probe("--from", "pa", "--seconds", run.seconds, "--flows", THROUGHPUT_FLOWS)["sent"]["pps"]
        return pps

    through = {name: partial(pps_through, name, one, run.seconds) for name, one in forwarders().items()}
    samples = run.in_turns({GENERATOR: generated, **through})
    limit = aggregate(samples[GENERATOR]).value
    for name, values in samples.items():
        held_back = name != GENERATOR and aggregate(values).value > GENERATOR_LIMITS * limit
        text = f"{name}{', held back' if held_back else ''}"
        run.row("forwarding of 64-byte frames (held back: by the generator)", text, values, "packets/s")
    for beside, aim in ((COPY, COPY_AIM), (BRIDGE, BRIDGE_AIM), (BMV2, BMV2_AIM)):
        if beside in samples:
            over = f"forwarding of 64-byte frames: {OURS} over another"
            run.row(over, beside, ratios(samples[OURS], samples[beside]), "times", at_least=aim)
    run.raw["throughput_pps"] = samples


def draining(run: Run) -> None:
    """Packets a second out of a ring that was filled while the switch was stopped, without and with a thread that sends, which then
    has the processor that was the generator's."""

    def drained(threads: int) -> float:
        # Not with real-time scheduling: who counts needs a little of a processor.
        options: dict[str, Any] = {"send_threads": threads, "ring_frames": DRAINED, "realtime": "off"}
        with make_bed() as bed, fairlane(bed, flows=THROUGHPUT_FLOWS, **options) as switch:
            pin(switch.process.pid, name="sending", last=False)
            send = ("--from", "pa", "--flows", THROUGHPUT_FLOWS, "--seconds", 10, "--count")
            bed.probe(*send, THROUGHPUT_FLOWS)  # each flow's first packet
            with stopped(switch.process.pid):
                bed.probe(*send, DRAINED - 1)
                before = left(bed)
            return rate_of_sending(bed, before + DRAINED // 5, before + 4 * DRAINED // 5)

    samples = run.in_turns({threads: partial(drained, threads) for threads in (0, 1)})
    group = "draining a full ring"
    for threads, values in samples.items():
        run.row(group, f"--send-threads {threads}", values, "packets/s")
    run.row(group, "--send-threads 1 over 0", ratios(samples[1], samples[0]), "times")
    run.raw["draining_pps"] = {str(threads): values for threads, values in samples.items()}


@contextlib.contextmanager
def stopped(pid: int) -> Generator[None]:
    """A process that does nothing meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def left(bed: Bed) -> int:
    """Frames that left by our right interface so far."""
    return int(Path(f"/sys/class/net/{bed.right}/statistics/tx_packets").read_text())


def rate_of_sending(bed: Bed, first: int, last: int, timeout_s: float = 10.0) -> float:
    """Packets a second between the `first` and the `last` that leave by our right interface. Raises RuntimeError when they do not."""
    seen: list[tuple[float, int]] = []
    end = time.monotonic() + timeout_s
    while not seen or seen[-1][1] < last:
        now, count = time.monotonic(), left(bed)
        if now > end:
            raise RuntimeError(f"only {count} of {last} packets left within {timeout_s} s")
        if count >= first:
            seen.append((now, count))
        time.sleep(0.001)
    (begin, low), (stop, high) = seen[0], seen[-1]
    return (high - low) / (stop - begin)


def memory(run: Run) -> None:
    """Resident memory and packets a second with so many flows, each with its entry, all of them sending."""
    for flows in FLOWS:
        with make_bed() as bed, fairlane(bed, flows=flows) as switch:
            pps = bed.throughput_pps(seconds=run.seconds, flows=flows)
            resident = resident_mb(switch.process.pid)
        run.raw[f"flows_{flows}"] = {"pps": pps, "resident_mb": resident}
        of = f"{flows:,} flow{'s' if flows > 1 else ''}"
        run.row(f"{OURS} with entries for many flows", f"memory, {of}", resident, "MB", below=RSS_AIM_MB)
        run.row(f"{OURS} with entries for many flows", f"forwarding, {of}", pps, "packets/s")


def rates(run: Run) -> None:
    """Rate of a shaped port that always has packets waiting, by the kernel's stamps at the far end."""
    for rate_bps in RATES_BPS:
        with make_bed() as bed, fairlane(bed, rate_bps=rate_bps):
            pps = int(rate_bps / (1000 * 8) * 1.2) + 1
            result = bed.probe("--from", "pa", "--to", "pb", "--seconds", run.seconds, "--length", 1000, "--pps", pps)
        run.raw[f"rate_{rate_bps}"] = result
        if not result["received"]["rate_bps"]:
            raise RuntimeError(f"shaped port, {rate_bps} bit/s: nothing arrived: {result}")
        error = abs(result["received"]["rate_bps"] / rate_bps - 1)
        name = f"{rate_bps / 1e6:.0f} Mbit/s"
        run.row("shaped port: error of the rate", name, 100 * error, "%", below=100 * RATE_ERROR_AIM)


def delays(run: Run) -> None:
    """Delay from the clock before the send to the kernel's stamp at the far end, at parts of each forwarder's own capacity."""
    chosen = {name: forwarder for name, forwarder in forwarders().items() if name in (BRIDGE, COPY, OURS)}
    chosen[SPINNING] = lambda bed: fairlane(bed, flows=THROUGHPUT_FLOWS, spin_us=SPIN_US)
    capacity = {name: pps_through(name, forwarder, run.seconds) for name, forwarder in chosen.items()}

    def delay(load: float, name: str) -> dict[str, float]:
        with make_bed() as bed, chosen[name](bed):
            options = ("--seconds", run.seconds, "--flows", THROUGHPUT_FLOWS, "--pps", int(load * capacity[name]))
            received: dict[str, float] = bed.probe("--from", "pa", "--to", "pb", *options)["received"]
        if not received["frames"]:
            raise RuntimeError(f"delay through {name} at {load:.0%}: nothing arrived: {received}")
        return received

    found = run.in_turns({(load, name): partial(delay, load, name) for load in DELAY_LOADS for name in chosen})
    for load in DELAY_LOADS:
        for part in ("p50", "p99", "p999"):
            values = {name: [one[f"delay_us_{part}"] for one in found[load, name]] for name in chosen}
            where = f"{'p99.9' if part == 'p999' else part} at {load:.0%} of its capacity"
            for name in chosen:
                run.row(f"delay through {name}", where, values[name], "µs")
            if (part, load) == ("p99", 0.5):
                for name, beside, aim in ((OURS, BRIDGE, DELAY_AIM), (SPINNING, BRIDGE, DELAY_AIM), (OURS, COPY, None)):
                    over = f"delay over that of {beside}, {where}"
                    run.row(over, name, ratios(values[name], values[beside]), "times", at_most=aim)
    run.raw["delay"] = {f"{name} {load:.0%}": received for (load, name), received in found.items()}
    run.raw["delay_capacity_pps"] = capacity
