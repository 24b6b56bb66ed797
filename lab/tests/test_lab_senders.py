# SPDX-License-Identifier: Apache-2.0
"""Metrics of senders' experiments: the satellite's ceiling, recoveries after a spike, files that are cut, what is relative to another sender."""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import replace
from typing import Any

import pytest
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.judging import Expectation, Relative
from fairlane_lab.definition.loading import load, load_text
from fairlane_lab.measures import Path as Line
from fairlane_lab.measures import Samples, carried_bps, ceiling_bps, ceiling_of, recovery_s, segment_error
from fairlane_lab.paths import EXPERIMENTS
from fairlane_lab.problems import ExperimentError
from fairlane_lab.results.rows import file_metrics, spike_metrics, values_of
from fairlane_lab.results.summary import add_relative
from fairlane_lab.results.verdicts import PointRuns, judge
from fairlane_lab.run_result import FlowResult, PortResult, Transfer
from fairlane_lab.testbed.grouping import Group, Job, split

GEO = Line(1_544_000, 0.59, 0.58, 0.0)


def test_a_segment_is_hit_as_often_as_its_bits() -> None:
    assert segment_error(1e-5, 552) == pytest.approx(0.0432, abs=2e-4)  # algorithms, section 3
    assert segment_error(1e-6, 552) == pytest.approx(4.4e-3, rel=0.01)
    assert segment_error(0.0, 552) == 0


def test_the_ceiling_of_a_long_file_is_the_window_or_the_line() -> None:
    small = ceiling_bps(10**9, GEO, 512, 65_536, 1, 40)
    assert small == pytest.approx(8 * 65_536 / 0.59, rel=0.01)  # (3) of the ENA paper
    large = ceiling_bps(10**9, GEO, 512, 112_640, 1, 40)
    assert large == pytest.approx(1_544_000 * 512 / 552, rel=0.01)
    hit = ceiling_bps(10**9, Line(1_544_000, 0.59, 0.58, 1e-5), 512, 112_640, 1, 40)
    assert hit / large == pytest.approx(1 - segment_error(1e-5, 552), rel=1e-3)
    payload = ceiling_bps(10**9, Line(1_544_000, 0.59, 0.58, 1e-5, "payload"), 512, 112_640, 1, 40)
    assert payload / large == pytest.approx(1 - segment_error(1e-5, 512), rel=1e-3)


def test_the_ceiling_of_a_short_file_is_slow_start() -> None:
    rounds = 5  # 1 + 2 + 4 + 8 + 16 segments
    assert 8 * 31 * 512 / ceiling_bps(31 * 512, GEO, 512, 112_640, 1, 40) == pytest.approx(rounds * 0.59)


def test_only_a_file_alone_has_a_ceiling() -> None:
    satellite = expand(load("ena-fig5"))[0]
    assert ceiling_of(satellite) == pytest.approx(207e3, rel=0.02)
    assert ceiling_of(expand(load("bcr-fig4"))[0]) is None
    assert ceiling_of(expand(load("fasttcp-fig1"))[0]) is None  # many files at a time


def test_a_recovery_ends_where_the_new_rate_is_reached() -> None:
    rate_bps = 800_000.0
    slow = [(t / 10, 10_000.0 * t / 10) for t in range(101)]  # 80 kbit/s until 10 s, then all of it
    fast = [(10 + t / 10, 100_000 + 100_000.0 * t / 10) for t in range(1, 51)]
    assert recovery_s(Samples.of([*slow, *fast]), 8.0, rate_bps) == pytest.approx(1.9, abs=0.11)
    assert recovery_s(Samples.of(slow), 8.0, rate_bps) is None
    assert recovery_s(Samples.of([]), 8.0, rate_bps) is None
    burst = [(t / 10, 0.0 if t <= 80 else 200_000.0) for t in range(101)]  # what the spike held back, and nothing else
    assert recovery_s(Samples.of(burst), 8.0, rate_bps) is None
    assert carried_bps(1_014_000, 960) == 960_000


def test_cut_files_count_for_throughput_and_the_mean_time_is_not_known() -> None:
    done = Transfer("f", "f", 0.0, 1000, 1.5, ran_s=1.0, packets=4)
    cut = Transfer("f", "f", 0.0, 500, 2.5, ran_s=2.0, packets=9, complete=False)
    metrics = file_metrics([done, cut])
    assert metrics == {"transfer_bps": (8000 + 2000) / 2, "packets_sent": 4}
    assert file_metrics([done])["transfer_s"] == 1.0
    assert file_metrics([Transfer("web", "web", 0.0, 1000, 1.5)]) == {}
    assert file_metrics([cut]) == {"transfer_bps": 2000.0}
    assert values_of([file_metrics([cut]), {}], "transfer_s") == [math.inf, None], "never finished, and no file at all"


