# SPDX-License-Identifier: Apache-2.0
"""GFR in virtual time on the real program: shares, guarantees, N that follows the VCs, counters, and what the Mininet watch reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fairlane_controller.errors import FairlaneError
from fairlane_controller.programs.gfr.lab.vcs import vc_metrics
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.run_result import RunResult
from fairlane_lab.runners.sim import run
from fairlane_lab.scenario import App, Flow, Scenario
from fairlane_topology.links import LinkChange
from sim_scenarios import exact

NAMES = [f"vc{index}" for index in range(1, 6)]


def scenario(control: str, **fields: Any) -> Scenario:
    """Table 2's network and VCs, with one of its controls; 6 s, of which 2 s do not count."""
    (one,) = expand(exact("gfr-table2"), Selection(values={"control": [control]}, repeats=1))
    return replace(one, **{"duration_s": 6.0, "warmup_s": 2.0, "series": False, **fields})


def udp(rates: list[int], **fields: Any) -> tuple[Flow, ...]:
    """One UDP flow a VC, IP packets of 1000 bytes; `rates` in Mbit/s of payload."""
    return tuple(
        Flow(f"udp{i}", f"vc{i}", f"h{i}", f"h{i + 5}", app=App("cbr_udp", rate_bps=rate * 1_000_000, payload_bytes=972), vc=f"vc{i}", **fields)
        for i, rate in enumerate(rates, 1)
    )  # fmt: skip


def ratios(result: RunResult) -> list[float]:
    return [vc.ratio for vc in result.vcs]


def test_wrr_gives_every_overloaded_vc_its_share() -> None:
    result = run(scenario("proposed+ WRR", flows=udp([30] * 5)))
    assert ratios(result) == pytest.approx([1.0] * 5, abs=0.005)
    assert result.ports[0].utilisation == pytest.approx(1.0, abs=0.002)
    refused = sum(udp_bps - vc.goodput_bps for vc, udp_bps in zip(result.vcs, [30e6] * 5, strict=True)) * 4 / (8 * 972)
    assert result.ports[0].drops == pytest.approx(refused, rel=0.02)


def test_one_fifo_gives_no_more_than_admission_does() -> None:
    fifo = ratios(run(scenario("drop-tail", flows=udp([40, 10, 10, 10, 10]))))
    proposed = ratios(run(scenario("proposed+ FIFO", flows=udp([40, 10, 10, 10, 10]))))
    assert fifo[0] > proposed[0] + 0.5
    assert min(proposed[1:]) > min(fifo[1:])


def test_tcps_get_their_fair_shares_and_a_seed_the_same_bytes() -> None:
    one = run(scenario("proposed+ WRR"))
    metrics = vc_metrics(one.vcs)
    assert metrics["jain"] > 0.99
    assert metrics["goodput_share"] > 0.97
    assert metrics["mcr_met"] > 1.0
    assert metrics["mcr_met_5s"] is None  # nothing counts for 5 s
    assert sum(flow.goodput_bps for flow in one.flows) == pytest.approx(sum(vc.goodput_bps for vc in one.vcs), rel=0.01)
    again = run(scenario("proposed+ WRR"))
    assert (again.vcs, again.flows, again.ports) == (one.vcs, one.flows, one.ports)


def test_n_and_shares_follow_vcs_that_come_and_go() -> None:
    flows = udp([60] * 2) + tuple(replace(flow, start_s=4.0, stop_s=10.0) for flow in udp([60] * 5)[2:])
    result = run(scenario("proposed+ WRR", flows=flows, duration_s=16.0))
    active = [event for event in result.events if event["event"] == "gfr_active"]
    assert [event["n"] for event in active] == [5, 2, 5, 2]  # all at first, for T_active; then who sends
    last = active[-1]
    assert last["t_s"] == pytest.approx(12.0, abs=1.1)
    assert last["active"] == NAMES[:2]
    assert last["w_bps"]["vc1"] == pytest.approx(2e6 + (51.84e6 - 6e6) / 2, rel=1e-6)
    assert [vc.vc for vc in result.vcs] == NAMES
    assert result.vcs[2].active_s == pytest.approx(4.0)
    assert ratios(result) == pytest.approx([1.0] * 5, abs=0.08)


def test_what_the_controller_refuses_ends_the_run() -> None:
    one = scenario("proposed+ WRR")
    too_much = tuple(replace(vc, mcr_bps=20_000_000) for vc in one.vcs)
    with pytest.raises(FairlaneError, match="MCR"):
        run(replace(one, vcs=too_much))


def test_the_loop_measures_the_line_and_reports_a_rate_that_is_not_the_capacity() -> None:
    base = scenario("proposed+ WRR", flows=udp([30] * 5))
    change = LinkChange(at_s=2.0, link="s1-s2", direction="a_to_b", rate_bps=30_000_000)
    control = replace(base.control, probes=True)
    result = run(replace(base, control=control, changes=(change,)))
    found = {event["event"]: event for event in result.events}
    assert found["link_changed"]["why"].startswith("BW was 51.84 Mbit/s and is 30 Mbit/s")
    assert found["link_changed"]["t_s"] - 2.0 < 1.0
    assert found["gfr_capacity"]["why"].startswith("the line drains 30 Mbit/s while frames wait (")
    assert found["gfr_capacity"]["followed"] is False
    result = run(replace(base, changes=(change,)))
    assert {event["event"] for event in result.events} == {"gfr_took_over", "gfr_active"}, "without probes as before"
