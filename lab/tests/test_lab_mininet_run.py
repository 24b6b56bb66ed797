# SPDX-License-Identifier: Apache-2.0
"""Real, short runs of the Mininet runner: what several scenarios on one running network must not leave behind. Needs root."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.runners.mininet import MininetOptions, run_many
from fairlane_lab.scenario import Scenario, TcpOptions
from test_lab_mininet_plan import RENO, VEGAS, document, scenario

pytestmark = pytest.mark.kernel

FRAME_BITS = 8 * 1014
ROUND_TRIP_S = 0.0105
"""Twice 1 + 2 + 1 ms; frames of 1014 bytes over 5 and 10 Mbit/s (hosts send as fast as they can), ACKs back; no queue: windows are small."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root")


@needs_root
def test_runs_with_clamped_windows_follow_each_other_on_one_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run has its own window: what the one before set (routes, the peers' metrics) is gone."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    windows = (2, 1)
    runs: list[Scenario] = []
    for order, window in enumerate(windows):
        flows = [replace(flow, window_packets=window) for flow in (RENO, VEGAS)]
        one = scenario(*flows, point=f"run {order}", topology=document(5_000_000), tcp=TcpOptions(delayed_ack=False))
        runs.append(replace(one, duration_s=4.0, warmup_s=1.5))
    found: dict[str, RunResult | RunError] = {}
    options = MininetOptions(first_instance=92, parallel=1)
    run_many(runs, options, lambda one, result: found.__setitem__(one.point, result))
    for order, window in enumerate(windows):
        result = found[f"run {order}"]
        assert isinstance(result, RunResult), result
        throughput_bps = sum(port.throughput_bps for port in result.ports)
        assert throughput_bps == pytest.approx(2 * window * FRAME_BITS / ROUND_TRIP_S, rel=0.12), order
