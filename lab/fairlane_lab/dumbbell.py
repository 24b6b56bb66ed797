# SPDX-License-Identifier: Apache-2.0
"""One running dumbbell of paper 000 (Fig. 1) and the measured runs on it: real TCP senders, our switch, our links.

    h1 (Reno)  ─10M,1ms─┐                      10M,1ms
                        s1 ═══ rate, τ ═══ s2 ───────── h3 (discard)
    h2 (Vegas) ─10M,1ms─┘  ▲
                           queue of 50 packets, the rule

`Dumbbell` owns the topology; a control loop of the caller's serves it. `begin` starts the two flows, `wait` waits for
them, `cell` returns what they did as plain data.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from fairlane_controller.loop.control import ask
from fairlane_controller.switch.client import Endpoint
from fairlane_hosts.loader import Lease
from fairlane_hosts.variants import find_variant

from fairlane_lab.measures import fairness, rate_series, true_t_res_s, window_rate_bps
from fairlane_lab.paper import PaperLink
from fairlane_lab.queue_sampler import QueueSampler
from fairlane_lab.results import REPOSITORY, read_lines

sys.path.insert(0, str(REPOSITORY / "mininet"))  # a folder of scripts, never a package: see docs/design.md

import fl_net
import fl_topology
from fl_variants import apply_variants

IP_PACKET_BYTES = 1000
"""Length of the paper's packets at the IP layer."""
ETHERNET_BYTES = 14
TCP_IP_BYTES = 40
MSS_BYTES = IP_PACKET_BYTES - TCP_IP_BYTES
FRAME_BYTES = IP_PACKET_BYTES + ETHERNET_BYTES
ACK_FRAME_BYTES = TCP_IP_BYTES + ETHERNET_BYTES
ACCESS_RATE_BPS = 10_000_000
ACCESS_DELAY_S = 0.001
SINK_PORT = 5001
SENDERS = {"reno": "h1", "vegas": "h2"}
RECEIVER = "h3"
SWITCH, PORT = "s1", 3
"""Where the bottleneck's queue is."""
LEAD_S = 0.8
"""From starting the senders' processes to the first flow's start: time to connect."""
SAMPLE_MS = 50
SERIES_STEP_S = 0.5
STALL_S = 0.5
"""A gap this long between two samples of a sender means that the machine, not the network, held it up."""


class RunError(RuntimeError):
    """A measured run that cannot be trusted; the text says why."""


class StalledError(RunError):
    """This machine stood still for a while during the run: the run says nothing, another may."""


@dataclass(frozen=True)
class RunOptions:
    """One measured run of both flows."""

    scheme: str
    """`drop_tail` or `qthresh`."""
    offset_s: float
    """How much later Vegas starts than Reno; negative when Vegas is first."""
    duration_s: float
    """How long both flows send together."""
    warmup_s: float
    """What of that is not counted."""
    qthresh: int | None = None
    """A fixed threshold in packets; None lets the controller choose."""


@dataclass
class _Running:
    options: RunOptions
    processes: dict[str, subprocess.Popen[bytes]]
    together_ns: int
    """CLOCK_MONOTONIC instant from which both flows send."""
    folder: Path


