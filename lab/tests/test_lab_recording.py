# SPDX-License-Identifier: Apache-2.0
"""What every runtime's records of a run have in common: samples, and a result that is made of them."""

from __future__ import annotations

import numpy as np
import pytest
from fairlane_lab.measures import NOTHING, Samples
from fairlane_lab.programs import find_part
from fairlane_lab.recording import FlowRecord, PortRecord, Recording, make_result, make_transfer
from fairlane_lab.scenario import App, Flow, Scenario
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import TOPOLOGIES

RENO = Flow("reno", "reno", "h1", "h3")


def test_samples_are_read_in_between_and_what_is_unknown_counts_nowhere() -> None:
    bytes_so_far = Samples.of([(0.0, 0.0), (1.0, 100.0), (3.0, 500.0)])
    assert bytes_so_far.grown(0.5, 2.0) == 250.0
    assert bytes_so_far.grown(2.0, 9.0) == 200.0, "it does not grow after the last sample"
    assert bytes_so_far.rates().points == [(1.0, 800.0), (3.0, 1600.0)]
    assert bytes_so_far.every(2).points == [(0.0, 0.0), (3.0, 500.0)]
    window = Samples.of([(0.0, 9.0), (1.0, 2.0), (2.0, 0.0), (3.0, 4.0)])
    known = window.where(window.values > 0)
    assert known.points == [(0.0, 9.0), (1.0, 2.0), (3.0, 4.0)]
    assert known.mean(0.0, 3.0) == 3.0, "the window begins after its start"
    assert (known.mean(3.0, 9.0), NOTHING.mean(0.0, 9.0), NOTHING.grown(0.0, 9.0)) == (None, None, 0.0)


def test_a_result_of_records() -> None:
    topology = fl_topology.check(fl_topology.read(TOPOLOGIES / "dumbbell.json"))
    scenario = Scenario("t", "p", {}, {}, (RENO,), 10.0, 2.0, series=True)
    times = np.arange(0.0, 10.01, 0.5)
    received, sent = Samples(times, 1e5 * times), Samples(times, 1.2e5 * times)
    cwnd = Samples(times, np.where(times > 2, 4.0, 20.0))
    flow = FlowRecord("reno", RENO, "reno", received, received, 960, {"retransmits": Samples(times, times)}, cwnd)
    port = PortRecord(("s1", 3), [(0.0, 1e6), (6.0, 2e6)], sent, sent, Samples(times, 2 * times), cwnd, sent)
    seen = Recording(scenario, topology, 2.0, 10.0, [flow], [port], rate_step_s=1.0)
    result = make_result(seen, find_part("codel"), virtual_s=10.0)
    (made,), (out,) = result.flows, result.ports
    assert (made.goodput_bps, made.retransmits, made.timeouts, made.cwnd_packets) == (8e5, 8, None, 4.0)
    assert (out.rate_bps, out.drops, out.queue_packets) == (1_500_000, 16, 4.0)
    assert out.utilisation == pytest.approx(0.96 / 1.5)
    rates = [point for point in result.series if (point.flow, point.metric) == ("reno", "goodput_bps")]
    assert [(point.t_s, point.value) for point in rates[:2]] == [(0.5, 8e5), (1.5, 8e5)]


def test_a_transfer_is_the_same_from_every_runtime() -> None:
    file = Flow("file", "file", "h1", "h3", app=App("bytes", bytes=1000))
    times = {"start_ns": 1_000_000_000, "end_ns": 3_000_000_000, "bytes": 1000, "retransmits": 1}
    simulated = make_transfer("file", file, {**times, "first_sent_ns": 2_000_000_000, "segments": 3}, complete=True)
    sent = {name: value + 9_000_000_000 if name.endswith("_ns") else value for name, value in times.items()}
    real = make_transfer("file", file, {**sent, "first_ns": 11_000_000_000, "packets": 3}, 9.0, complete=True)
    assert simulated == real
    assert (real.ran_s, real.packets) == (1.0, 3)
