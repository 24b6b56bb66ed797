# SPDX-License-Identifier: Apache-2.0
"""A run's result out of the files that its processes left: from made-up files, without a network."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fairlane_lab.programs import find_part
from fairlane_lab.results.rows import run_metrics
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.scenario import App, Control, Flow, Scenario
from fairlane_lab.testbed.bed import Bed, Running
from fairlane_lab.testbed.captures import Captures
from fairlane_lab.testbed.collect import VoidError, collect
from fairlane_lab.testbed.plan import make_plan
from fairlane_lab.testbed.port_watch import PERIOD_S, Standstills, Watched
from fairlane_topology import topology as fl_topology

ZERO_S = 1000.0
RENO = Flow("reno", "reno", "h1", "h3")
WEB = Flow("web", "short", "h2", "h3", app=App("web", arrivals_per_s=1, mean_bytes=1000))
KEY = ("s1", 3)


@dataclass
class FakeBed:
    """As much of a bed as `collect` looks at."""

    state: Path
    ports: dict[tuple[str, int], Any] = field(
        default_factory=lambda: {KEY: fl_topology.PortSpec(rate_bps=1_000_000, queue_packets=50)}
    )
    part = find_part("qthresh")

    @property
    def network(self) -> SimpleNamespace:
        ports: dict[str, dict[int, Any]] = {}
        for (switch, port), spec in self.ports.items():
            ports.setdefault(switch, {})[port] = spec
        return SimpleNamespace(topology=SimpleNamespace(ports=ports))


@dataclass
class Made:
    """A run of 10 s, measured from `warmup_s` on: Reno at `goodput_bps`, windows and counters as given."""

    folder: Path
    flows: tuple[Flow, ...] = (RENO,)
    goodput_bps: float = 900_000
    cc: str = "fl_reno"
    error: str = ""
    late_s: float = 0.0
    warmup_s: float = 2.0
    standstills: Sequence[tuple[float, str, float]] = ()
    """Instants of the run's own time."""
    tx_bps: float = 990_000
    changes: tuple[tuple[float, tuple[str, int], int], ...] = ()
    series: bool = True
    rate: Any = 1_000_000
    web_ports: tuple[int, int] = (5000, 5001)
    waiting: bool = True
    """Whether the registers of the queue could be read."""

    def write(self, name: str, records: list[dict[str, Any]]) -> None:
        (self.folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))

    def collect(self) -> RunResult:
        scenario = Scenario(
            "t", "p", {}, {}, self.flows, 10.0, self.warmup_s, control=Control("qthresh", "auto"), series=self.series
        )
        plan = make_plan(scenario, {"h1": "10.0.1.1", "h2": "10.0.2.2", "h3": "10.0.3.3"}, self.folder)
        running = Running(plan, round(ZERO_S * 1e9), {}, self.folder, {}, {KEY: 6}, Captures(self.folder, {}))
        times = [t / 10 for t in range(102)]
        samples = [
            {"t_ns": round((ZERO_S + t) * 1e9), "flow": 0, "cwnd": 10 if t < 2 else 4, "ssthresh": 2**31 - 1}
            | {"srtt_us": 20_000, "retrans": int(t), "timeouts": int(t // 5)}
            for t in times
        ]
        row = {"flow": 0, "local": "10.0.1.1:4000", "cc": self.cc, "error": self.error}
        summary = {"late_ns": round(self.late_s * 1e9), "flows": [row]}
        self.write("reno.jsonl", [*samples, {"summary": summary}])
        received = [
            {"t_ns": round((ZERO_S + t) * 1e9), "peer": "10.0.1.1:4000", "bytes": self.goodput_bps * t / 8}
            for t in times
        ]
        if WEB in self.flows:
            transfers = [
                {"flow": 0, "start_ns": round((ZERO_S + t) * 1e9), "end_ns": round((ZERO_S + t + 0.3) * 1e9)}
                | {"bytes": 1000, "retransmits": 1, "srtt_us": 30_000}
                for t in (1.0, 5.0)
            ]
            peers = [{"flow": 0, "local": f"10.0.2.2:{port}"} for port in self.web_ports]
            end = {"summary": {"late_ns": 0, "flows": [], "peers": peers}}
            self.write("web.jsonl", [*({"transfer": transfer} for transfer in transfers), end])
            for port, t in zip(self.web_ports, (1.0, 5.0), strict=True):
                for at, count in ((t, 0), (t + 0.3, 1000)):
                    received.append({"t_ns": round((ZERO_S + at) * 1e9), "peer": f"10.0.2.2:{port}", "bytes": count})
        self.write("sink-h3-5001.jsonl", received)
        events = [
            {"event": "threshold", "t": -5.0, "switch": "s1", "port": 3, "qthresh_packets": 99},
            {"event": "threshold", "t": 6.0, "switch": "s1", "port": 3, "qthresh_packets": 8},
            {"event": "threshold", "t": 7.0, "switch": "s1", "port": 4, "qthresh_packets": 50},
        ]
        stamped = [{**event, "monotonic_ns": round((ZERO_S + cast("float", event["t"])) * 1e9)} for event in events]
        self.write("controller-events.jsonl", stamped)
        watched = Watched()
        watched.standstills = [(ZERO_S + t, what, seconds) for t, what, seconds in self.standstills]
        watched.tx_bytes[KEY] = [(ZERO_S + t, self.tx_bps * t / 8) for t in (0.0, 5.0, 10.2)]
        watched.drops[KEY] = [(ZERO_S + t, 10.0 * t) for t in (0.0, 5.0, 10.2)]
        if self.waiting:
            watched.waiting[KEY] = [(ZERO_S + t, 20.0 if t < 2 else 5.0) for t in times]
        watched.flows["10.0.1.1", 4000, 5001] = [(ZERO_S + 3.0, 2.0)]
        estimates: dict[str, float | None] = {"bw_bps": 1e6, "t_res_ms": 7.0, "l_d_bytes": 1014.0, "n_c": None}
        watched.measured[KEY] = [(ZERO_S + 4.0, estimates)]
        ports: dict[tuple[str, int], Any] = {
            KEY: fl_topology.PortSpec.model_validate({"rate": self.rate, "queue_packets": 50})
        }
        return collect(cast("Bed", FakeBed(self.folder, ports)), running, watched, list(self.changes))


def test_only_the_window_counts(tmp_path: Path) -> None:
    result = Made(tmp_path).collect()
    (flow,) = result.flows
    assert (flow.flow, flow.variant, flow.greedy) == ("reno", "reno", True)
    assert flow.goodput_bps == pytest.approx(900_000)
    assert (flow.retransmits, flow.timeouts) == (8, 2)
    assert (flow.cwnd_packets, flow.srtt_ms) == (4.0, 20.0)
    (port,) = result.ports
    assert port.throughput_bps == pytest.approx(990_000)
    assert port.utilisation == pytest.approx(0.99)
    assert (port.drops, port.queue_packets) == (80, 5.0)
    assert port.values["qthresh_packets"] == pytest.approx((4 * 6 + 4 * 8) / 8)
    assert tuple(port.values[name] for name in ("bw_bps", "t_res_ms", "n_c")) == (1e6, 7.0, None)


def test_series_are_in_the_run_s_own_time(tmp_path: Path) -> None:
    found = Made(tmp_path).collect()
    metrics = {point.metric for point in found.series}
    assert metrics == {"goodput_bps", "cwnd_packets", "srtt_ms", "queue_packets", "throughput_bps", "qthresh_packets", "bw_bps", "t_res_ms"}  # fmt: skip
    assert all(0 <= point.t_s <= 10 for point in found.series)
    assert [(p.t_s, p.value) for p in found.series if (p.flow, p.metric) == ("reno", "queue_packets")] == [(3.0, 2.0)]
    assert [(p.t_s, p.value) for p in found.series if p.metric == "qthresh_packets"] == [(0.0, 6.0), (6.0, 8.0)]
    assert Made(tmp_path, series=False).collect().series == []


def test_standstills_of_which_nothing_is_counted_spoil_nothing(tmp_path: Path) -> None:
    made = Made(tmp_path, standstills=[(-0.5, "s1", 0.4), (0.3, "the traffic of web", 0.4), (10.3, "s1", 0.4)])
    assert made.collect().flows[0].goodput_bps == pytest.approx(900_000)


def test_a_process_that_waits_for_a_processor_stood_still() -> None:
    """Four that spin on one processor: each waits three quarters of the time. One that sleeps does not wait."""
    spin = [
        sys.executable,
        "-c",
        "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass",
    ]
    with ExitStack() as stack:
        processes = [subprocess.Popen(spin) for _ in range(4)]
        for process in processes:
            stack.callback(process.wait, 10)
            stack.callback(process.kill)
        idle = subprocess.Popen(["sleep", "60"])
        stack.callback(idle.wait, 10)
        stack.callback(idle.kill)
        time.sleep(0.5)
        standstills, names = (
            Standstills(),
            {**{one.pid: "s1" for one in processes}, idle.pid: "the links", 2**22: "gone"},
        )
        now_s = 100.0
        assert standstills.read(now_s, names) == []
        time.sleep(1.0)
        found = standstills.read(now_s + PERIOD_S, names)
        assert {what for _, what, _ in found} == {"s1"}
        assert standstills.read(now_s + 5.0, {})[0][1] == "this machine"


def test_a_rate_that_changed_counts_by_its_time(tmp_path: Path) -> None:
    made = Made(tmp_path, changes=((6.0, KEY, 500_000),), tx_bps=740_000, goodput_bps=600_000)
    (port,) = made.collect().ports
    assert port.rate_bps == 750_000
    assert port.utilisation == pytest.approx(0.9867, abs=1e-4)


def test_of_a_rate_that_is_a_function_of_time_the_utilisation_is_not_known(tmp_path: Path) -> None:
    """Its mean is 2 Mbit/s, and what it was in this run only the switch knows."""
    made = Made(tmp_path, rate={"uniform": [1e6, 3e6], "every_s": 5}, tx_bps=2_900_000, goodput_bps=2_700_000)
    result = made.collect()
    (port,) = result.ports
    assert (port.rate_bps, port.utilisation, port.throughput_bps) == (None, None, pytest.approx(2_900_000))
    assert "rate_bps" not in {point.metric for point in result.series}
    assert run_metrics(result.flows, result.ports, [])["utilisation"] is None


@pytest.mark.parametrize("ports", [(5000, 5001), (5000, 5000)])
def test_transfers_of_a_web_flow_and_its_goodput(tmp_path: Path, ports: tuple[int, int]) -> None:
    result = Made(tmp_path, flows=(RENO, WEB), web_ports=ports).collect()
    assert [(t.flow, t.group, round(t.start_s, 3), round(t.completion_s, 3)) for t in result.transfers] == [
        ("web", "short", 1.0, 0.3),
        ("web", "short", 5.0, 0.3),
    ]
    web = result.flows[1]
    assert not web.greedy
    assert web.goodput_bps == pytest.approx(1000)  # 1000 bytes in 8 s: the first transfer came before the window
    assert (web.retransmits, web.srtt_ms) == (1, 30.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"late_s": 0.3}, "flow reno started 0.30 s late"),
        (
            {"standstills": [(4.2, "the traffic of web", 0.3)]},
            r"the traffic of web stood still for 0\.3 s, 4\.2 s after",
        ),
        ({"standstills": [(1.2, "s1", 0.3)]}, "s1 stood still for 0.3 s, 1.2 s after"),
        ({"standstills": [(0.3, "s1", 0.3)], "warmup_s": 0.0}, "s1 stood still for 0.3 s, 0.3 s after"),
        ({"tx_bps": 1_030_000}, "utilisation 1.030 of port 3 of s1 is above 1: the run is void"),
        ({"goodput_bps": 990_000}, "the flows' goodputs would fill 1.046 of the link: the run is void"),
    ],
)
def test_a_run_that_the_machine_spoilt_is_void(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(VoidError, match=message):
        Made(tmp_path, **changes).collect()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cc": "cubic"}, "flow reno: wanted congestion control fl_reno, got cubic"),
        ({"error": "Broken pipe"}, "flow reno: Broken pipe"),
    ],
)
def test_a_run_of_something_else_is_no_result(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message) as caught:
        Made(tmp_path, **changes).collect()
    assert not isinstance(caught.value, VoidError)


def test_a_sender_without_a_summary_is_said(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.collect()
    path = tmp_path / "reno.jsonl"
    path.write_text(path.read_text().rpartition('{"summary"')[0] + '{"summ')
    scenario = Scenario("t", "p", {}, {}, (RENO,), 10.0, 2.0)
    plan = make_plan(scenario, {"h1": "10.0.1.1", "h3": "10.0.3.3"}, tmp_path)
    running = Running(plan, 0, {}, tmp_path, {}, {}, Captures(tmp_path, {}))
    with pytest.raises(RunError, match=r"reno\.jsonl: the sender wrote no summary"):
        collect(cast("Bed", FakeBed(tmp_path)), running, Watched(), [])
