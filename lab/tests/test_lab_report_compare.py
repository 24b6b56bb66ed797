# SPDX-License-Identifier: Apache-2.0
"""Comparison of two runs, and the statistics of window traces; from invented values whose statistics are known."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from fairlane_lab.report import RunFolderError, compare_runs, compare_table, open_run
from fairlane_lab.report.differences import difference_interval
from fairlane_lab.report.run_folder import Spread
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
