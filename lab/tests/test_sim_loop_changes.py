# SPDX-License-Identifier: Apache-2.0
"""The control loop with probes on a link whose rate and delay change (experiment `loop-changes`), in virtual time: noticed within 1 s,
written within 2 s, steady in between, and every change explained."""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections import Counter
from functools import cache, partial
from typing import Any

import pytest
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.programs.qthresh.model import DEFAULT_K, QthreshPlan
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.run_result import RunResult
from fairlane_lab.runners.sim import run
from fairlane_lab.scenario import Control
from fairlane_lab.sim.client import SimSwitch
from fairlane_topology.links import LinkChange
from finsy import P4TableEntry
from sim_scenarios import DUMBBELL, cbr, exact, scenario

pytest.importorskip("fairlane_switch.native", reason="the simulator is not built: make setup")
CHANGES_S = (30.0, 60.0, 90.0, 120.0)
FRAME_BYTES, FLOWS = 1014, 16
ACCESS_S = 0.001
"""One way over an access link, in the experiment's file."""


@cache
def changing(threshold: str) -> RunResult:
    (made,) = expand(exact("loop-changes"), Selection(repeats=1, values={"control": (threshold,)}))
    return run(made)


def events(result: RunResult, *names: str) -> list[dict[str, Any]]:
    return [event for event in result.events if event["event"] in names]


def true_threshold(rate_bps: float, delay_ms: float) -> float:
    """(9) with what the link really is; T_ACK: both ways on the access link, and what frame and ACK take there and back."""
    t_ack_s = 2 * ACCESS_S + 8 * FRAME_BYTES / 10e6 + 8 * 66 / 10e6 + 8 * 66 / rate_bps
    return DEFAULT_K * QthreshPlan(rate_bps, 2 * delay_ms / 1e3 + t_ack_s, FRAME_BYTES, FLOWS).w_best_packets


@pytest.mark.parametrize("threshold", ["model", "auto"])
def test_the_line_is_used_over_all_changes(threshold: str) -> None:
    assert (changing(threshold).ports[0].utilisation or 0) > 0.95


@pytest.mark.parametrize("threshold", ["model", "auto"])
def test_each_change_of_rate_or_delay_is_told_within_a_second_with_what_it_was_and_is(threshold: str) -> None:
    told = [event for event in events(changing(threshold), "link_changed") if event["what"] != "path"]
    assert [event["what"] for event in told] == ["rate", "rate", "delay", "delay"]
    for at_s, event in zip(CHANGES_S, told, strict=True):
        assert 0.0 < event["t_s"] - at_s < 1.0
        assert (event["switch"], event["port"]) == ("s1", 3)
    assert [event["why"].rpartition(":")[0] for event in told] == [
        "BW was 5 Mbit/s and is 1 Mbit/s",
        "BW was 1 Mbit/s and is 5 Mbit/s",
        "τ was 2 ms and is 100 ms",
        "τ was 100 ms and is 2 ms",
    ]


@pytest.mark.parametrize("threshold", ["model", "auto"])
def test_the_threshold_is_right_two_seconds_after_a_change(threshold: str) -> None:
    """Within two packets or a third of (9) of the true link: T_ACK has delayed-ACK timers in it, which stay for a while."""
    written = [(event["t_s"], event["qthresh_packets"]) for event in events(changing(threshold), "threshold")]
    links = {30.0: (1e6, 2), 60.0: (5e6, 2), 90.0: (5e6, 100), 120.0: (5e6, 2)}
    for at_s, (rate_bps, delay_ms) in links.items():
        in_force = [packets for t_s, packets in written if t_s <= at_s + 2.0][-1]
        wanted = true_threshold(rate_bps, delay_ms)
        assert abs(in_force - wanted) <= max(4.0, wanted / 3), f"{at_s:g} s: {in_force} instead of {wanted:.1f}"
    for at_s in (90.0, 120.0):
        assert any(at_s < t_s <= at_s + 2.0 for t_s, _ in written), f"nothing written after {at_s:g} s"


