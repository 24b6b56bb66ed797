# SPDX-License-Identifier: Apache-2.0
"""Queues of Linux at a switch's port (`qdisc`), in virtual time. Skipped where no kernel is built (`make kernel`)."""

from __future__ import annotations

import copy
from dataclasses import replace
from statistics import median
from typing import Any

import pytest
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.runners import sim
from fairlane_lab.scenario import App, Flow, Scenario, TcpOptions
from fairlane_lab.sim.kernel import BUILT
from fairlane_topology.links import LinkChange
from sim_scenarios import DUMBBELL, RATE_BPS, RENO, VEGAS, scenario

built = pytest.mark.skipif(not (BUILT / "linux").exists(), reason="no kernel is built: make kernel")
KEYS = Flow("keys", "keys", "h2", "h3", app=App("interactive", bytes=100, interval_s=0.2))
PACKET_S = 8 * 1026 / RATE_BPS
"""Of a full segment on the line: 4.1 ms."""


def behind(qdisc: str, *flows: Flow, **fields: Any) -> Scenario:
    """The paper's dumbbell with a queue of Linux at its bottleneck."""
    topology = copy.deepcopy(DUMBBELL)
    topology["switches"]["s1"]["ports"]["3"] |= {"qdisc": qdisc}
    for number, host in enumerate(topology["hosts"].values(), start=1):
        host["ipv6"] = f"fd00::{number}/64"
    return replace(scenario(*flows, **fields), topology=topology)


def keystroke_s(result: RunResult) -> float:
    """What a message of 100 bytes takes behind the queue, beyond its path of 8 ms."""
    return median(each.completion_s for each in result.transfers if each.start_s > 5) - 0.008


@built
@pytest.mark.parametrize(
    ("qdisc", "delay_s", "sparse_s"),
    [
        ("pfifo limit 50", (30 * PACKET_S, 50 * PACKET_S), (30 * PACKET_S, 50 * PACKET_S)),
        ("bfifo limit 20520", (12 * PACKET_S, 20 * PACKET_S), (12 * PACKET_S, 20 * PACKET_S)),
        ("red limit 100k min 5k max 15k avpkt 1026 probability 0.1", (2 * PACKET_S, 15 * PACKET_S), (0, 15 * PACKET_S)),
        ("codel limit 50", (0.001, 0.015), (0.001, 0.02)),
        ("pie limit 50", (0.005, 0.03), (0.005, 0.03)),
        ("fq limit 50", (30 * PACKET_S, 50 * PACKET_S), (0, 1.2 * PACKET_S)),
        ("fq_codel limit 50", (0.001, 0.015), (0, 1.2 * PACKET_S)),
        ("cake rtt 100ms", (0.001, 0.025), (0, 1.2 * PACKET_S)),
    ],
)
def test_each_queue_of_linux_is_itself(qdisc: str, delay_s: tuple[float, float], sparse_s: tuple[float, float]) -> None:
    """How long Reno's packets wait, and what a flow that sends little waits beside it."""
    result = sim.run_kernel(behind(qdisc, RENO, KEYS))
    (port,) = result.ports
    assert 0.95 < (port.utilisation or 0) < 1.001
    assert port.drops > 0
    assert delay_s[0] < result.values["queue_delay_s"] < delay_s[1]
    assert port.queue_packets == pytest.approx(result.values["queue_delay_s"] * port.throughput_bps / 8 / 1000, rel=0.2)
    assert sparse_s[0] <= keystroke_s(result) < sparse_s[1]


@built
@pytest.mark.parametrize("ipv6", [False, True])
def test_it_marks_follows_its_line_s_rate_and_is_the_same_twice(ipv6: bool) -> None:
    slower = LinkChange(at_s=10.0, link="s1-s2", rate_bps=RATE_BPS // 2)
    run = behind("fq_codel ecn", RENO, VEGAS, changes=(slower,), tcp=TcpOptions(ecn=True, ipv6=ipv6))
    first, second = sim.run_kernel(run), sim.run_kernel(run)
    assert first == second
    (port,) = first.ports
    assert port.rate_bps == pytest.approx(RATE_BPS * (5 + 5) / 15, rel=0.01)
    assert 0.95 < (port.utilisation or 0) < 1.001
    assert first.values["aqm_marked"] > 10
    assert port.drops == 0


@built
def test_its_line_follows_a_function_of_time_as_a_port_of_ours() -> None:
    """The same draws: the line of Linux's queue and that of the port's own queue carry the same, as much as the rate allows."""
    drawn = {"uniform": [RATE_BPS // 4, RATE_BPS], "every_s": 2}

    def result(qdisc: str | None) -> RunResult:
        run = behind("pfifo limit 50", RENO, VEGAS)
        topology = copy.deepcopy(dict(run.topology))
        (link,) = (link for link in topology["links"] if link["a"] == "s1-p3")
        link["bandwidth"] = drawn
        if qdisc is None:
            del topology["switches"]["s1"]["ports"]["3"]["qdisc"]
        return sim.run_kernel(replace(run, topology=topology))

    (theirs,), (ours,) = result("pfifo limit 50").ports, result(None).ports
    assert theirs.rate_bps == ours.rate_bps
    assert 0.97 < (theirs.utilisation or 0) < 1.001
    assert theirs.throughput_bps == pytest.approx(ours.throughput_bps, rel=0.02)


def test_only_the_runtime_kernel_has_queues_of_linux() -> None:
    with pytest.raises(RunError, match="port s1-p3 has a qdisc, which needs fairlane lab run --runtime kernel"):
        sim.run(behind("codel", RENO))
