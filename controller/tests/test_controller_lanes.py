# SPDX-License-Identifier: Apache-2.0
"""Scheme lanes: which queues of a port are lanes, what is written, and what holds where a port has none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.measure.estimators import Estimate
from fairlane_controller.measure.port import PortMeasurement
from fairlane_controller.programs.qthresh.cli_threshold import edited
from fairlane_controller.programs.qthresh.decide import Outcome, ThresholdDecider
from fairlane_controller.programs.qthresh.flows import RESTING_SLOTS, FlowKey
from fairlane_controller.programs.qthresh.names import Scheme
from fairlane_controller.programs.qthresh.policies import (
    InForce,
    Lanes,
    Policy,
    SetupPlan,
    lanes_of,
    limit_entry,
    why_no_lanes,
)
from fairlane_controller.programs.qthresh.program import Qthresh
from fairlane_controller.programs.qthresh.settings import PolicySettings, QthreshPort
from fairlane_controller.state.run_state import PortState, RunState, SwitchState
from learned_tools import flows_of, key

DRR = PortState(port=3, queue_packets=100, queues=4096, scheduler="drr", rate_bps=1e6)
STRICT = PortState(port=3, queue_packets=100, queues=8, scheduler="strict", rate_bps=1e6)


def state_of(port: PortState) -> SwitchState:
    """A switch with that port."""
    return SwitchState(name="s1", grpc="127.0.0.1:1", ports=(port,))


@pytest.mark.parametrize(
    ("queues", "lanes"), [(4, (2, 1)), (8, (4, 2)), (64, (32, 16)), (1000, (512, 256)), (4096, (2048, 1024))]
)
def test_a_port_s_queues_make_lanes(queues: int, lanes: tuple[int, int]) -> None:
    port = DRR.model_copy(update={"queues": queues})
    assert lanes_of(port) == lanes
    assert 1 + sum(lanes) <= queues


@pytest.mark.parametrize("port", [STRICT, DRR.model_copy(update={"queues": 3}), PortState(port=3)])
def test_where_queues_are_too_few_or_not_served_by_weight_there_are_none(port: PortState) -> None:
    assert lanes_of(port) == Lanes(0, 0)


@pytest.mark.parametrize("lanes", [Lanes(), Lanes(32, 16)])
def test_what_is_written_is_read(lanes: Lanes) -> None:
    policy = Policy(3, 0, Scheme.LANES, 9, 1.5, lanes, spacing_us=300)
    assert Policy.from_entry(policy.entry) == policy
    assert policy.is_limited


@pytest.mark.parametrize(("packets", "weight"), [(1, 0.5), (5, 65_500 / 256)])
def test_a_policy_that_no_file_can_have_is_none_of_ours(packets: int, weight: float, tmp_path: Path) -> None:
    """Others may have written it; `config show` and all that reads what is in force goes on without it."""
    entry = Policy(3, 0, Scheme.QTHRESH, packets, weight).entry
    run = RunState(name="x", target="embedded", program="qthresh", switches=(), folder=tmp_path)
    assert Qthresh().read_config({"s1": {"entry": entry}}, run).plain()["policies"] == []


def plan(port: PortState, asked: dict[str, Any], before: Policy | None = None) -> Policy:
    """The policy that a request makes of what is in force."""
    found = InForce.of([limit_entry(port, QthreshPort()), *([before.entry] if before is not None else [])])
    return edited(("s1", 3, 0), found, PolicySettings(), asked)[1].fitted(port)


def test_the_scheme_lanes_takes_the_port_s_queues() -> None:
    policy = plan(DRR, {"scheme": "lanes"})
    assert (policy.scheme, policy.lanes, policy.values["lanes"]) == (Scheme.LANES, (2048, 1024), 2048)
    assert why_no_lanes(DRR.scheduler, DRR.queues) == ""


def test_where_there_are_no_lanes_one_queue_is_left_and_the_answer_says_so() -> None:
    policy = plan(STRICT, {"scheme": "lanes"})
    assert (policy.scheme, policy.lanes) == (Scheme.LANES, (0, 0))
    assert why_no_lanes(STRICT.scheduler, STRICT.queues) == (
        "the port has 8 queues and the scheduler strict; lanes need at least 4 and drr or wrr"
    )


@pytest.mark.parametrize("asked", [{"threshold": 7}, {"threshold": None}])
def test_a_threshold_keeps_the_scheme(asked: dict[str, Any]) -> None:
    before = Policy(3, 0, Scheme.LANES, 9, 1.0, Lanes(2048, 1024), spacing_us=300)
    assert plan(DRR, asked, before) == replace(before, qthresh_packets=asked["threshold"] or 9)


def test_back_to_one_queue_and_drop_tail() -> None:
    before = Policy(3, 0, Scheme.LANES, 9, 1.0, Lanes(2048, 1024), spacing_us=300)
    assert plan(DRR, {"scheme": "qthresh"}, before) == Policy(3, 0, Scheme.QTHRESH, 9)
    assert plan(DRR, {"scheme": "drop_tail"}, before) == Policy(3, 0, Scheme.DROP_TAIL)


def test_a_restarted_switch_gets_its_lanes_again() -> None:
    run = RunState(name="t", program="qthresh", switches=(state_of(DRR),))
    remembered = Policy(3, 0, Scheme.LANES, 9).fitted(DRR)  # the state file does not say the queues: the run state does
    entries = SetupPlan(run).wanted("s1", {"policy": remembered.entry}).entries
    assert [*entries] == [limit_entry(DRR, QthreshPort()), remembered.entry]


def test_lanes_follow_the_port_s_queues_and_scheduler() -> None:
    held = Policy(3, 0, Scheme.LANES, 9, 1.5, Lanes(2, 1), spacing_us=300)
    others = (
        Policy(2, 0, Scheme.LANES, 9, 1.0, Lanes(2, 1)),
        Policy(3, 1, Scheme.QTHRESH, 9),
        Policy(3, 2, Scheme.DROP_TAIL),
    )
    current = {f"{one.port}/{one.traffic_class}": one.entry for one in (held, *others)}
    for port, lanes in ((DRR, Lanes(2048, 1024)), (STRICT, Lanes())):
        assert [*Qthresh().entries_for_queues(port, current)] == [replace(held, lanes=lanes).entry]


def test_a_threshold_that_is_right_is_written_again_for_its_spacing() -> None:
    """A port that came from qthresh with the threshold of (9) kept a spacing of 0, and one whose room bounds (9) kept that of a path that was."""
    decider, settings = ThresholdDecider(in_force_packets=6), PolicySettings(k=4 / 3)
    spacing_us, written = 0, list[tuple[int, int | None, int]]()
    for step, t_res_s in enumerate([0.02] * 4 + [0.018, 0.022] * 4 + [0.3] * 4):
        bw, t_res, l_d, n_c = (Estimate(value, 50, 0.1, 0.0) for value in (2e6, t_res_s, 1000.0, 2.0))
        port = PortMeasurement(bw, t_res, l_d, n_c)
        decision = decider.evaluate(step / 4, port, settings, 6, has_lane=True, spacing_us=spacing_us)
        spacing_us = decision.spacing_us
        if decision.outcome is Outcome.WRITE:
            decider.record_write(step / 4, 6)
            written.append((step, decision.qthresh_packets, spacing_us))
    assert written == [(1, 6, 60_000), (13, 6, 900_000)]


def test_few_flows_have_small_slots() -> None:
    """However many come and go: lanes are slots modulo their number, and no two flows of a few are to meet."""
    numbers, alive = flows_of().numbers, list[FlowKey]()
    for number in range(20_000):
        assert numbers.give(key(number)) is not None
        alive.append(key(number))
        if len(alive) > 100:
            numbers.release(alive.pop(0))
    assert max(numbers.given.values()) <= 101 + RESTING_SLOTS
