# SPDX-License-Identifier: Apache-2.0
"""A real run on BMv2 with the same program, controller and senders: what Qthresh is for. Needs root and BMv2."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.runners.mininet import MininetOptions, run_many
from fairlane_lab.scenario import Control, Scenario, TcpOptions
from test_lab_mininet_plan import scenario

pytestmark = pytest.mark.kernel

needs_bmv2 = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("simple_switch_grpc") is None, reason="needs root and simple_switch_grpc (BMv2)"
)


@needs_bmv2
def test_vegas_has_its_share_on_bmv2_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drop-tail leaves Vegas less than a third of Reno's goodput; with a threshold of 4 it has more than that."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    runs: list[Scenario] = []
    for control in (Control("drop_tail"), Control("qthresh", 4)):
        one = scenario(point=control.scheme, control=control, tcp=TcpOptions(mss_bytes=960, delayed_ack=True))
        runs.append(replace(one, duration_s=14.0, warmup_s=5.0))
    found: dict[str, RunResult | RunError] = {}
    options = MininetOptions(target="bmv2", first_instance=89, parallel=1)
    run_many(runs, options, lambda one, result: found.__setitem__(one.point, result))
    shares: dict[str, float] = {}
    for point, result in found.items():
        assert isinstance(result, RunResult), result
        goodput_bps = {flow.flow: flow.goodput_bps for flow in result.flows}
        shares[point] = goodput_bps["vegas"] / goodput_bps["reno"]
    assert shares["drop_tail"] < 0.33 < shares["qthresh"]
