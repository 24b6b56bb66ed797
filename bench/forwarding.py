# SPDX-License-Identifier: Apache-2.0
"""Measures forwarding: fairlane-switch with qthresh.p4 beside a Linux bridge and BMv2 between the same interfaces, memory,
rate of a shaped port, delay.

Prints one JSON object: `{"rows": [{"name", "value", "unit", "aim", "ok"}...], "raw": {...}}`. Root is needed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from bmv2 import is_installed, start_bmv2
from fairlane_switch.switch import PortOptions, Switch, SwitchOptions, start_switch
from testbed import Bed, build_pktgen, configure, entries, make_bed, resident_mb, run

BMV2_AIM, BRIDGE_AIM = 12.0, 0.8
RSS_AIM_MB = 150.0
RATE_ERROR_AIM = 0.001
RATES_BPS = (1_000_000, 10_000_000, 100_000_000)
FLOWS = (1, 1_000, 65_536)


@contextlib.contextmanager
def bridge(bed: Bed) -> Generator[None]:
    """A Linux bridge between the two interfaces."""
    name = bed.left[:-1] + "r"
    run("ip", "link", "add", name, "type", "bridge", "stp_state", "0", "forward_delay", "0")
    try:
        Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
        for interface in (bed.left, bed.right):
            run("ip", "link", "set", interface, "master", name)
        run("ip", "link", "set", name, "up")
        yield
    finally:
        run("ip", "link", "del", name)


@contextlib.contextmanager
def fairlane(bed: Bed, flows: int = 0, rate_bps: int = 0) -> Generator[Switch]:
    """fairlane-switch between the two interfaces, with qthresh.p4 on a managed port."""
    ports = (PortOptions(1, bed.left), PortOptions(2, bed.right, rate_bps=rate_bps, queue_packets=1000))
    with start_switch(SwitchOptions(ports=ports)) as switch:
        configure(switch.grpc, entries(flows))
        yield switch


@contextlib.contextmanager
def bmv2(bed: Bed) -> Generator[None]:
    """simple_switch_grpc between the two interfaces, with qthresh.p4 on a managed port."""
    with start_bmv2((bed.left, bed.right)) as switch:
        configure(switch.grpc, entries(0, max_packets=60))
        yield


def row(name: str, value: float, unit: str, aim: str = "", ok: bool = True) -> dict[str, Any]:
    """A line of the benchmark's table."""
    return {"name": name, "value": round(value, 4), "unit": unit, "aim": aim, "ok": ok}