def test_the_slowest_recovery_counts_and_none_if_one_never_comes() -> None:
    def flow(name: str, recovery: float | None) -> FlowResult:
        flow = FlowResult(name, name, "erto", 1.0, 1e6, 0, 0, 1.0, 1.0)
        return replace(flow, after_spike_bytes=10.0, after_spike_retransmits=2, recovery_s=recovery)

    port = PortResult("s1", 1, 1, 1.0, 1.0, 0, 1.0, after_spike_drops=7)
    both = spike_metrics([flow("a", 0.5), flow("b", 1.5)], [port])
    assert both == {
        "after_spike_bytes": 20.0,
        "after_spike_retransmits": 4,
        "after_spike_drops": 7,
        "recovery_s": 1.5,
    }
    assert spike_metrics([flow("a", 0.5), flow("b", None)], [port])["recovery_s"] is None
    estimates = replace(flow("a", 0.5), bw_est_bps=4e5, bw_est_ratio=0.8)
    assert spike_metrics([estimates], [port])["bw_est_ratio"] == 0.8
    assert "bw_est_bps" not in spike_metrics([estimates, flow("b", 1.0)], [port]), "one of them is not known"
    assert spike_metrics([FlowResult("c", "c", "reno", 1.0, 1e6, 0, 0, 1.0, 1.0)], [port]) == {}


def points(*values: tuple[str, str, str, float]) -> list[PointRuns]:
    found: list[PointRuns] = []
    for sender, control, case, value in values:
        params = {"sender": sender, "variant": sender, "control": control, "case": case}
        found.append(PointRuns(f"{case}/{sender}/{control}", params, [{"repeat": 0, "goodput_bps": value}]))
    return found


def test_a_metric_is_relative_to_the_same_repeat_of_another_sender() -> None:
    made = points(("org", "a", "x", 100), ("nss", "a", "x", 150), ("org", "b", "x", 10), ("nss", "b", "x", 30))
    add_relative(made, [Relative(name="relative_goodput", metric="goodput_bps", to={"sender": "org"})])
    assert [point.rows[0]["relative_goodput"] for point in made] == [1.0, 1.5, 1.0, 3.0]


def test_beside_another_scheme_the_sender_stays_the_same() -> None:
    made = points(("org", "a", "x", 100), ("nss", "a", "x", 150), ("org", "b", "x", 50), ("nss", "b", "x", 30))
    bound = Expectation(
        text="t", metric="goodput_bps", max=0.5, where={"control": "b"}, relative_to={"control": "a"}, per=("sender",)
    )
    verdicts = judge([bound], made, "sim")
    assert [(v.per["sender"], v.value, v.within) for v in verdicts] == [("org", 0.5, True), ("nss", 0.2, True)]


def test_the_mean_over_cases_is_one_verdict() -> None:
    made = points(
        ("bcr", "a", "up", 90), ("bcr", "a", "down", 120), ("erto", "a", "up", 100), ("erto", "a", "down", 100)
    )
    bound: dict[str, Any] = {"text": "t", "metric": "goodput_bps", "where": {"sender": "bcr"}, "over": "case"}
    bound |= {"pick": "mean", "per": ("control",), "relative_to": {"sender": "erto"}, "min": 1.0}
    (verdict,) = judge([Expectation(**bound)], made, "sim")
    assert (verdict.value, verdict.within) == (pytest.approx(1.05), True)


def test_who_asks_for_another_figure_is_shown_the_experiment_that_has_it() -> None:
    with pytest.raises(ExperimentError, match=r"no experiment 'bcr-fig5'\. Did you mean 'bcr-fig4'"):
        load("bcr-fig5")


def test_senders_of_a_pair_meet_the_same_world() -> None:
    runs = expand(load("bcr-fig4"), Selection(repeats=2, values={"loss": (0.01,)}))
    seeds = {(run.params["case"], run.repeat): set[int]() for run in runs}
    for run in runs:
        seeds[run.params["case"], run.repeat].add(run.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len({seed for found in seeds.values() for seed in found}) == 2  # one a repeat


def test_several_files_need_an_interval() -> None:
    text = (
        (EXPERIMENTS / "fasttcp-fig1.toml")
        .read_text()
        .replace('interval_s = "flows.file.app.interval_s"', "interval_s = []")
    )
    with pytest.raises(ExperimentError, match=r"times above 1 also need interval_s"):
        load_text(text, "x.toml")


def test_networks_alike_run_side_by_side_as_far_as_their_rates_allow() -> None:
    runs = expand(load("ena-fig10"), Selection(runtime="mininet", repeats=1))
    jobs = [Job(run, order) for order, run in enumerate(runs)]

    def group() -> Group:
        return Group(json.loads("{}"), "qthresh", 1, 1_544_000, 566, deque(jobs))

    apart = split([group()], 12, 20_000_000)
    assert sorted(job.order for one in apart for job in one.jobs) == list(range(len(jobs)))
    assert [len(one.jobs) for one in apart] == [1] * len(jobs)
    assert len(split([group()], 12, 5_000_000)) == 3
    assert len(split([group()], 1, 20_000_000)) == 1
