# SPDX-License-Identifier: Apache-2.0
"""Comparison of two runs, and the statistics of window traces; from invented values whose statistics are known."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from fairlane_lab.report import RunFolderError, compare_runs, compare_table, open_run, trace_statistics
from fairlane_lab.report.differences import difference_interval
from fairlane_lab.report.run_folder import Spread
from fairlane_lab.report.traces import read_traces, turns, weighted_quantile
from report_folders import make_folder, text_of
from rich.console import Console

TABLE1 = text_of("qthresh-table1")
TABLE2 = TABLE1.replace('name = "qthresh-table1"', 'name = "other"').replace('"512k-5ms"', '"another"')


def printed(comparison_width: int, table: object) -> str:
    out = io.StringIO()
    Console(file=out, width=comparison_width).print(table)
    return out.getvalue()


def test_a_run_compared_with_itself_is_the_same(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "a", TABLE1)
    comparison = compare_runs(folder, folder)
    assert comparison.same
    assert not any(row.outside for row in comparison.rows)
    assert "every number is the same" in printed(80, compare_table(comparison))


def test_values_differences_and_ranges_of_both_runs(tmp_path: Path) -> None:
    first, second = (make_folder(tmp_path / name, TABLE1, name, repeats=6) for name in ("sim", "mininet"))
    comparison = compare_runs(first, second)
    assert (comparison.a, comparison.b) == ("sim", "Mininet")
    row = next(row for row in comparison.rows if (row.point, row.metric) == ("2M-2ms", "utilisation"))
    assert (row.a, row.b) == pytest.approx((0.995, 0.985))
    assert row.difference == pytest.approx(-0.01 / 0.995)
    assert row.outside
    a, b = (open_run(folder).points[2].metrics["fairness"] for folder in (first, second))
    fairness = next(row for row in comparison.rows if (row.point, row.metric) == ("2M-2ms", "fairness"))
    assert (fairness.a_lo, fairness.a_hi, fairness.b_lo, fairness.b_hi) == (a.lo, a.hi, b.lo, b.hi)
    assert fairness.outside == (a.hi < b.lo or b.hi < a.lo)
    assert not comparison.same


def test_the_table_has_the_main_metrics_and_fits_80_columns(tmp_path: Path) -> None:
    first, second = (make_folder(tmp_path / f"s{seed}", TABLE1, seed=seed) for seed in (1, 2))
    comparison = compare_runs(first, second)
    assert (comparison.a, comparison.b) == ("seed 1", "seed 2")
    text = printed(80, compare_table(comparison))
    assert "goodput, reno (kbit/s)" in text
    assert max(map(len, text.splitlines())) <= 80
    only = printed(80, compare_table(comparison, metrics=["utilisation"], only_outside=True))
    assert "goodput" not in only


def test_json_has_flat_rows_and_what_could_not_be_compared(tmp_path: Path) -> None:
    first, second = make_folder(tmp_path / "a", TABLE1), make_folder(tmp_path / "b", TABLE2)
    document = json.loads(json.dumps(compare_runs(first, second).as_json(), allow_nan=False))
    assert document["only_a"] == ["512k-5ms"]
    assert document["only_b"] == ["another"]
    assert {"point", "metric", "a", "a_lo", "a_hi", "b", "b_lo", "b_hi", "difference", "outside"} == set(document["rows"][0])  # fmt: skip


def test_runs_without_a_common_point_are_refused_with_their_names(tmp_path: Path) -> None:
    second = TABLE1.replace('name = "qthresh-table1"', 'name = "other"')
    for label in ("512k-5ms", "1.5M-2ms", "2M-2ms", "5M-2ms"):
        second = second.replace(f'"{label}"', f'"x{label}"')
    folders = make_folder(tmp_path / "a", TABLE1, repeats=1), make_folder(tmp_path / "b", second, repeats=1)
    with pytest.raises(RunFolderError, match=r"\(qthresh-table1\) and .* \(other\) have no point"):
        compare_runs(*folders)


def saw_tooth(
    periods: int = 10, low: float = 10, high: float = 20, step_s: float = 0.1
) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """From `low` up by 0.5 each 0.1 s and down at once: a period is 2.0 s + 0.1 s."""
    rise = np.arange(low, high + 0.1, 0.5)
    values = np.tile(rise, periods)
    return np.arange(len(values)) * step_s, values


def test_a_saw_tooth_has_its_period_height_and_falls() -> None:
    times, values = saw_tooth()
    found = trace_statistics(times, values)
    assert found.period_s == pytest.approx(2.1)
    assert (found.peak, found.trough, found.amplitude) == (20, 10, 10)
    assert found.mean == pytest.approx(15, abs=0.1)
    assert (found.p10, found.p50, found.p90) == (11, 15, 19)
    assert found.falls_per_min == pytest.approx(9 / found.duration_s * 60, rel=0.15)
    assert math.isnan(found.slow_start_s)


def test_a_level_trace_has_no_period_and_no_falls() -> None:
    times = np.linspace(0, 9.9, 100)
    found = trace_statistics(times, np.full(100, 4.0))
    assert (found.mean, found.p10, found.p90, found.falls_per_min) == (4, 4, 4, 0)
    assert math.isnan(found.period_s)
    assert math.isnan(found.amplitude)


def test_small_ripple_is_no_saw_tooth() -> None:
    times = np.linspace(0, 19.9, 200)
    assert trace_statistics(times, np.tile([4.0, 5.0], 100)).falls_per_min == 0


def test_slow_start_is_the_time_below_ssthresh_and_counts_the_warm_up() -> None:
    times = np.arange(0, 10, 0.5)
    cwnd = np.minimum(2.0 + times * 2, 12.0)
    found = trace_statistics(times, cwnd, np.full(len(times), 8.0), from_s=5.0)
    assert found.slow_start_s == pytest.approx(3.0)
    assert found.mean == pytest.approx(12.0)


def test_quantiles_weigh_the_time_that_a_value_was_held() -> None:
    assert weighted_quantile(np.array([1.0, 9.0]), np.array([9.0, 1.0]), 0.5) == 1
    times = np.array([0.0, 9.0, 10.0])
    assert trace_statistics(times, np.array([1.0, 11.0, 11.0])).mean == pytest.approx(2.0)


def test_turns_are_where_the_trace_swings() -> None:
    assert turns(np.array([1.0, 5, 9, 4, 2, 6, 10, 5]), 3) == ([2, 6], [4, 7])
    assert turns(np.array([5.0, 5, 5]), 3) == ([], [])


def test_a_trace_needs_two_samples_and_as_many_windows_as_times() -> None:
    with pytest.raises(ValueError, match="at least two samples, got 1"):
        trace_statistics(np.array([0.0]), np.array([1.0]))
    with pytest.raises(ValueError, match="got 2 times and 3 windows"):
        trace_statistics(np.zeros(2), np.zeros(3))


def test_traces_of_a_run_folder_are_read_with_their_statistics(tmp_path: Path) -> None:
    run = open_run(make_folder(tmp_path / "r", TABLE1, repeats=1))
    traces = read_traces(run)
    assert [(trace.point, trace.flow) for trace in traces[:2]] == [("512k-5ms", "reno"), ("512k-5ms", "vegas")]
    reno, vegas = traces[:2]
    assert reno.statistics.amplitude == pytest.approx(15, abs=1)
    assert vegas.statistics.mean == pytest.approx(4, abs=0.2)
    assert reno.statistics.duration_s < reno.t_s[-1] - 14


def test_a_difference_is_within_the_spread_where_its_interval_holds_0() -> None:
    """Not where the ranges of the runs touch."""
    one, far, near = Spread(33.7, 33.6, 36.0, 20, 33.6, 95.8), Spread(81.8, 80.0, 83.0, 20, 60.0, 90.0), Spread(34.5, 33.0, 36.0, 20)  # fmt: skip
    low, high = difference_interval(far, one)
    assert low > 40, "their ranges overlap: 33.6 to 95.8 and 60 to 90"
    assert high < 52
    low, high = difference_interval(near, one)
    assert low < 0 < high
    ratio = one.over(Spread(10.0, 9.0, 11.0, 20))
    assert ratio.value == pytest.approx(3.37)
    assert ratio.lo < ratio.value < ratio.hi, "a quotient keeps its spread"
