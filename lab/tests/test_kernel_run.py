# SPDX-License-Identifier: Apache-2.0
"""--runtime kernel: Linux's own TCP in virtual time. Skipped where no kernel is built (`make kernel`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.runners import kernel, sim
from fairlane_lab.scenario import App, Flow
from fairlane_lab.sim.kernel import BUILT, Machine, make_machine
from sim_scenarios import RENO, VEGAS, scenario

built = pytest.mark.skipif(not (BUILT / "linux").exists(), reason="no kernel is built: make kernel")
RUN = scenario(RENO, VEGAS, duration_s=20.0, warmup_s=5.0, series=True)


def goodput_bps(result: RunResult) -> dict[str, float]:
    return {flow.flow: flow.goodput_bps for flow in result.flows}


@built
@pytest.mark.timeout(100)
def test_a_run_on_linux_is_the_same_twice_and_like_the_simulator_s() -> None:
    first, second = kernel.run(RUN), kernel.run(RUN)
    assert replace(first, wall_s=0.0) == replace(second, wall_s=0.0)
    on_linux, simulated = goodput_bps(first), goodput_bps(sim.run(RUN))
    assert sum(on_linux.values()) == pytest.approx(sum(simulated.values()), rel=0.03)
    assert first.about["runtime"] == "kernel"
    assert {point.metric for point in first.series} >= {"cwnd_packets", "goodput_bps", "srtt_ms", "queue_packets"}
    another = kernel.run(replace(RUN, seed=RUN.seed + 1))
    assert goodput_bps(another) != on_linux


@built
def test_what_this_runtime_has_not_is_said(tmp_path: Path) -> None:
    web = Flow("w", "g", "h1", "h3", app=App("web", arrivals_per_s=1.0, mean_bytes=1000))
    for flow, message in [
        (web, "flow w: --runtime kernel has no application 'web' yet; it has greedy"),
        (replace(RENO, variant="erto"), "loads no host programs yet (erto)"),
        (replace(RENO, window_packets=20), "has no window_packets yet"),
    ]:
        with pytest.raises(RunError) as raised:
            kernel.run(scenario(flow))
        assert message in str(raised.value)
    broken = Machine(tmp_path / "nowhere", cpu=None)
    with pytest.raises(RunError, match="the simulator refuses the configuration: machine"):
        sim.run(RUN, machine=broken)


def test_without_a_kernel_it_says_how_to_build_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(Machine.__init__, "__defaults__", (BUILT / "none", BUILT / "none", None))
    with pytest.raises(
        RunError, match=r"there is no \.setup/kernel/none: `make kernel` builds the kernel of this runtime"
    ):
        make_machine(tmp_path)
