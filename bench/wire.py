# SPDX-License-Identifier: Apache-2.0
"""Measures the wire: how exact its delays are, on the machine as it is and on a busy one, and how many frames a second it moves.

    probe ── pa ── wa ▒wire▒ wb ── pb ── probe      (the probe in one namespace, the wire in another)

Delay: kernel stamp at `pb` less the clock before the send into `pa`, less the link's delay. Prints one JSON object:
`{"rows": [what summary.row makes...], "raw": {...}}`. Root is needed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

from fairlane_switch.process import find_binary
from fairlane_switch.wire import LinkOptions, WireLink, start_wire
from summary import row

SWITCH = Path(__file__).resolve().parent.parent / "switch"
OFFLOADS = ("rx", "tx", "sg", "tso", "gso", "gro", "rxvlan", "txvlan")
DELAYS_US = (5_000, 100_000)
DELAY_ERROR_AIM_US = 100.0
THROUGHPUT_AIM_PPS = 200_000
PROBE_PPS = 1_000


def run(*command: str | Path, timeout_s: float = 60) -> str:
    """Run a command that must succeed; returns its output. Raises RuntimeError with its own words."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout_s)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def build_probe() -> Path:
    """Path of the probe, an example of the crate `wire`; `$FAIRLANE_WIRE_PROBE` names one that is built already."""
    named = os.environ.get("FAIRLANE_WIRE_PROBE")
    if named:
        return Path(named)
    command = ["cargo", "build", "--release", "--quiet", "--package", "wire", "--example", "wire_probe"]
    subprocess.run(command, cwd=SWITCH, check=True, timeout=900)
    target = Path(os.environ.get("CARGO_TARGET_DIR", SWITCH / "target"))
    return target / "release" / "examples" / "wire_probe"


@contextlib.contextmanager
def namespaces() -> Generator[tuple[str, str]]:
    """The probe's and the wire's namespace, with the two veth pairs between them."""
    probe, wire = f"wr{os.getpid()}p", f"wr{os.getpid()}w"
    made: list[str] = []
    try:
        for name in (probe, wire):
            run("ip", "netns", "add", name)
            made.append(name)
            for scope in ("all", "default"):
                run("ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv6.conf.{scope}.disable_ipv6=1")
        for end in "ab":
            run("ip", "-n", probe, "link", "add", f"p{end}", "type", "veth", "peer", "name", f"w{end}", "netns", wire)
            for netns, name in ((probe, f"p{end}"), (wire, f"w{end}")):
                for feature in OFFLOADS:
                    off = ["ip", "netns", "exec", netns, "ethtool", "-K", name, feature, "off"]
                    subprocess.run(off, capture_output=True, timeout=30)
                run("ip", "-n", netns, "link", "set", name, "up")
        yield probe, wire
    finally:
        for name in made:
            run("ip", "netns", "del", name)


@contextlib.contextmanager
def busy_machine() -> Generator[None]:
    """As many processes that only compute as there are processors, at ordinary priority."""
    command = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait(timeout=10)


def cpu_ns(pid: int) -> int:
    """Time that a process has run, ns, the kernel's work for it included."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def measure(probe: Path, *, delay_us: int, rate_pps: int, seconds: float, busy: bool) -> dict[str, Any]:
    """One run of the probe over a link of `delay_us`; adds the wire's own counts as `wire`."""
    options = LinkOptions(delay_us=delay_us)
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as folder, namespaces() as (probe_ns, wire_ns):
        link = WireLink("a-b", "wa", "wb", options, options)
        with start_wire([link], folder=Path(folder), netns=wire_ns) as wire:
            command = ["ip", "netns", "exec", probe_ns, probe, "--from", "pa", "--to", "pb"]
            command += ["--delay-us", str(delay_us), "--rate-pps", str(rate_pps), "--seconds", str(seconds)]
            with busy_machine() if busy else contextlib.nullcontext():
                before = cpu_ns(wire.process.pid)
                result: dict[str, Any] = json.loads(run(*command, timeout_s=seconds + 30))
                used = cpu_ns(wire.process.pid) - before
            stats = wire.client.stats()["a-b"]
    result["wire"] = {
        "cpu_ns_per_frame": used / max(1, result["received"]),
        "late_us_p99": stats.a_to_b.late_us_p99,
        "dropped_ring_full": stats.a.dropped_ring_full,
        "dropped_unsent": stats.a_to_b.dropped_unsent,
    }
    return result


def bench(seconds: float = 5.0) -> dict[str, Any]:
    """All measurements, each of `seconds`; see the module's text for the form of the result."""
    find_binary("fairlane-switch")
    probe = build_probe()
    rows: list[dict[str, Any]] = []
    raw: dict[str, Any] = {}
    for busy in (False, True):
        machine = "busy machine" if busy else "machine as it is"
        for delay_us in DELAYS_US:
            name = f"wire, {delay_us // 1000} ms link, {machine}"
            result = measure(probe, delay_us=delay_us, rate_pps=PROBE_PPS, seconds=seconds, busy=busy)
            raw[name] = result
            if result["received"] != result["sent"]:
                raise RuntimeError(f"{name}: {result['sent'] - result['received']} of {result['sent']} frames lost")
            rows.append(row(name, "delay error p50", result["delay_error_us_p50"], "µs"))
            rows.append(row(name, "delay error p99", result["delay_error_us_p99"], "µs", below=DELAY_ERROR_AIM_US))
    name = "wire, 5 ms link, 64-byte frames as fast as the probe sends"
    result = measure(probe, delay_us=5_000, rate_pps=0, seconds=seconds, busy=False)
    raw[name] = result
    rows.append(row(name, "throughput", result["received_pps"], "packets/s", at_least=THROUGHPUT_AIM_PPS))
    rows.append(row(name, "processor time a frame", result["wire"]["cpu_ns_per_frame"], "ns"))
    rows.append(row(name, "frames lost to overload", 100 * (1 - result["received"] / result["sent"]), "%"))
    return {"rows": rows, "raw": raw}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Measures the link emulator; prints JSON.")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each of the five measurements")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench/wire.py: network namespaces need root")
    print(json.dumps(bench(arguments.seconds), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