class Dumbbell:
    """A dumbbell with the bottleneck of `link`."""

    def __init__(
        self,
        link: PaperLink,
        instance: int,
        target: str = "embedded",
        seed: int = 1,
        variants: tuple[str, str] = ("reno", "vegas"),
    ) -> None:
        base = fl_topology.load(REPOSITORY / "mininet" / "topologies" / "dumbbell.json")
        topology = fl_net.with_link(base, "s1-s2", delay_us=round(link.delay_ms * 1000), bandwidth_bps=link.rate_bps)
        self.link = link
        self.variants = dict(zip(SENDERS, variants, strict=True))
        self.network = fl_net.Network(topology, fl_net.NetworkOptions(instance=instance, target=target, seed=seed))
        self._running: _Running | None = None
        self._lease: Lease | None = None

    @property
    def state(self) -> Path:
        """The run-state folder."""
        return self.network.folder

    def start(self) -> None:
        """Start the topology and give every host its TCP variant. Raises RuntimeError when something does not start."""
        self.network.start()
        self._lease = apply_variants(self.network, {SENDERS[flow]: variant for flow, variant in self.variants.items()})

    def shape(self) -> None:
        """Put rates and queues in force on a target that takes them only once its program is loaded (BMv2)."""
        for switch in self.network.switches.values():
            switch.shape(FRAME_BYTES)

    def stop(self) -> None:
        """Remove everything."""
        if self._running is not None:
            self._end_processes(self._running, kill=True)
        self.network.stop()
        if self._lease is not None:
            self._lease.close()
            self._lease = None

    def ask(self, request: dict[str, Any]) -> Any:
        """Ask the control loop (see `fairlane_controller.loop.control`). Raises FairlaneError."""
        return asyncio.run(ask(self.state, request))

    def use_scheme(self, scheme: str, qthresh: int | None = None) -> None:
        """Put a scheme in force at the bottleneck; for `qthresh` a fixed threshold, or None for the controller's own."""
        place = {"switch": SWITCH, "port": PORT, "class": 0}
        if scheme == "drop_tail":
            self.ask({"op": "scheme_set", "scheme": "drop_tail", **place})
        elif qthresh is None:
            self.ask({"op": "threshold_auto", "k": None, "weight": None, **place})
        else:
            self.ask({"op": "threshold_set", "packets": qthresh, "weight": None, **place})

    def begin(self, options: RunOptions, folder: Path) -> None:
        """Start the sink and both senders; they begin at instants that are set now."""
        folder.mkdir(parents=True, exist_ok=True)
        address = fl_topology.ipaddress.ip_interface(self.network.topology.hosts[RECEIVER].ip).ip
        total_s = options.duration_s + abs(options.offset_s)
        ready = folder / "sink.ready"
        ready.unlink(missing_ok=True)
        sink = ["sink", "--port", str(SINK_PORT), "--ready-file", str(ready), "--sample-ms", str(SAMPLE_MS)]
        processes = {"sink": self._traffic(RECEIVER, [*sink, "--out", str(folder / "sink.jsonl")], folder / "sink.log")}
        _wait_for(ready, 10.0)
        first_ns = time.monotonic_ns() + round(LEAD_S * 1e9)
        starts = {"reno": max(0.0, -options.offset_s), "vegas": max(0.0, options.offset_s)}
        for name, host in SENDERS.items():
            arguments = ["send", "--to", f"{address}:{SINK_PORT}", "--cc", self.variants[name], "--mss", str(MSS_BYTES)]
            arguments += [
                "--seconds",
                str(total_s - starts[name]),
                "--start-at",
                str(first_ns + round(starts[name] * 1e9)),
            ]
            arguments += ["--sample-ms", str(SAMPLE_MS), "--out", str(folder / f"{name}.jsonl")]
            processes[name] = self._traffic(host, arguments, folder / f"{name}.log")
        together_ns = first_ns + round(abs(options.offset_s) * 1e9)
        self._running = _Running(options, processes, together_ns, folder)

    def wait(self) -> None:
        """Wait until the senders have ended. Raises RunError when one does not, or broke."""
        assert self._running is not None
        self._end_processes(self._running, kill=False)

    def cell(self, queue: QueueSampler | None = None) -> dict[str, Any]:
        """What the last run gave: goodputs in the common window, series, what the controller measured.

        Raises StalledError, or RunError when a flow used another congestion control or the numbers cannot be true.
        """
        running = self._running
        assert running is not None
        self._running = None
        folder, options = running.folder, running.options
        start_s = running.together_ns / 1e9 + options.warmup_s
        end_s = running.together_ns / 1e9 + options.duration_s
        zero_s = running.together_ns / 1e9 - abs(options.offset_s)
        senders = {name: _Sender.read(folder / f"{name}.jsonl", self.variants[name]) for name in SENDERS}
        gap_s = max(sender.largest_gap_s(start_s, end_s) for sender in senders.values())
        if gap_s > STALL_S:
            raise StalledError(f"{self.link.link}: this machine stood still for {gap_s:.1f} s")
        received = _received(folder / "sink.jsonl")
        flows: dict[str, Any] = {}
        for name, sender in senders.items():
            series = received.get(sender.local)
            if not series:
                raise RunError(f"{self.link.link}: the sink saw nothing of {name} ({sender.local})")
            flows[name] = {
                "goodput_bps": window_rate_bps(series, start_s, end_s),
                "retransmits": sender.retransmits,
                "cc": sender.cc,
                "goodput": [(round(t - zero_s, 3), round(rate)) for t, rate in rate_series(series, SERIES_STEP_S)],
                "cwnd": [(round(t - zero_s, 3), cwnd) for t, cwnd in sender.cwnd],
                "queue": queue.series(sender.local_port, zero_s) if queue else [],
            }
        goodputs = {name: flow["goodput_bps"] for name, flow in flows.items()}
        utilisation = sum(goodputs.values()) * FRAME_BYTES / MSS_BYTES / self.link.rate_bps
        if utilisation > 1.02:
            raise RunError(f"{self.link.link}: utilisation {utilisation:.3f} is above 1: the run is void")
        measured = self.ask({"op": "measure"})
        return {
            "link": self.link.link,
            **asdict(options),
            "fixed_qthresh": options.qthresh,
            "qthresh": self.threshold() if options.scheme == "qthresh" else None,
            "utilisation": utilisation,
            "fairness": fairness(list(goodputs.values())),
            "measured": measured_values(measured),
            "flows": flows,
        }

    def endpoint(self) -> Endpoint:
        """P4Runtime of the bottleneck's switch."""
        return Endpoint(SWITCH, self.network.grpc(SWITCH), self.network.switches[SWITCH].options.device_id)

    def threshold(self) -> int | None:
        """The threshold in force at the bottleneck in packets, as the loop knows it."""
        for row in self.ask({"op": "status"}):
            for policy in row.get("policies", []):
                if row["switch"] == SWITCH and policy["port"] == PORT and policy["class"] == 0:
                    return policy["qthresh_packets"]
        return None

    def true_t_res_s(self) -> float:
        """The true T_res of this dumbbell, from what was configured."""
        delay_s = self.link.delay_ms / 1e3
        return true_t_res_s(self.link.rate_bps, delay_s, FRAME_BYTES, ACK_FRAME_BYTES, ACCESS_RATE_BPS, ACCESS_DELAY_S)

    def _traffic(self, host: str, arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
        pid = self.network.hosts[host].pid
        command = ["mnexec", "-a", str(pid), sys.executable, "-m", "fairlane_hosts.traffic", *arguments]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        self.network.adopt(process.pid, f"traffic {host}")
        return process

    def _end_processes(self, running: _Running, *, kill: bool) -> None:
        deadline = time.monotonic() + 2 * LEAD_S + running.options.duration_s + abs(running.options.offset_s) + 10
        for name in SENDERS:
            process = running.processes[name]
            if kill:
                process.terminate()
            try:
                code = process.wait(timeout=max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=5)
                raise RunError(f"{self.link.link}: the {name} sender did not end in time") from None
            if code != 0 and not kill:
                words = (running.folder / f"{name}.log").read_text(errors="replace").strip()
                raise RunError(f"{self.link.link}: the {name} sender ended with {code}: {words[-500:]}")
        sink = running.processes["sink"]
        sink.terminate()
        sink.wait(timeout=10)


@dataclass(frozen=True)
class _Sender:
    """What a sender's file says of its one flow."""

    local: str
    cc: str
    retransmits: int
    cwnd: list[tuple[float, int]]

    @property
    def local_port(self) -> int:
        return int(self.local.rpartition(":")[2])

    def largest_gap_s(self, start_s: float, end_s: float) -> float:
        """Longest time between two samples inside a window of CLOCK_MONOTONIC seconds; the window's length without samples."""
        times = [t for t, _ in self.cwnd if start_s <= t <= end_s]
        return max((b - a for a, b in pairwise([start_s, *times, end_s])), default=end_s - start_s)

    @classmethod
    def read(cls, path: Path, variant: str) -> _Sender:
        records = read_lines(path)
        summaries = [record["summary"] for record in records if "summary" in record]
        if not summaries:
            raise RunError(f"{path.name}: the sender wrote no summary")
        flow = summaries[0]["flows"][0]
        expected = find_variant(variant).congestion_control
        if flow["cc"] != expected or flow["error"]:
            raise RunError(f"{path.name}: wanted congestion control {expected}, got {flow['cc']} {flow['error']}")
        cwnd = [(record["t_ns"] / 1e9, record["cwnd"]) for record in records if "cwnd" in record]
        return cls(flow["local"], flow["cc"], flow["retrans"], cwnd)


def _received(path: Path) -> dict[str, list[tuple[float, float]]]:
    """(time in s, bytes so far) of each connection, by the sender's address and port."""
    series: dict[str, list[tuple[float, float]]] = {}
    for record in read_lines(path):
        if "bytes" in record and "peer" in record:
            series.setdefault(record["peer"], []).append((record["t_ns"] / 1e9, float(record["bytes"])))
    return series


def measured_values(rows: Any) -> dict[str, float | None]:
    """BW in bit/s, T_res in s, L_D in bytes and N_C of the bottleneck, out of the loop's answer to `measure`."""
    for row in rows:
        if row["switch"] == SWITCH and row["port"] == PORT:
            return {
                key: (row[key]["value"] if row.get(key) else None) for key in ("bw_bps", "t_res_s", "l_d_bytes", "n_c")
            }
    return dict.fromkeys(("bw_bps", "t_res_s", "l_d_bytes", "n_c"))


def _wait_for(path: Path, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not path.exists():
        if time.monotonic() > deadline:
            raise RunError(f"{path.name} did not appear within {timeout_s:g} s")
        time.sleep(0.01)
