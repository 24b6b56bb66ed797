# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
"""Rows, tables, statistics and verdicts: worked out by hand from made-up runs."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fairlane_lab.definition.judging import Expectation
from fairlane_lab.definition.strict import Between
from fairlane_lab.paths import REPOSITORY
from fairlane_lab.recording import read_lines
from fairlane_lab.results import tables
from fairlane_lab.results.rows import (
    Row,
    make_rows,
    merged_about,
    natural,
    run_metrics,
    slowdown_metrics,
    with_slowdowns,
)
from fairlane_lab.results.statistics import aggregate, aggregate_ratio, holm
from fairlane_lab.results.tables import Store
from fairlane_lab.results.verdicts import PointRuns, Verdict, judge
from fairlane_lab.run_result import FlowResult, PortResult, RunResult, SeriesPoint, Transfer
from fairlane_lab.scenario import App, Control, Flow, Scenario

PORT = PortResult("s1", 3, 2_000_000, 1.98e6, 0.99, 7, 12.5, values={"qthresh_packets": None})


def flow(name: str, goodput_bps: float, weight: float = 1.0, greedy: bool = True, group: str = "") -> FlowResult:
    return FlowResult(name, group or name, "reno", weight, goodput_bps, 3, 1, 5.0, 9.0, greedy)


def scenario(point: str = "a", repeat: int = 0, threshold: Any = 4) -> Scenario:
    params = {"scheme": "qthresh", "threshold": threshold, "rate_bps": 2_000_000, "offset_s": 0.5}
    flows = (Flow("reno", "reno", "h1", "h3"), Flow("vegas", "vegas", "h2", "h3", "vegas"))
    return Scenario("small", point, params, {}, flows, 20.0, 5.0, control=Control("qthresh", 4), repeat=repeat, seed=7)


def result(reno: float = 1.2e6, vegas: float = 0.6e6) -> RunResult:
    return RunResult([flow("vegas", vegas), flow("reno", reno)], [PORT], virtual_s=20.0, wall_s=0.5, packets=10)


def test_fairness_and_jain_are_of_greedy_flows_by_weight() -> None:
    metrics = run_metrics([flow("a", 1e6), flow("b", 4e6, weight=2.0), flow("web", 9e6, greedy=False)], [PORT], [])
    assert metrics["fairness"] == 0.5
    assert metrics["jain"] == pytest.approx((1 + 2) ** 2 / (2 * (1 + 4)))
    assert metrics["goodput_bps"] == 14e6
    assert (metrics["retransmits"], metrics["timeouts"], metrics["drops"]) == (9, 3, 7)


def test_one_greedy_flow_has_no_fairness_and_no_traffic_is_unfair() -> None:
    assert run_metrics([flow("a", 1e6)], [PORT], [])["fairness"] is None
    assert run_metrics([flow("a", 0.0), flow("b", 0.0)], [PORT], [])["fairness"] == 0.0
    assert [run_metrics([flow(str(i), rate) for i, rate in enumerate(rates)], [PORT], [])["jain"] for rates in ([1.0], [0.0] * 2, [5.0] * 3)] == [None, 0.0, pytest.approx(1.0)]  # fmt: skip


def test_groups_have_means_of_rates_and_sums_of_counts() -> None:
    metrics = run_metrics([flow("v-1", 1e6, group="v"), flow("v-2", 3e6, group="v"), flow("r", 4e6)], [PORT], [])
    assert metrics["goodput_bps[v]"] == 2e6
    assert metrics["share[v]"] == 0.5
    assert metrics["retransmits[v]"] == 6


def test_completion_times_are_of_the_group_and_of_all() -> None:
    transfers = [Transfer("w", "web", 0.0, 1000, time_s) for time_s in (1.0, 2.0, 9.0)]
    metrics = run_metrics([flow("w", 1e3, greedy=False, group="web")], [PORT], transfers)
    assert (metrics["completion_s"], metrics["completion_s[web]"], metrics["transfers[web]"]) == (2.0, 2.0, 3)
    assert metrics["completion_p95_s"] == pytest.approx(8.3)


def test_what_the_run_s_end_cut_is_beyond_any_quantile() -> None:
    flows = [flow("a", 1e3, greedy=False), flow("b", 1e3, greedy=False)]
    transfers = [Transfer("a", "a", 0.0, 1000, time_s) for time_s in (1.0, 2.0)]
    cut = [Transfer(name, name, 0.0, 1000, 3.0, ran_s=2.5, complete=False) for name in ("a", "b")]
    metrics = run_metrics(flows, [PORT], [*transfers, *cut])
    of_groups = [[metrics[f"{name}[{group}]"] for name in ("completion_s", "completion_p95_s", "transfers", "unfinished")] for group in "ab"]  # fmt: skip
    assert of_groups == [[2.0, None, 2, 1], [None, None, 0, 1]]
    assert (metrics["completion_s"], metrics["unfinished"]) == (None, 2)
    young = run_metrics(flows, [PORT], [*transfers, replace(cut[0], completion_s=1.9)])
    assert (young["completion_s"], young["completion_p95_s"]) == (2.0, 1.95), "that one may still take less than 1.95 s"
    assert "transfer_s" not in metrics


def test_a_transfer_of_the_warm_up_is_not_counted_and_a_file_is() -> None:
    app = App(kind="interactive", bytes=100, interval_s=1)
    message = replace(scenario().flows[0], name="message", group="message", app=app, connections=2)
    file = replace(scenario().flows[0], name="file", group="file", app=App(kind="bytes", bytes=9_000))
    given = replace(scenario(), flows=(message, file), warmup_s=10.0)
    transfers = [
        Transfer("message-1", "message", 1.0, 100, 9.0),
        Transfer("message-2", "message", 10.0, 100, 1.0),
        Transfer("file", "file", 0.0, 9_000, 12.0),
    ]
    flows = [flow("message-1", 1e3, group="message"), flow("file", 1e3)]
    rows = make_rows(given, RunResult(flows, [PORT], transfers), "sim", "embedded")
    assert (rows["runs"][0]["completion_s[message]"], rows["runs"][0]["completion_s[file]"]) == (1.0, 12.0)
    assert [row["flow"] for row in rows["transfers"]] == ["file", "message-2"]
    later = make_rows(given, RunResult(flows, [PORT], transfers, cut_s=10.5), "sim", "embedded")["runs"][0]
    assert "completion_s[message]" not in later


def test_the_slowdown_is_over_the_least_time_of_the_flow_s_path() -> None:
    """2 Mbit/s, 2 ms and twice 1 ms each way. A segment of 700 bytes on the empty path takes four frames on three lines besides, and no less."""
    web = replace(
        scenario().flows[0], name="web", app=App(kind="web", arrivals_per_s=1, mean_bytes=5_000), connections=2
    )
    topology = json.loads((REPOSITORY / "mininet" / "topologies" / "dumbbell.json").read_text())
    changed = replace(scenario(), topology=topology, flows=(web, *scenario().flows))
    propagation_s = 2 * 2 * (0.002 + 2 * 0.001)
    least_s = propagation_s + 8 * 96_000 * 1_014 / 960 / 2e6
    alone_s = propagation_s + 8 * (3 * 54 + 754) * (1 / 2e6 + 2 / 10e6)
    given = [
        Transfer("web-2", "web", 0.0, 96_000, 3 * least_s),
        Transfer("reno", "reno", 0.0, 96_000, least_s),
        Transfer("web-1", "web", 0.0, 96_000, least_s, complete=False),
    ]
    assert [each.slowdown for each in with_slowdowns(changed, given)] == [pytest.approx(3), None, None]
    (alone,) = with_slowdowns(changed, [Transfer("web-2", "web", 0.0, 700, alone_s)])
    assert alone.slowdown is not None
    assert 1 < alone.slowdown < 1.2
    metrics = slowdown_metrics(
        [
            replace(each, bytes=size, slowdown=slow)
            for each, size, slow in zip(given, (1_000, 500_000, 2_000_000), (2.0, 3.0, 7.0), strict=True)
        ]
    )
    assert metrics == {
        "slowdown": 4,
        "slowdown_p99": pytest.approx(6.92),
        "slowdown_short": 2,
        "slowdown_short_p99": 2,
        "slowdown_long": 7,
        "slowdown_long_p99": 7,
    }


def test_rows_begin_with_the_key_and_flows_are_in_order_of_their_names() -> None:
    rows = make_rows(scenario(), result(), "sim", "embedded")
    assert list(rows["runs"][0])[:6] == ["experiment", "point", "repeat", "seed", "runtime", "target"]
    assert rows["runs"][0]["threshold"] == "4"
    assert [row["flow"] for row in rows["flows"]] == ["reno", "vegas"]
    assert rows["flows"][1]["share"] == pytest.approx(1 / 3)
    assert "wall_s" not in rows["runs"][0]
    assert sorted(["v-10", "v-9", "v-1"], key=natural) == ["v-1", "v-9", "v-10"]


def test_what_runners_know_is_told_once_or_as_various() -> None:
    assert merged_about([{"a": 1, "b": 2}, {"a": 1, "b": 3}]) == {"a": 1, "b": {"various": [2, 3]}}


def fill(folder: Path, runs: list[tuple[str, int]], batch: int = 100) -> Store:
    store = Store(folder, ["b", "a"])
    for number, (point, repeat) in enumerate(runs):
        one = replace(result(1e6 + repeat), events=[{"event": "threshold", "t_s": 1.0}, {"event": "tuned", "t_s": 2.0}])
        store.add(make_rows(scenario(point, repeat), one, "sim", "embedded"))
        if number % batch == batch - 1:
            store.flush()
    return store


def test_the_order_in_which_runs_finish_leaves_no_trace(tmp_path: Path) -> None:
    runs = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    fill(tmp_path / "one", runs).merge()
    fill(tmp_path / "two", runs[::-1], batch=1).merge()
    for name in ("runs", "flows", "ports", "transfers", "series"):
        first, second = ((tmp_path / folder / f"{name}.parquet").read_bytes() for folder in ("one", "two"))
        assert first == second, name
    table = pq.read_table(tmp_path / "one" / "runs.parquet").to_pylist()
    assert [(row["point"], row["repeat"]) for row in table] == [("b", 0), ("b", 1), ("a", 0), ("a", 1)]
    assert not (tmp_path / "one" / "parts").exists()


def test_many_parts_and_a_run_that_stands_in_two_give_the_same_bytes(tmp_path: Path) -> None:
    runs = [(point, repeat) for repeat in range(10) for point in ("a", "b")]
    fill(tmp_path / "one", runs).merge()
    store = fill(tmp_path / "two", runs, batch=1)
    fill(tmp_path / "two", runs[:2], batch=1)
    store.merge()
    for name in ("runs.parquet", "flows.parquet", "events.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert [(event["point"], event["repeat"]) for event in read_lines(tmp_path / "two" / "events.jsonl")] == [
        (point, repeat) for point in ("b", "a") for repeat in range(10) for _ in range(2)
    ]


def test_batches_appear_whole_and_are_taken_up_again(tmp_path: Path) -> None:
    fill(tmp_path, [("a", 0)]).flush()
    (tmp_path / "parts" / ".00002-1").mkdir()  # a batch that was being written when the power went
    store = fill(tmp_path, [("b", 0), ("a", 0)])
    assert store.finished_runs() == {("a", 0)}
    store.merge()
    assert Store(tmp_path).finished_runs() == {("a", 0), ("b", 0)}
    assert pq.read_table(tmp_path / "flows.parquet").num_rows == 4


def test_columns_have_the_same_types_whatever_the_values(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(make_rows(scenario("a", 0, "auto"), result(), "sim", "embedded"))
    store.merge()
    schema = pq.read_table(tmp_path / "runs.parquet").schema
    types = {name: str(schema.field(name).type) for name in ("threshold", "rate_bps", "fairness", "drops", "qthresh_packets")}  # fmt: skip
    assert types == {"threshold": "string", "rate_bps": "int64", "fairness": "double", "drops": "int64", "qthresh_packets": "double"}  # fmt: skip
    assert pq.read_table(tmp_path / "transfers.parquet").num_rows == 0


def test_the_median_s_interval_is_made_of_order_statistics() -> None:
    found = aggregate([float(value) for value in (3, 1, 2, 5, 4, 10, 9, 8, 7, 6)])
    assert (found.value, found.lo, found.hi, found.min, found.max, found.runs) == (5.5, 2.0, 9.0, 1.0, 10.0, 10)
    three = aggregate([0.9, 0.5, 0.7])
    assert (three.value, three.lo, three.hi) == (0.7, 0.5, 0.9)
    assert aggregate([4.0]).lo == aggregate([4.0]).hi == 4.0


def test_the_mean_s_interval_is_bca_and_stays_where_the_values_are() -> None:
    jain = [0.999, 0.998, 1.0, 1.0, 0.91, 1.0, 0.999, 1.0, 1.0, 1.0]
    found = aggregate(jain, "mean")
    assert found.value == pytest.approx(0.9906)
    assert 0.91 < found.lo < 0.98, "the one low run pulls the lower end down"
    assert 0.995 < found.hi <= 1.0, "Student's t says 1.011"
    assert found == aggregate(jain, "mean"), "a fixed seed"
    few = aggregate([1.0, 2.0, 4.0], "mean")
    assert (few.lo, few.hi) == (1.0, 4.0), "below 6 the range"
    with pytest.raises(ValueError, match="no values"):
        aggregate([])


def test_a_ratio_of_middles_is_not_the_mean_of_pairs_with_tiny_denominators() -> None:
    above = [2.5 + n / 100 for n in range(20)]
    below = [1.2 + n / 100 for n in range(19)] + [0.001]
    mean, middle = (aggregate_ratio(above, below, statistic) for statistic in ("mean", "median"))
    assert mean is not None
    assert middle is not None
    assert mean.value == pytest.approx(statistics.fmean(above) / statistics.fmean(below))
    assert middle.value == pytest.approx(statistics.median(above) / statistics.median(below))
    assert statistics.fmean(a / b for a, b in zip(above, below, strict=True)) > 100
    assert 1.8 < middle.lo < middle.value < middle.hi < 2.4
    assert aggregate_ratio([1.0, 2.0], [0.0, 0.0]) is None


POINTS = [
    PointRuns(f"{case}/threshold={threshold}", {"case": case, "threshold": threshold}, [{"fairness": fair, "utilisation": used, "goodput_bps[a]": 1.0, "goodput_bps[b]": 4.0}])
    for case, threshold, fair, used in [("x", 1, 0.99, 0.8), ("x", 2, 0.9, 0.98), ("x", 3, 0.7, 1.0), ("y", 1, 0.5, 0.99), ("y", 2, 0.6, 0.99)]
]  # fmt: skip


def expectation(**values: Any) -> Expectation:
    return Expectation.model_validate({"text": "t", "metric": "fairness", **values})


def test_the_best_point_is_picked_among_those_that_qualify() -> None:
    best = expectation(min=0.88, over="threshold", per=("case",), given={"utilisation": Between(min=0.97)})
    found = judge([best], POINTS, "sim")
    assert [(v.per, v.points, v.value, v.within) for v in found] == [
        ({"case": "x", "threshold": 2}, ["x/threshold=2"], 0.9, True),
        ({"case": "y", "threshold": 2}, ["y/threshold=2"], 0.6, False),
    ]


def test_the_first_value_that_qualifies_may_itself_be_what_is_bounded() -> None:
    first = expectation(metric="threshold", min=2, max=2, over="threshold", pick="first", per=(), where={"case": "x"}, given={"utilisation": Between(min=0.97)})  # fmt: skip
    assert [(v.value, v.within) for v in judge([first], POINTS, "sim")] == [(2.0, True)]


def test_without_a_pick_the_worst_point_decides() -> None:
    assert [(v.value, v.within) for v in judge([expectation(min=0.6, per=("case",))], POINTS, "sim")] == [(0.7, True), (0.5, False)]  # fmt: skip


def runs(point: str, *values: float, **params: Any) -> PointRuns:
    return PointRuns(
        point, {"case": point} | params, [{"repeat": n, "fairness": value} for n, value in enumerate(values)]
    )


def state(points: list[PointRuns], **values: Any) -> list[tuple[str, bool | None]]:
    return [(verdict.state, verdict.met) for verdict in judge([expectation(**values)], points, "sim")]


def test_a_verdict_needs_enough_runs() -> None:
    good, bad = [0.9 + n / 1000 for n in range(10)], [0.7 + n / 1000 for n in range(10)]
    assert state([runs("a", *good)], min=0.8) == [("met", True)]
    assert state([runs("a", *bad)], min=0.8) == [("not met", False)]
    few = [("too few by design", None)]
    assert state([runs("a", *good[:5])], min=0.8) == few, "chance alone: 1 in 32"
    assert state([runs("a", *good[:6])], min=0.8) == [("met", True)], "1 in 64"
    assert state([runs("a", *bad[:3])], min=0.8) == few
    assert state([runs("a", 0.6, 0.9, 0.7, 0.95, 0.85, 0.5, 0.9, 0.88)], min=0.8) == [("undecided", None)]
    assert state([runs("a", *good)], min=0.8, max=0.95) == [("met", True)]
    assert state([runs("a", *good)], min=0.8, max=0.85) == [("not met", False)]
    assert state([runs("a", *good[:5])], min=0.8, statistic="mean") == few
    assert state([runs("a", *good)], min=0.8, statistic="mean") == [("met", True)]
    assert state([runs("a", *good[:9], 0.01)], min=0.8, statistic="mean") == [("undecided", None)], (
        "nine runs are above, the mean's interval is not"
    )
    assert state([runs("a", *[1.0] * 10)], min=1.0) == [("met", True)], "what is on the bound is within"


@pytest.mark.parametrize("statistic", ["min", "max"])
def test_a_verdict_on_every_run_is_refuted_by_one_and_shown_for_a_share_of_all(statistic: str) -> None:
    bound = {"min": 0.8} if statistic == "min" else {"max": 0.95}
    good = [0.9 + n / 1000 for n in range(20)]
    assert state([runs("a", *good)], statistic=statistic, **bound) == [("met", True)], "0.75 ** 20 = 0.003"
    assert state([runs("a", *good[:12])], statistic=statistic, **bound) == [("undecided", None)], "0.75 ** 12 = 0.03"
    outside = 0.5 if statistic == "min" else 0.99
    assert state([runs("a", *good[:9], outside)], statistic=statistic, **bound) == [("not met", False)]
    assert state([runs("a", *good[:4], outside)], statistic=statistic, **bound) == [("too few by design", None)]


@pytest.mark.parametrize("statistic", ["min", "max"])
@pytest.mark.parametrize("outside", [0.1, 0.9])
def test_the_value_of_a_verdict_on_every_run_is_the_run_farthest_outside(statistic: str, outside: float) -> None:
    asked = expectation(min=0.2, max=0.5, statistic=statistic)
    (found,) = judge([asked], [runs("a", outside, *[0.4] * 19)], "sim")
    assert (found.state, found.value, found.within) == ("not met", outside, False)


def test_all_expectations_of_a_page_are_one_family() -> None:
    seven, eleven = ([0.9 + n / 1000 for n in range(count)] for count in (7, 11))

    def states(values: list[float], sentences: int) -> set[str]:
        asked = [expectation(text=f"{n}", min=0.8) for n in range(sentences)]
        return {verdict.state for verdict in judge(asked, [runs("a", *values)], "sim")}

    assert states(seven, 1) == {"met"}
    assert states(seven, 10) == {"too few by design"}, "ten chances of 1 in 128: no seven runs could"
    assert states(eleven, 10) == {"met"}
    (found,) = judge([expectation(min=0.8, per=())], [runs(f"p{n}", *seven) for n in range(10)], "sim")
    assert found.state == "met", "one sentence that all ten points have to be within: each is"


def test_where_others_are_decided_too_few_by_design_is_of_the_runs_not_of_what_they_say() -> None:
    asked = [expectation(text=f"{n}", min=0.8) for n in range(5)]
    mixed = [0.9, 0.7] * 4 + [0.9] * 2
    assert {found.state for found in judge(asked, [runs("a", *mixed)], "sim")} == {"undecided"}
    (found, *_) = judge(asked, [runs("a", *mixed[:7])], "sim")
    assert found.state == "too few by design"


def test_a_picked_point_is_judged_by_the_runs_that_did_not_pick_it() -> None:
    lucky = [0.99 if n % 2 == 0 else 0.5 for n in range(20)]
    plain = [0.8 + n / 1000 for n in range(20)]
    points = [runs("lucky", *lucky, threshold=1), runs("plain", *plain, threshold=2)]
    (found,) = judge([expectation(min=0.9, over="threshold", per=())], points, "sim")
    assert (found.points, found.value, found.runs, found.state) == (["lucky"], 0.5, 10, "not met")


def test_a_bound_on_the_picked_parameter_is_judged_by_what_each_run_picks() -> None:
    used = {1: 0.9, 2: 0.99, 3: 1.0}
    points = [
        PointRuns(f"{n}", {"threshold": n}, [{"repeat": run, "utilisation": use - (0.1 if run == 0 else 0)} for run in range(10)])
        for n, use in used.items()
    ]  # fmt: skip
    first = {
        "metric": "threshold",
        "over": "threshold",
        "pick": "first",
        "per": (),
        "given": {"utilisation": Between(min=0.97)},
    }
    (found,) = judge([expectation(min=2, max=2, **first)], points, "sim")
    assert (found.value, found.runs, found.state) == (2.0, 10, "met"), "in run 0 nothing qualifies: 9 of 10"
    none = first | {"given": {"utilisation": Between(min=2)}}
    (found,) = judge([expectation(min=2, max=2, **none)], points, "sim")
    assert (found.value, found.state) == (None, "not met")


def test_a_ratio_is_of_pairs() -> None:
    base = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    one = runs("x/a", *base, scheme="a", case="x")
    two = runs("x/b", *(value * 0.9 for value in base), scheme="b", case="x")
    asked = {"max": 0.95, "where": {"scheme": "b"}, "relative_to": {"scheme": "a"}}
    assert state([one, two], **asked) == [("met", True)], "0.9 in every pair, although the runs differ eightfold"
    (found,) = judge([expectation(**asked)], [one, two], "sim")
    assert (found.value, found.lo, found.hi) == (pytest.approx(0.9), pytest.approx(0.9), pytest.approx(0.9))
    shuffled = PointRuns(two.point, two.params, list(reversed(two.rows)))
    assert state([one, shuffled], **asked) == [("met", True)], "by their repeat, not by their place"


def test_a_mean_over_points_is_of_the_same_runs_where_one_is_missing() -> None:
    taking_turns = [0.0, 2.0] * 5
    points = [runs(f"{n}", *taking_turns, threshold=n) for n in (1, 2)]
    points[1] = PointRuns("2", points[1].params, points[1].rows[1:])
    (found,) = judge([expectation(max=3, over="threshold", pick="mean", per=())], points, "sim")
    assert (found.value, found.runs) == (2.0, 9), "run 1 with run 1: five have 2, four have 0; not 1 in each"


def after_a_spike(point: str, *values: float | None, **params: Any) -> PointRuns:
    """Runs that recover after so many seconds; None: never."""
    rows = [{"repeat": n, "recovery_s": value, "after_spike_bytes": 1.0} for n, value in enumerate(values)]
    return PointRuns(point, {"case": point} | params, rows)


def test_a_run_in_which_it_never_came_is_beyond_any_bound() -> None:
    def verdict(values: list[float | None], statistic: str = "median") -> Verdict:
        asked = expectation(metric="recovery_s", max=1.0, statistic=statistic)
        return judge([asked], [after_a_spike("a", *values)], "sim")[0]

    half = verdict([0.5] * 10 + [None] * 10)
    assert (half.state, half.value, half.within, half.runs, half.never) == ("undecided", None, False, 20, 10)
    most = verdict([0.5] + [None] * 19)
    assert (most.state, most.value, most.never) == ("not met", None, 19)
    few: list[float | None] = [0.5] * 18 + [None] * 2
    assert (verdict(few).state, verdict(few).value, verdict(few).runs) == ("met", 0.5, 20)
    assert (verdict(few, "mean").state, verdict(few, "mean").value) == ("undecided", None), "a mean is infinite"
    assert verdict(few, "max").state == "not met", "one run is outside"
    without = after_a_spike("a", *[0.5] * 20)
    for row in without.rows[:10]:
        row.update(recovery_s=None, after_spike_bytes=None)
    (found,) = judge([expectation(metric="recovery_s", max=1.0)], [without], "sim")
    assert (found.runs, found.never) == (10, 0), "a run without a spike measured none"


def test_what_never_came_in_a_group_is_beyond_any_bound_there() -> None:
    rows: list[Row] = [
        {"repeat": n, "completion_s[a]": 1.0 if n < 8 else None, "unfinished": 0 if n < 8 else 1} for n in range(20)
    ]
    with_groups: list[Row] = [{**row, "unfinished[a]": row["unfinished"]} for row in rows]
    without: list[Row] = [{**row, "unfinished[a]": 0 if row["completion_s[a]"] else None} for row in rows]
    asked = expectation(metric="completion_s[a]", max=2.0)
    for given, wanted in ((rows, ("undecided", 12)), (with_groups, ("undecided", 12)), (without, ("met", 0))):
        (found,) = judge([asked], [PointRuns("a", {"case": "a"}, given)], "sim")
        assert (found.state, found.never) == wanted


@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_a_ratio_of_what_never_came_is_undecided_where_neither_came(statistic: str) -> None:
    comes: list[float | None] = [0.5 + n / 100 for n in range(20)]
    never: list[float | None] = [None] * 20

    def verdict(values: list[float | None], others: list[float | None]) -> Verdict:
        asked = {"metric": "recovery_s", "max": 1.0, "where": {"scheme": "b"}, "relative_to": {"scheme": "a"}}
        points = [
            after_a_spike(scheme, *each, scheme=scheme, case="x") for scheme, each in (("a", others), ("b", values))
        ]
        return judge([expectation(statistic=statistic, **asked)], points, "sim")[0]

    slower = verdict(never, comes)
    assert (slower.state, slower.value, slower.within, slower.never) == ("not met", None, False, 20)
    assert (verdict(comes, never).state, verdict(comes, never).value) == ("met", 0.0)
    neither = verdict(never, never)
    assert (neither.state, neither.value, neither.within, neither.runs) == ("undecided", None, None, 20)
    slow = [7 * value for value in comes if value]
    survivors = verdict([*comes[:4], *never[:16]], [*slow[:4], *comes[4:]])
    assert (survivors.state, survivors.never) == ("not met", 16), "the four that came were faster"


def test_holm() -> None:
    assert holm((0.01, 0.04, 0.03)) == pytest.approx((0.03, 0.06, 0.06))
    assert holm(()) == ()


def test_a_quotient_of_two_groups_and_a_bound_from_above() -> None:
    ratio = expectation(metric="goodput_bps[a] / goodput_bps[b]", max=0.3, where={"case": "x", "threshold": 1})
    assert [(v.value, v.within) for v in judge([ratio], POINTS, "sim")] == [(0.25, True)]


def test_a_value_may_be_relative_to_another_scheme_in_the_same_world() -> None:
    rows = [("drop_tail", 2, 0.4), ("qthresh", 2, 0.1), ("drop_tail", 5, 1.0), ("qthresh", 5, 0.9)]
    points = [PointRuns(f"{s}/{r}", {"scheme": s, "rate_bps": r}, [{"completion_s": v}]) for s, r, v in rows]
    faster = expectation(metric="completion_s", max=0.7, where={"scheme": "qthresh"}, relative_to={"scheme": "drop_tail"})  # fmt: skip
    assert [(v.value, v.within) for v in judge([faster], points, "sim")] == [(0.25, True), (0.9, False)]
    assert [v.within for v in judge([faster], points[1:2], "sim")] == [None]


def test_a_metric_may_be_divided_by_a_parameter() -> None:
    points = [PointRuns("n", {"flows": 4}, [{"n_c": 5.0, "flows": 4}])]
    assert [v.value for v in judge([expectation(metric="n_c / flows", max=1.5)], points, "sim")] == [1.25]


def test_the_largest_window_is_of_the_measured_time_and_of_sampled_runs() -> None:
    sampled = result()
    sampled.series = [
        SeriesPoint(t_s, "reno", "cwnd_packets", value) for t_s, value in [(1.0, 99.0), (6.0, 7.0), (9.0, 9.0)]
    ]
    rows = make_rows(scenario(), sampled, "sim", "embedded")
    assert rows["runs"][0]["cwnd_peak_packets[reno]"] == 9.0
    assert [row["cwnd_peak_packets"] for row in rows["flows"]] == [9.0, None]
    assert make_rows(scenario(), result(), "sim", "embedded")["runs"][0]["cwnd_peak_packets[reno]"] is None


def test_nothing_measured_is_no_verdict_and_other_runtimes_are_left_out() -> None:
    assert [v.within for v in judge([expectation(min=0.1, where={"case": "z"})], POINTS, "sim")] == [None]
    assert judge([expectation(min=0.1, runtimes=("mininet",))], POINTS, "sim") == []
    none = expectation(min=0.1, over="threshold", per=(), given={"utilisation": Between(min=2.0)})
    assert [(v.value, v.within) for v in judge([none], POINTS, "sim")] == [(None, False)]


def test_an_archive_has_seven_digits_of_what_was_measured_and_all_of_a_parameter(tmp_path: Path) -> None:
    values = {
        "goodput_bps": [0.1, 123456.789012, math.nan, None],
        "loss": [0.1, 1 / 3, 0.0, None],
        "drops": [2**40, 1, 2, 3],
    }
    kinds = {"goodput_bps": pa.float64(), "loss": pa.float64(), "drops": pa.int64()}
    table = pa.table({name: pa.array(column, kinds[name]) for name, column in values.items()})
    tables.write_small(tmp_path / "small.parquet", table, {"fairlane": "about"})
    back = tables.read(tmp_path / "small.parquet")
    assert back is not None
    assert back.schema.types == table.schema.types
    assert back["goodput_bps"].to_pylist()[:2] == [0.1, 123456.79]
    assert math.isnan(back["goodput_bps"].to_pylist()[2])
    assert back["goodput_bps"].to_pylist()[3] is None
    assert back.select(["loss", "drops"]).equals(table.select(["loss", "drops"]))
