# SPDX-License-Identifier: Apache-2.0
"""Real, short runs of the Mininet runner: what several scenarios on one running network must not leave behind. Needs root."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from fairlane_controller.state.ask import ask
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.runners.mininet import MininetOptions, run_many
from fairlane_lab.scenario import App, Control, Flow, Scenario, TcpOptions
from fairlane_topology import state as fl_state
from test_lab_mininet_plan import RENO, VEGAS, document, scenario

pytestmark = pytest.mark.kernel

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
    options = MininetOptions(first_instance=99, parallel=1)
    run_many(runs, options, lambda one, result: found.__setitem__(one.point, result))
    for order, window in enumerate(windows):
        result = found[f"run {order}"]
        if isinstance(result, RunError) and "times in a row" in str(result):  # every attempt was void
            pytest.skip(f"no verdict: {result}")
        assert isinstance(result, RunResult), result
        for flow in result.flows:  # a timer that a busy machine made fire takes one of two packets for a moment
            assert flow.cwnd_packets is not None
            assert abs(flow.cwnd_packets - window) < 0.5, (order, flow)


@needs_root
def test_a_run_whose_links_die_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no result."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    run = replace(scenario(RENO, point="cut"), duration_s=60.0)
    found: list[RunResult | RunError] = []
    killed: list[int] = []

    def kill_network(text: str) -> None:
        if text == "cut" and not killed:
            state = fl_state.read("99")
            assert state is not None
            killed.extend(process["pid"] for process in state["pids"] if process["what"] == "fairlane-switch network")
            os.kill(killed[0], signal.SIGKILL)

    run_many([run], MininetOptions(first_instance=99, parallel=1), lambda _, result: found.append(result), kill_network)
    (problem,) = found
    assert isinstance(problem, RunError)
    assert str(problem) == "cut: in the middle of the run fairlane-switch network was killed by signal 9"


@needs_root
def test_each_network_of_a_batch_has_a_loop_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the runs last, a loop answers for the switches of each network; without it a run has the threshold of its start only."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    rates_bps = {"slow": 1_000_000, "fast": 4_000_000}
    runs = [
        replace(scenario(point=point, topology=document(rate_bps), control=Control("qthresh", "auto")), duration_s=3.0, warmup_s=1.0)
        for point, rate_bps in rates_bps.items()
    ]  # fmt: skip
    found: dict[str, RunResult | RunError] = {}
    served: dict[str, dict[str, bool]] = {}

    def ask_loops(text: str) -> None:
        if text == "slow, fast":  # both have begun
            for network in fl_state.instances():
                rows = asyncio.run(ask(fl_state.folder(network), {"op": "status"}))
                served[network] = {row["switch"]: row["connected"] for row in rows}

    options = MininetOptions(first_instance=98, parallel=2)
    run_many(runs, options, lambda one, result: found.__setitem__(one.point, result), ask_loops)
    for point in rates_bps:  # a run that a busy machine made void has had its loop all the same
        result = found[point]
        assert isinstance(result, RunResult) or "times in a row" in str(result), result
    assert served == {"98": {"s1": True, "s2": True}, "99": {"s1": True, "s2": True}}


@needs_root
@pytest.mark.skipif(shutil.which("socat") is None, reason="no socat is installed, the proxy")
def test_a_proxy_is_a_middle_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """50 kB by way of socat on h2 take at least their time on the line; what the proxy has started ends with the run; a program that fails is told."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    near = ("socat", "-t", "60", "OPEN:/dev/zero,readbytes={bytes}", "TCP:{receiver}:{port}")
    far = ("socat", "-t", "60", "TCP-LISTEN:{near.port},fork", "TCP:{receiver}:{port}")
    sink = ("socat", "-u", "TCP-LISTEN:{port},fork", "OPEN:/dev/null")
    flows = (
        Flow("near", "near", "h1", "h2", app=App("command", command=near, bytes=50_000), start_s=0.5),
        Flow("far", "far", "h2", "h3", app=App("command", command=far, receiver_command=sink)),
    )
    run = replace(scenario(*flows, point="proxy", topology=document(1_000_000)), duration_s=3.0, warmup_s=0.2)
    greedy = replace(run, point="cut", flows=(replace(flows[0], app=replace(flows[0].app, bytes=10**9)), flows[1]))
    alone = replace(flows[0], app=replace(flows[0].app, receiver_command=("socat", "-u", "TCP:{sender}:9", "STDOUT")))
    broken = replace(run, point="broken", flows=(alone,))
    found: dict[str, RunResult | RunError] = {}
    options = MininetOptions(first_instance=99, parallel=1)
    run_many([run, greedy, broken], options, lambda one, result: found.__setitem__(one.point, result))
    for point in ("proxy", "cut"):
        if "times in a row" in str(found[point]):
            pytest.skip(f"no verdict: {found[point]}")
    result, cut = found["proxy"], found["cut"]
    assert isinstance(result, RunResult), result
    (transfer,) = result.transfers
    on_line_s = 50_000 * 8 / 1_000_000
    assert (transfer.flow, transfer.bytes) == ("near", 50_000)
    assert on_line_s < transfer.completion_s < 2.0
    assert isinstance(cut, RunResult), cut
    assert not cut.transfers
    assert 300_000 < {flow.flow: flow.goodput_bps for flow in cut.flows}["far"] < 1_000_000
    assert str(found["broken"]).startswith("broken: flow near: its command ended with exit code 1: ")
    assert "Connection refused" in str(found["broken"])
    left = [
        process.read_bytes()
        for process in Path("/proc").glob("[0-9]*/cmdline")
        if b"TCP-LISTEN:600" in process.read_bytes()
    ]
    assert left == []