def throughput(pktgen: Path, seconds: float, rounds: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Packets a second through each forwarder, in turns; the best round of each counts: a disturbance only slows."""
    forwarders: dict[str, Callable[[Bed], contextlib.AbstractContextManager[object]]] = {
        "Linux bridge": bridge,
        "fairlane-switch": fairlane,
    }
    if is_installed():
        forwarders["simple_switch_grpc"] = bmv2
    samples: dict[str, list[float]] = {name: [] for name in forwarders}
    for _ in range(rounds):
        for name, forwarder in forwarders.items():
            with make_bed(pktgen) as bed, forwarder(bed):
                samples[name].append(bed.throughput_pps(seconds=seconds))
            if samples[name][-1] == 0:
                raise RuntimeError(f"throughput through {name}: nothing arrived")
    best = {name: max(values) for name, values in samples.items()}
    rows = [row(f"forwarding, 64 bytes: {name}", pps, "packets/s") for name, pps in best.items()]
    ours = best["fairlane-switch"]
    ratio = ours / best["Linux bridge"]
    rows.append(row("fairlane-switch beside a Linux bridge", ratio, "times", f">= {BRIDGE_AIM}", ratio >= BRIDGE_AIM))
    if "simple_switch_grpc" in best:
        ratio = ours / best["simple_switch_grpc"]
        rows.append(row("fairlane-switch beside BMv2", ratio, "times", f">= {BMV2_AIM:.0f}", ratio >= BMV2_AIM))
    return rows, {"throughput_pps": samples}


def memory(pktgen: Path, seconds: float) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Resident memory and packets a second with so many flows, each with its entry, all of them sending."""
    rows: list[dict[str, Any]] = []
    raw: dict[str, Any] = {}
    for flows in FLOWS:
        with make_bed(pktgen) as bed, fairlane(bed, flows=flows) as switch:
            pps = bed.throughput_pps(seconds=seconds, flows=flows)
            resident = resident_mb(switch.process.pid)
        raw[f"flows_{flows}"] = {"pps": pps, "resident_mb": resident}
        of = f"{flows} flow{'s' if flows > 1 else ''}"
        rows.append(row(f"memory, {of}", resident, "MB", f"< {RSS_AIM_MB:.0f}", resident < RSS_AIM_MB))
        rows.append(row(f"forwarding, {of}", pps, "packets/s"))
    return rows, raw


def rates(pktgen: Path, seconds: float) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rate of a shaped port that always has packets waiting, by the kernel's stamps at the far end."""
    rows: list[dict[str, Any]] = []
    raw: dict[str, Any] = {}
    for rate_bps in RATES_BPS:
        with make_bed(pktgen) as bed, fairlane(bed, rate_bps=rate_bps):
            pps = int(rate_bps / (1000 * 8) * 1.2) + 1
            result = bed.probe("--from", "pa", "--to", "pb", "--seconds", seconds, "--length", 1000, "--pps", pps)
        raw[f"rate_{rate_bps}"] = result
        if not result["received"]["rate_bps"]:
            raise RuntimeError(f"shaped port, {rate_bps} bit/s: nothing arrived: {result}")
        error = abs(result["received"]["rate_bps"] / rate_bps - 1)
        name = f"shaped port, {rate_bps / 1e6:.0f} Mbit/s: error of the rate"
        rows.append(row(name, 100 * error, "%", f"< {100 * RATE_ERROR_AIM}", error < RATE_ERROR_AIM))
    return rows, raw


def delays(pktgen: Path, seconds: float) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Delay from the clock before the send to the kernel's stamp at the far end, 1,000 packets a second."""
    rows: list[dict[str, Any]] = []
    raw: dict[str, Any] = {}
    forwarders: dict[str, Callable[[Bed], contextlib.AbstractContextManager[object]]] = {
        "Linux bridge": bridge,
        "fairlane-switch": fairlane,
    }
    for name, forwarder in forwarders.items():
        with make_bed(pktgen) as bed, forwarder(bed):
            result = bed.probe("--from", "pa", "--to", "pb", "--seconds", seconds, "--pps", 1000)
        raw[f"delay_{name}"] = result
        if not result["received"]["frames"]:
            raise RuntimeError(f"delay through {name}: nothing arrived: {result}")
        for part in ("p50", "p99"):
            rows.append(row(f"delay through {name}, {part}", result["received"][f"delay_us_{part}"], "µs"))
    return rows, raw


def bench(seconds: float = 3.0, rounds: int = 3, only: str = "") -> dict[str, Any]:
    """All measurements; see the module's text for the form of the result."""
    pktgen = build_pktgen()
    parts: dict[str, Callable[[], tuple[list[dict[str, Any]], dict[str, Any]]]] = {
        "throughput": lambda: throughput(pktgen, seconds, rounds),
        "memory": lambda: memory(pktgen, seconds),
        "rates": lambda: rates(pktgen, seconds),
        "delays": lambda: delays(pktgen, seconds),
    }
    rows: list[dict[str, Any]] = []
    raw: dict[str, Any] = {}
    for name, part in parts.items():
        if only in ("", name):
            part_rows, part_raw = part()
            rows += part_rows
            raw |= part_raw
    return {"rows": rows, "raw": raw}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Measures forwarding; prints JSON.")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the comparison; the best of each counts")
    parser.add_argument("--only", choices=["throughput", "memory", "rates", "delays"], default="", help="one part only")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench/forwarding.py: network namespaces need root")
    result = bench(arguments.seconds, arguments.rounds, arguments.only)
    print(json.dumps(result, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
