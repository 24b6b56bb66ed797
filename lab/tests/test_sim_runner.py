# SPDX-License-Identifier: Apache-2.0
"""Whole runs in virtual time on the Qthresh paper's dumbbell: shares, counters at the window's ends, the loop, determinism; and what sim does without."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal

import pytest
from fairlane_controller.programs.qthresh.lab import Control as QthreshControl
from fairlane_controller.programs.qthresh.settings import ClassConfig
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.runners.sim import run
from fairlane_lab.scenario import App, Control, Flow
from fairlane_topology.links import LinkChange
from sim_scenarios import DUMBBELL, RATE_BPS, RENO, VEGAS, cbr, fixed, scenario

pytest.importorskip("fairlane_switch.native", reason="the simulator is not built: make setup")
FAST, SLOW = cbr("fast", "h1", 3_000_000), cbr("slow", "h2", 1_500_000)


def shares(result: RunResult) -> dict[str, float]:
    total = sum(flow.goodput_bps for flow in result.flows)
    return {flow.flow: flow.goodput_bps / total for flow in result.flows}


def points(result: RunResult, flow: str, metric: str) -> list[tuple[float, float]]:
    return [(point.t_s, point.value) for point in result.series if (point.flow, point.metric) == (flow, metric)]


def test_two_overloads_fill_the_link_and_a_threshold_shares_it_evenly() -> None:
    drop_tail, qthresh = run(scenario(FAST, SLOW)), run(scenario(FAST, SLOW, control=fixed(6)))
    for result in (drop_tail, qthresh):
        (port,) = result.ports
        assert (port.switch, port.port, port.rate_bps) == ("s1", 3, RATE_BPS)
        assert port.utilisation == pytest.approx(1.0, abs=0.001)
        goodput_bps = sum(flow.goodput_bps for flow in result.flows)
        assert goodput_bps == pytest.approx(RATE_BPS * 972 / 1014, rel=0.001)
        arrived_bps = 4_500_000 * 1014 / 972
        assert port.drops * 8 * 1014 / 15.0 == pytest.approx(arrived_bps - port.throughput_bps, rel=0.002)
        assert result.virtual_s == 20.0
        assert result.packets > 10_000
    assert shares(drop_tail)["fast"] > 0.6
    assert shares(qthresh)["fast"] == pytest.approx(0.5, abs=0.02)
    assert (drop_tail.ports[0].queue_packets or 0) > 45
    assert 11 <= (qthresh.ports[0].queue_packets or 0) <= 12
    assert [each.ports[0].values.get("qthresh_packets") for each in (drop_tail, qthresh)] == [None, 6.0]


@pytest.mark.parametrize("loop", [False, True], ids=["entries-at-once", "entries-by-the-loop"])
def test_a_weight_is_a_share(loop: bool) -> None:
    control = replace(fixed(6), measure=loop)
    result = run(scenario(replace(FAST, weight=2.0), replace(SLOW, weight=1.0), control=control))
    assert shares(result)["fast"] == pytest.approx(2 / 3, abs=0.01)


def test_every_class_has_the_threshold() -> None:
    rule = ClassConfig.model_validate({"class": 1, "switch": "s1", "ingress_port": 1})  # h1, which sends too much
    control = replace(fixed(6), settings=QthreshControl(scheme="qthresh", threshold=6, classes=(rule,)))
    assert shares(run(scenario(FAST, SLOW, control=control)))["fast"] == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("threshold", [6, "auto"])
def test_a_flood_takes_no_more_than_its_lane(threshold: int | Literal["auto"]) -> None:
    topology = deepcopy(DUMBBELL)
    topology["switches"]["s1"]["ports"]["3"] |= {"queues": 64, "scheduler": "drr"}
    flood, reno = cbr("flood", "h1", 8_000_000), replace(RENO, sender="h2")
    result = run(scenario(flood, reno, topology=topology, control=Control("lanes", threshold), duration_s=40.0))
    assert shares(result)["flood"] == pytest.approx(0.5, abs=0.02)
    assert result.ports[0].utilisation == pytest.approx(1.0, abs=0.001)


def test_where_there_are_no_lanes_one_queue_has_thresholds() -> None:
    lanes, qthresh = (run(scenario(FAST, SLOW, control=control)) for control in (Control("lanes", 6), fixed(6)))
    assert lanes.flows == qthresh.flows


def test_the_loop_measures_the_link_without_deciding() -> None:
    result = run(scenario(FAST, SLOW, control=Control("drop_tail", measure=True)))
    (port,) = result.ports
    assert port.values["bw_bps"] == pytest.approx(RATE_BPS, rel=0.01)
    assert port.values["l_d_bytes"] == pytest.approx(1014, rel=0.001)
    assert port.values["n_c"] == pytest.approx(2.0)
    assert port.values.get("qthresh_packets") is None
    assert shares(result)["fast"] > 0.6
    assert [event["event"] for event in result.events][:1] == ["took_over"]


def test_a_change_of_rate_is_in_the_result_and_the_loop_follows() -> None:
    change = LinkChange(at_s=10.0, link="s1-s2", direction="a_to_b", rate_bps=1_000_000)
    control = Control("drop_tail", measure=True)
    result = run(scenario(FAST, SLOW, control=control, changes=(change,), duration_s=15.0, series=True))
    (port,) = result.ports
    assert port.rate_bps == 1_500_000
    assert port.utilisation == pytest.approx(1.0, abs=0.005)
    followed = [value for t, value in points(result, "", "bw_bps") if t >= 12.0]
    assert followed
    assert followed == pytest.approx([1_000_000] * len(followed), rel=0.01)


def test_the_series_say_what_waits_and_what_leaves() -> None:
    result = run(scenario(FAST, SLOW, control=fixed(4), series=True, sample_s=0.1))
    waiting = points(result, "slow", "queue_packets")
    assert [round(t, 6) for t, _ in waiting[:3]] == [0.0, 0.1, 0.2]
    assert len(waiting) == 201
    assert max(value for _, value in waiting) == 4
    assert max(value for _, value in points(result, "", "queue_packets")) == 8
    leaving = [value for t, value in points(result, "", "throughput_bps") if t > 1]
    assert min(leaving) > 0.9 * RATE_BPS
    assert points(result, "", "qthresh_packets") == [(0.0, 4.0)]


@pytest.mark.parametrize("control", [fixed(6), Control("qthresh", "auto")], ids=["fixed", "auto"])
def test_a_seed_gives_the_same_result_twice_and_another_seed_another(control: Control) -> None:
    def plain(seed: int) -> RunResult:
        return run(scenario(FAST, SLOW, control=control, seed=seed, series=True, duration_s=8.0))

    assert plain(3) == plain(3)
    assert plain(3) != plain(4)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"control": fixed(51)}, r"threshold 51 is out of range: it must be between 1 and 50 packets"),
    ],
)
def test_what_cannot_be_run_is_said(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message):
        run(scenario(FAST, SLOW, **fields))


def test_a_source_that_runs_out_of_ports_is_told() -> None:
    """It asked for less than its application says, in silence: ports are those of a pair of hosts, whatever the number of flows."""
    app = App("web", arrivals_per_s=700.0, mean_bytes=100, distribution="fixed")
    many = Flow("web", "web", "h1", "h3", app=app, connections=20)
    refusal = (
        r"flow web-\d+: \d+ connections were not opened, as no source port was free; allowed: "
        r"45536 connections from h1 to h3, of all flows together, each until 60 s after its end"
    )
    with pytest.raises(RunError, match=refusal):
        run(scenario(many, duration_s=3.3, warmup_s=1.0))


def test_a_bad_value_is_named_by_the_simulator() -> None:
    flow = replace(FAST, app=replace(FAST.app, rate_bps=2**64))
    with pytest.raises(RunError, match=r"the simulator refuses the configuration: flows\[0\]\.app.*rate_bps"):
        run(scenario(flow))


def test_a_run_costs_little_beside_its_simulation() -> None:
    short = scenario(FAST, SLOW, control=fixed(6), duration_s=0.002, warmup_s=0.001)
    run(short)
    best = min(_timed(lambda: run(short)) for _ in range(10))
    work = min(_timed(lambda: sum(number * number for number in range(100_000))) for _ in range(10))
    print(f"a run beside its simulation costs {best / work:.1f} times a sum of 100,000 squares")
    assert best < 25 * work  # about 3 here: as a ratio of what the same machine needs for something else


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def fairness(result: RunResult) -> float:
    goodputs = [flow.goodput_bps for flow in result.flows]
    return min(goodputs) / max(goodputs)


def test_behind_drop_tail_vegas_starves_and_behind_qthresh_it_does_not() -> None:
    drop_tail = run(scenario(RENO, VEGAS, duration_s=30.0, warmup_s=10.0))
    qthresh = run(scenario(RENO, VEGAS, control=fixed(6), duration_s=30.0, warmup_s=10.0))
    assert 0.03 < fairness(drop_tail) < 0.2  # the paper: 11 %
    assert fairness(qthresh) > 0.7
    for result in (drop_tail, qthresh):
        assert (result.ports[0].utilisation or 0) > 0.97
        assert [flow.variant for flow in result.flows] == ["reno", "vegas"]
        assert all(flow.greedy and (flow.cwnd_packets or 0) > 1 and (flow.srtt_ms or 0) > 5 for flow in result.flows)
    assert qthresh.flows[0].retransmits >= qthresh.ports[0].drops - 2 > 0


def test_the_loop_tunes_the_threshold_and_says_what_it_measured() -> None:
    result = run(scenario(RENO, VEGAS, control=Control("qthresh", "auto"), duration_s=40.0, warmup_s=15.0, series=True))
    (port,) = result.ports
    assert port.values["bw_bps"] == pytest.approx(RATE_BPS, rel=0.01)
    assert port.values["t_res_ms"] == pytest.approx(
        7.0, rel=0.05
    )  # 2·2 ms + 2·1 ms + the frame's and the ACK's serialisation
    assert port.values["n_c"] == pytest.approx(2.0, abs=0.2)
    assert (port.utilisation or 0) > 0.97
    assert fairness(result) > 0.9
    threshold = port.values["qthresh_packets"]
    assert threshold is not None
    assert 3 < threshold < 9
    assert {"took_over", "flow", "tuned"} <= {event["event"] for event in result.events}
    for flow in ("reno", "vegas"):
        assert max(value for _, value in points(result, flow, "queue_packets")) >= 2


def test_the_model_alone_tunes_nothing() -> None:
    result = run(scenario(RENO, VEGAS, control=Control("qthresh", "model"), duration_s=15.0))
    assert "tuned" not in {event["event"] for event in result.events}
    assert result.ports[0].values["t_res_ms"] is not None


def test_transfers_of_every_kind_are_told() -> None:
    web = App("web", arrivals_per_s=2.0, mean_bytes=8_000, distribution="pareto", max_bytes=100_000)
    result = run(
        scenario(
            RENO,
            Flow("web", "web", "h2", "h3", app=web),
            Flow("file", "file", "h2", "h3", app=App("bytes", bytes=50_000), start_s=2.0),
            Flow("keys", "keys", "h2", "h3", app=App("interactive", bytes=200, interval_s=0.5)),
            control=fixed(6),
        )
    )
    by_flow = {name: [t for t in result.transfers if t.flow == name] for name in ("web", "file", "keys")}
    assert [round(t.start_s, 1) for t in by_flow["file"]] == [2.0]
    assert by_flow["file"][0].bytes == 50_000
    assert 15 < len(by_flow["web"]) < 80
    assert len(by_flow["keys"]) >= 35
    assert all(0 < t.completion_s < 20 for t in result.transfers)
    assert [flow.greedy for flow in result.flows] == [True, False, False, False]


def test_tcp_too_is_the_same_twice() -> None:
    run_one = scenario(RENO, VEGAS, control=Control("qthresh", "auto"), duration_s=12.0)
    assert run(run_one) == run(run_one)


def test_the_simulator_and_the_commands_need_no_mininet() -> None:
    """Mininet comes from Debian, for root; sim needs neither."""
    program = (
        "import sys; sys.modules['mininet'] = None\n"
        "import fairlane_lab.cli, fairlane_lab.runners.sim, fairlane_lab.results.rows, fairlane_lab.sweep.workers"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
