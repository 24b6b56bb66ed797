# SPDX-License-Identifier: Apache-2.0
"""VCs of a scenario: when they count, their ideal shares (GFR paper), the ways that they take, what they got."""

from __future__ import annotations

import math
from typing import Any

import pytest
from fairlane_controller.programs.gfr.lab.vcs import (
    ManagedPort,
    active,
    counted,
    ideal_shares,
    packet_bytes,
    segment,
    vc_metrics,
    vc_results,
    worst_window_bps,
)
from fairlane_controller.programs.gfr.model import ideal_goodput_bps
from fairlane_lab.measures import Samples
from fairlane_lab.scenario import App, Flow, Scenario, TcpOptions, Vc, connections_of

C_BPS = 51_840_000.0


def scenario(mcrs: list[int], flows: dict[int, list[Flow]] | None = None, **fields: Any) -> Scenario:
    """VC i has an MCR of `mcrs[i]` Mbit/s and one greedy flow, or those of `flows`; 30 s, of which 5 s do not count."""
    flows = flows or {}
    vcs = tuple(Vc(f"vc{index}", mcr * 1_000_000) for index, mcr in enumerate(mcrs, 1))
    all_flows = [flow for index in range(1, len(mcrs) + 1) for flow in flows.get(index, [greedy(index)])]
    return Scenario("test", "one", {}, {}, tuple(all_flows), 30.0, 5.0, vcs=vcs, **fields)


def greedy(vc: int, name: str = "", **fields: Any) -> Flow:
    return Flow(name or f"f{vc}", f"vc{vc}", f"h{vc}", f"h{vc + 10}", vc=f"vc{vc}", **fields)


def port(*vcs: int) -> ManagedPort:
    return C_BPS, {f"vc{vc}" for vc in vcs}


def test_ideal_goodputs_are_the_papers_in_real_cells() -> None:
    run = scenario([2, 4, 6, 8, 10], tcp=TcpOptions(mss_bytes=960))
    ideal = ideal_shares(run, [port(1, 2, 3, 4, 5)])
    # algorithms.md: 46.95 Mbit/s where 960 bytes are 20 cells, 44.71 with the 21 of a real segment
    goodputs = [ideal_goodput_bps(w_bps, *segment(run, run.vcs[0])) for w_bps in ideal.values()]
    assert sum(goodputs) == pytest.approx(44.71e6, abs=1e4)
    paper = [5.77, 7.58, 9.39, 11.20, 13.01]
    assert [goodput / 1e6 * 21 / 20 for goodput in goodputs] == pytest.approx(paper, abs=0.01)
    assert sum(ideal.values()) == pytest.approx(C_BPS)


def test_a_vc_has_the_least_of_the_shares_on_its_way() -> None:
    ideal = ideal_shares(scenario([6] * 6), [port(1, 2, 3, 4, 5, 6), port(4, 5, 6)])
    assert list(ideal.values()) == pytest.approx([C_BPS / 6] * 6)


def test_shares_follow_the_vcs_that_are_there() -> None:
    flows = {2: [greedy(2, start_s=10.0, stop_s=20.0)]}
    run = scenario([10, 10], flows)
    ideal = ideal_shares(run, [port(1, 2)])
    assert counted(run, run.vcs[1]) == (15.0, 20.0)
    assert ideal["vc2"] == pytest.approx(C_BPS / 2)
    assert ideal["vc1"] == pytest.approx((15 * C_BPS + 10 * C_BPS / 2) / 25)


def test_a_vc_without_time_to_count_has_no_result() -> None:
    run = scenario([10, 10], {2: [greedy(2, start_s=26.0)]})
    assert list(ideal_shares(run, [port(1, 2)])) == ["vc1"]


def test_segments_and_packets() -> None:
    flows = {1: [greedy(1, tcp={"mss_bytes": 7680})], 2: [greedy(2, app=App("cbr_udp", rate_bps=1, payload_bytes=972))]}
    run = scenario([6, 6], flows, tcp=TcpOptions(mss_bytes=960, timestamps=True))
    assert segment(run, run.vcs[0]) == (7680, 162)
    assert [packet_bytes(run, flow) for flow in run.flows] == [7732, 1000]
    assert segment(run, run.vcs[1]) == (972, 21)


def test_activity_and_names_of_a_vcs_connections() -> None:
    run = scenario([6], {1: [greedy(1, "a", connections=2, start_s=0.25), greedy(1, "b", stop_s=9.0)]})
    assert active(run, run.vcs[0]) == (0.0, 30.0)
    assert connections_of(run, run.vcs[0]) == ["a-1", "a-2", "b"]


def steady(rate_bps: float, end_s: float = 30.0) -> list[tuple[float, float]]:
    return [(0.1 * step, rate_bps * 0.1 * step / 8) for step in range(round(end_s * 10) + 1)]


def test_the_worst_window_finds_a_pause_wherever_it_is() -> None:
    rate_bps = 8e6
    paused = [(t, min(b, rate_bps * 12.3 / 8) if t < 14.3 else b - rate_bps * 2.0 / 8) for t, b in steady(rate_bps)]
    assert worst_window_bps(Samples.of(steady(rate_bps)), (5, 30), 5.0) == pytest.approx(rate_bps)
    assert worst_window_bps(Samples.of(paused), (5, 30), 5.0) == pytest.approx(rate_bps * 3 / 5)
    assert worst_window_bps(Samples.of(paused), (15, 30), 5.0) == pytest.approx(rate_bps)
    assert worst_window_bps(Samples.of(paused), (5, 9.9), 5.0) is None


def test_counters_add_up_at_every_instant() -> None:
    one, other = Samples.of([(0.0, 0.0), (2.0, 2.0)]), Samples.of([(1.0, 5.0), (2.0, 6.0)])
    assert Samples.total([one, other]).points == [(0.0, 5.0), (1.0, 6.0), (2.0, 8.0)]
    assert Samples.total([]).points == []


def test_results_and_metrics_of_a_run() -> None:
    run = scenario([2, 10])
    ideal = ideal_shares(run, [port(1, 2)])
    size = segment(run, run.vcs[0])
    goodput = {name: ideal_goodput_bps(w_bps, *size) for name, w_bps in ideal.items()}
    got = {"vc1": 1.0 * goodput["vc1"], "vc2": 0.9 * goodput["vc2"]}
    samples = {name: Samples.of(steady(rate)) for name, rate in got.items()}
    first, second = vc_results(run, [port(1, 2)], samples)
    assert first.ratio == pytest.approx(1.0)
    assert second.ratio == pytest.approx(0.9)
    assert second.mcr_met == pytest.approx(got["vc2"] / ideal_goodput_bps(10e6, *size))
    assert second.mcr_met_5s == pytest.approx(second.mcr_met)
    metrics = vc_metrics([first, second])
    assert metrics["jain"] == pytest.approx(1.9**2 / (2 * (1 + 0.81)))
    assert metrics["fairness"] == pytest.approx(0.9)
    assert metrics["goodput_share"] == pytest.approx(sum(got.values()) / sum(goodput.values()))
    assert metrics["mcr_met"] == pytest.approx(second.mcr_met)
    assert metrics["vc_ratio[vc2]"] == pytest.approx(0.9)
    assert not math.isnan(metrics["mcr_met_5s[vc1]"])
    assert vc_metrics([]) == {}
