# SPDX-License-Identifier: Apache-2.0
"""How flows share the line as time goes on, from samples whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from fairlane_lab.measures import NOTHING, Samples, Values
from fairlane_lab.recording import FlowRecord, PortRecord, Recording
from fairlane_lab.report.labels import name_of
from fairlane_lab.sim.config import rate_steps, resolve
from fairlane_lab.sim.sharing import sharing
from fairlane_topology.links import LinkChange
from sim_scenarios import RATE_BPS, RENO, VEGAS, fixed, scenario

END_S = 20.0
T_S = np.arange(0, END_S + 1e-9, 0.1)


def recorded(
    start_s: float,
    received: Sequence[Values] = (),
    tx_bytes: Values | None = None,
    srtt_ns: Values | None = None,
    **changes: Any,
) -> Recording:
    """Samples 0.1 s apart, of Reno and of Vegas."""
    config = resolve(scenario(RENO, VEGAS, control=fixed(6), duration_s=END_S, **changes), 100_000_000)
    flows = [FlowRecord(flow.name, flow, flow.variant, NOTHING, NOTHING, 960) for flow in (RENO, VEGAS)]
    for flow, values in zip(flows, received, strict=False):
        flow.sampled = Samples(T_S, values)
    if srtt_ns is not None:
        flows[0].srtt_ns = Samples(T_S, srtt_ns)
    sent = NOTHING if tx_bytes is None else Samples(T_S, tx_bytes)
    port = PortRecord(("s1", 3), rate_steps(config, "s1", 3), sent, sent, sent, NOTHING, sent)
    return Recording(config.scenario, config.topology, start_s, END_S, flows, [port])


def flow_bytes(rates: Values) -> Values:
    """Bytes so far, of bytes/s at each sample."""
    return np.cumsum(rates * 0.1)


def test_flows_that_take_turns_are_fair_over_a_long_window_only() -> None:
    turn = (T_S % 2 < 0.999).astype(float) * 2e5
    found = sharing(recorded(10.0, [flow_bytes(turn), flow_bytes(2e5 - turn)]))
    assert found["jain_100ms"] == pytest.approx(0.5, abs=0.02)
    assert found["jain_1s"] < 0.65
    assert found["jain_10s"] == pytest.approx(1.0, abs=0.01)


def test_the_time_from_a_change_to_a_fair_second() -> None:
    second = np.where((T_S >= 8) & (T_S < 13), 1e4, 1e5)
    first = flow_bytes(1e5 + 0 * T_S)
    changes = (LinkChange(at_s=8.0, link="s1-s2", delay_ms=20.0),)
    # from 12.6 s to 13.6 s the second flow has 64 % of the first one's: Jain's index 0.954
    assert sharing(recorded(5.0, [first, flow_bytes(second)], changes=changes))["fair_after_s"] == pytest.approx(
        5.6, abs=0.15
    )
    never = recorded(5.0, [first, flow_bytes(0 * T_S)], changes=changes)
    assert sharing(never)["fair_after_s"] == pytest.approx(END_S - 8)


def test_the_worst_five_seconds_of_a_line_whose_rate_changes() -> None:
    changes = (LinkChange(at_s=10.0, link="s1-s2", rate_bps=1_000_000),)
    rate = np.where(T_S < 10, RATE_BPS, 1_000_000)
    idle = np.where((T_S > 14) & (T_S <= 16.5), 0.0, rate / 8)
    used = sharing(recorded(5.0, tx_bytes=flow_bytes(idle), changes=changes))
    assert used["worst_5s_use"] == pytest.approx(0.5, abs=0.03)


def test_what_waits_is_the_round_trip_beyond_the_smallest() -> None:
    rtt = 10e6 + np.where(np.arange(len(T_S)) % 50 == 0, 30e6, 0)
    found = sharing(recorded(0.0, srtt_ns=rtt))
    assert found["delay_p99_ms"] == pytest.approx(30.0)
    assert name_of("delay_p99_ms").label.startswith("99 % of the smoothed RTTs"), "srtt_ns, not single RTTs"


def test_nothing_is_said_without_samples() -> None:
    assert sharing(recorded(5.0)) == {}