@pytest.mark.parametrize("threshold", ["model", "auto"])
def test_at_most_one_write_a_second_and_few_thresholds_where_nothing_changes(threshold: str) -> None:
    """Two seconds after a change everything is steady; `tuned` is one batch of the flows' weights."""
    result = changing(threshold)

    def steady(t_s: float) -> bool:
        return t_s > 3.0 and not any(at_s <= t_s <= at_s + 2.0 for at_s in CHANGES_S)

    writes = sorted(event["t_s"] for event in events(result, "threshold", "tuned") if steady(event["t_s"]))
    assert all(later - earlier > 0.999 for earlier, later in itertools.pairwise(writes))
    thresholds = [event for event in events(result, "threshold") if steady(event["t_s"])]
    assert len(thresholds) <= 8, "it oscillates: " + "; ".join(event["why"] for event in thresholds)


def test_every_decision_says_why_with_its_measured_inputs() -> None:
    told = Counter(event["event"] for event in changing("auto").events)
    assert {"took_over", "threshold", "tuned", "link_changed", "decision"} <= set(told)
    for event in changing("auto").events:
        if event["event"] not in ("flow", "flow_gone"):
            assert len(event["why"]) > 20, event
    for event in events(changing("auto"), "threshold"):
        assert all(symbol in event["why"] for symbol in ("BW ", "T_res ", "L_D ", "N_C ", "(9) says"))
        assert event["measured"]["tau_s"]["value"] > 0


def test_a_link_without_tcp_has_its_threshold_of_the_probes() -> None:
    topology = copy.deepcopy(DUMBBELL)
    change = LinkChange(at_s=10.0, link="s1-s2", delay_ms=50)
    flows = (cbr("fast", "h1", 3_000_000), cbr("slow", "h2", 1_500_000))
    control = Control("qthresh", "model", probes=True)
    result = run(scenario(*flows, topology=topology, control=control, changes=(change,), duration_s=15.0))
    first, *_, last = events(result, "threshold")
    assert ", T_res 4 ms, " in first["why"]
    assert ", T_res 100 ms, " in last["why"]
    assert all(event["measured"]["t_ack_s"] is None for event in (first, last)), "no ACK was timed"
    assert last["t_s"] - 10.0 < 2.0
    assert last["qthresh_packets"] == round(DEFAULT_K * QthreshPlan(2e6, 0.1, FRAME_BYTES, 2).w_best_packets)


def test_probes_are_in_no_flows_count() -> None:
    flows = (cbr("one", "h1", 1_500_000), cbr("two", "h2", 1_500_000))
    result = run(scenario(*flows, control=Control("drop_tail", measure=True, probes=True), series=True))
    (port,) = result.ports
    assert port.values["n_c"] == pytest.approx(2.0)
    assert port.values["l_d_bytes"] == pytest.approx(FRAME_BYTES, rel=0.003)
    assert port.values["bw_bps"] == pytest.approx(2e6, rel=0.001)


def test_a_dry_run_decides_under_traffic_and_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    write = SimSwitch.write

    async def record(self: SimSwitch, entities: Any) -> None:
        entries = [entity for entity in entities if isinstance(entity, P4TableEntry)]
        written.extend(entries if asyncio.get_running_loop().time() > 0 else ())
        await write(self, entities)

    monkeypatch.setattr("fairlane_lab.sim.world.SwitchAgent", partial(SwitchAgent, dry_run=True))
    monkeypatch.setattr(SimSwitch, "write", record)
    flows = (cbr("fast", "h1", 3_000_000), cbr("slow", "h2", 1_500_000))
    change = LinkChange(at_s=6.0, link="s1-s2", delay_ms=50)
    result = run(scenario(*flows, control=Control("qthresh", "model", probes=True), changes=(change,), duration_s=12.0))
    wanted = [event["qthresh_packets"] for event in events(result, "threshold")]
    assert wanted[0] < 6 < wanted[-1], "it decides, and goes on as if it had been written"
    assert written == []
