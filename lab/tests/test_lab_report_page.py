# SPDX-License-Identifier: Apache-2.0
"""The pages of run folders: everything beside each other and a line on each difference; from invented runs."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from fairlane_lab.definition.judging import Note
from fairlane_lab.definition.strict import Between
from fairlane_lab.problems import RunFolderError
from fairlane_lab.report.judged import Judged, judge
from fairlane_lab.report.publish import Section, find_differences, fitting_notes, make_report
from fairlane_lab.report.run_folder import Measured, Point, newest_folders
from fairlane_lab.results.statistics import Spread
from fairlane_lab.results.verdicts import Verdict
from fairlane_lab.run_result import RunResult
from fairlane_lab.scenario import Scenario
from report_folders import Runtime, invented, make_folder, measured_of, text_of


def known(scenario: Scenario, chance: random.Random, runtime: Runtime) -> RunResult:
    """Reno 0.9 and Vegas 0.09 of the link in sim, 0.8 and 0.1 in Mininet; every repeat 1 % beside the last."""
    result = invented(scenario, chance, runtime)
    rate = float(scenario.params["rate_bps"])
    shares = (0.9, 0.09) if runtime == "sim" else (0.8, 0.1)
    for flow, share in zip(result.flows, shares, strict=True):
        flow.goodput_bps = share * rate * (1 + 0.01 * scenario.repeat)
    return result


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of an experiment that is not of the tree: its file is the one of the runs."""
    base, text = tmp_path_factory.mktemp("results") / "mine", text_of("qthresh-table1")
    names: tuple[Runtime, ...] = ("mininet", "sim")
    text = text.replace('name = "qthresh-table1"', 'name = "mine"')
    return [make_folder(base / name, text, name, invent=known) for name in names]


@pytest.fixture(scope="module")
def page(folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "sub" / "report"
    assert make_report(folders, out) == [out / "mine.md"]
    return out / "mine.md"


def page_of(folder: Path, out: Path) -> str:
    (path,) = make_report([folder], out)
    return path.read_text()


def test_every_picture_and_every_run_that_the_page_names_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)]+\.(?:svg|parquet))\)", page.read_text())
    pictures, data = ["plots/mine-goodput.svg", "plots/mine-cwnd.svg"], ["data/mine.sim.runs.parquet", "data/mine.mininet.runs.parquet"]  # fmt: skip
    assert links == [*pictures, *data]
    assert all((page.parent / link).is_file() for link in links)
    assert "With 50 packets of buffer, Vegas is left with about a tenth on every link." in page.read_text()


def test_paper_sim_and_mininet_are_side_by_side(folders: list[Path], page: Path) -> None:
    measured = measured_of(folders)
    assert [run.runtime for run in measured.runs] == ["sim", "mininet"]
    table = Section(measured.definition, measured.runs).numbers
    assert table.heads[0] == "goodput, reno (kbit/s)"
    first = next(place for place, row in enumerate(table.rows) if row.point == "2M-2ms")
    rows = table.rows[first : first + 3]
    assert [(row.source, row.runs, row.cells[0]) for row in rows] == [
        ("paper", "", "1798"),
        ("sim", "3", "1818 (1800 to 1836)"),
        ("Mininet", "3", "1616 (1600 to 1632)"),
    ]
    assert "| 2M-2ms | paper |  | 1798 |" in page.read_text()


def test_expectations_are_judged_for_each_runtime(folders: list[Path]) -> None:
    measured = measured_of(folders)
    rows = judge(measured)
    assert [(row.text[:24], row.per, row.runtime, row.value) for row in rows[:3]] == [
        ("Vegas gets 6 to 17 % of ", "512k-5ms", "sim", "10 %"),
        ("Vegas gets 6 to 17 % of ", "512k-5ms", "mininet", "12.5 %"),
        ("Vegas gets 6 to 17 % of ", "1.5M-2ms", "sim", "10 %"),
    ]
    assert {row.state for row in rows if row.runtime == "sim"} == {"too few by design"}


def test_bounds_are_in_the_metrics_unit() -> None:
    def bound(metric: str, least: float | None, most: float | None, **relative_to: object) -> str:
        verdict = Verdict("", metric, least, most, relative_to, {}, [], None, None)
        return Judged("x", "sim", "", verdict, None).bound

    assert bound("utilisation", 0.97, None) == "at least 97 %"
    assert bound("goodput_bps[vegas] / goodput_bps[reno]", 0.06, 0.17) == "6 to 17 %"
    assert bound("jain", None, 0.9) == "at most 0.9"
    assert bound("window_packets", 4, 10) == "4 to 10 packets"
    assert bound("jain", 1.05, None, sender="reno") == "at least 105 % of reno"


def test_every_difference_above_ten_percent_has_a_line(folders: list[Path]) -> None:
    measured = measured_of(folders)
    lines = find_differences(measured, ["goodput_bps[reno]", "goodput_bps[vegas]"])
    found = {(line.metric, line.measured, line.against): line for line in lines}
    assert set(found) == {
        ("goodput_bps[vegas]", "sim", "paper"),
        ("goodput_bps[reno]", "mininet", "paper"),
        ("goodput_bps[reno]", "mininet", "sim"),
        ("goodput_bps[vegas]", "mininet", "sim"),
    }
    between = found["goodput_bps[reno]", "mininet", "sim"]
    assert [round(share, 3) for share in between.shares.values()] == [-0.111] * 4
    assert between.compared == 4
    assert between.notes == ()
    assert not between.in_spread


def test_where_one_runtime_never_recovers_it_differs_by_all_of_it(tmp_path: Path) -> None:
    def spiked(scenario: Scenario, chance: random.Random, runtime: Runtime) -> RunResult:
        result = known(scenario, chance, runtime)
        for flow in result.flows:
            flow.after_spike_bytes, flow.recovery_s = 1.0, None if runtime == "sim" else 0.5
        return result

    names: tuple[Runtime, ...] = ("sim", "mininet")
    text = own(text_of("qthresh-table1"))
    measured = measured_of([make_folder(tmp_path / name, text, name, invent=spiked) for name in names])
    (line,) = find_differences(measured, ["recovery_s"])
    assert (line.measured, line.against, line.in_spread) == ("mininet", "sim", False)
    assert set(line.shares.values()) == {-1.0}


def test_what_the_reference_has_none_of_differs(tmp_path: Path) -> None:
    def timed_out(scenario: Scenario, chance: random.Random, runtime: Runtime) -> RunResult:
        result = known(scenario, chance, runtime)
        for flow in result.flows:
            flow.timeouts = 0 if runtime == "sim" else 9 + scenario.repeat
        return result

    names: tuple[Runtime, ...] = ("sim", "mininet")
    text = own(text_of("qthresh-table1")).replace('"fairness"]', '"timeouts"]')
    folders = [make_folder(tmp_path / name, text, name, invent=timed_out) for name in names]
    (path,) = make_report(folders, tmp_path / "report")
    table = (path.parent / "tables" / "mine.differences.csv").read_text()
    assert "timeouts,Mininet,sim,4,4,of 0,of 0,not explained" in table


def test_what_no_note_explains_is_said(page: Path) -> None:
    assert "*Not explained.*" in page.read_text()


def test_a_note_explains_only_its_metrics_its_points_and_what_it_is_against() -> None:
    point = Point(point="p", params={"case": "a"}, metrics={})
    any_size = Between(min=-1, max=1)
    notes = [
        Note(text="all", share=any_size),
        Note(text="other metric", metrics=("jain",), share=any_size),
        Note(text="other point", where={"case": "b"}, share=any_size),
        Note(text="mininet", where={"runtime": "mininet"}, share=any_size),
        Note(text="of sim", against="sim", share=any_size),
        Note(text="remark"),
    ]

    def texts(runtime: str, against: str) -> list[str]:
        return [note.text for note in fitting_notes(notes, point, "fairness", runtime, against)]

    assert texts("sim", "paper") == ["all"]
    assert texts("mininet", "paper") == ["all", "mininet"]
    assert texts("mininet", "sim") == ["of sim"]


def test_a_remark_stands_on_the_page_and_explains_nothing(tmp_path: Path) -> None:
    text = own(text_of("qthresh-table1"), '[[notes]]\ntext = "a word on the paper"\n')
    folder = make_folder(tmp_path / "r", text, "mininet", invent=known)
    page = page_of(folder, tmp_path / "report")
    assert page.count("a word on the paper") == 1
    assert "*Not explained.*" in page


def own(text: str, notes: str = "") -> str:
    """An experiment that is not of the tree, with other notes."""
    return text.split("[[notes]]")[0].replace('"qthresh-table1"', '"mine"') + notes


def test_a_note_that_was_found_after_the_run_explains_it(tmp_path: Path) -> None:
    measured = measured_of([make_folder(tmp_path / "r", own(text_of("qthresh-table1")), "mininet", invent=known)])
    (line,) = find_differences(measured, ["goodput_bps[reno]"])
    assert (line.notes, line.in_spread) == ((), False)
    found = (Note(text="found later", share=Between(min=-1, max=1)),)
    experiment = measured.definition.experiment.model_copy(update={"notes": found})
    later = Measured(replace(measured.definition, experiment=experiment), measured.runs)
    (line,) = find_differences(later, ["goodput_bps[reno]"])
    assert line.notes == ("found later",)


def test_a_note_for_a_small_difference_does_not_explain_a_large_one(tmp_path: Path) -> None:
    note = '[[notes]]\ntext = "headers"\nmetrics = ["goodput_bps[reno]"]\nshare = { min = -0.12, max = 0 }\n'
    text = own(text_of("qthresh-table1"), note)
    measured = measured_of([make_folder(tmp_path / "r", text, "mininet", invent=known)])
    lines = find_differences(measured, ["goodput_bps[reno]"])
    explained = {point for line in lines if line.notes == ("headers",) for point in line.shares}
    assert explained == {"1.5M-2ms", "2M-2ms", "5M-2ms"}  # the fourth differs by 9.5 %
    text = text.replace("-0.12", "-0.06")
    measured = measured_of([make_folder(tmp_path / "s", text, "mininet", invent=known)])
    (line,) = find_differences(measured, ["goodput_bps[reno]"])
    assert line.notes == ()
    assert not line.in_spread


def test_a_difference_within_the_spread_of_the_repeats_says_so(tmp_path: Path) -> None:
    def wide(scenario: Scenario, chance: random.Random, runtime: Runtime) -> RunResult:
        result = known(scenario, chance, runtime)
        result.flows[1].goodput_bps *= (1, 1.5, 0.5)[scenario.repeat]
        return result

    measured = measured_of([make_folder(tmp_path / "r", own(text_of("qthresh-table1")), invent=wide)])
    (line,) = find_differences(measured, ["goodput_bps[vegas]"])
    assert line.in_spread


def test_a_difference_is_within_the_spread_where_its_interval_holds_0() -> None:
    """Not where the ranges of the runs touch."""
    one, far, near = Spread(33.7, 33.6, 36.0, 33.6, 95.8, 20), Spread(81.8, 80.0, 83.0, 60.0, 90.0, 20), Spread(34.5, 33.0, 36.0, runs=20)  # fmt: skip
    apart = far.minus(one)
    assert apart.lo > 40, "their ranges overlap: 33.6 to 95.8 and 60 to 90"
    assert apart.hi < 52
    apart = near.minus(one)
    assert apart.lo < 0 < apart.hi
    ratio = one.over(Spread(10.0, 9.0, 11.0, runs=20))
    assert ratio.value == pytest.approx(3.37)
    assert ratio.lo < ratio.value < ratio.hi, "a quotient keeps its spread"


def test_the_newest_run_of_each_runtime_is_taken(tmp_path: Path) -> None:
    base = tmp_path / "qthresh-table1"
    text = text_of("qthresh-table1")
    old, new = (make_folder(base / name, text, seed=seed, repeats=1) for name, seed in (("a", 1), ("b", 2)))
    assert [run.summary["seed"] for run in measured_of([new, old]).runs] == [2]
    (tmp_path / "demo" / "x").mkdir(parents=True)
    (tmp_path / "demo" / "x" / "summary.json").write_text('{"rows": []}')
    assert newest_folders(tmp_path) == [new]
    (page,) = make_report([new, old], tmp_path / "report")
    assert "`fairlane lab run qthresh-table1 --seed 2`" in page.read_text()


def test_an_incomplete_run_is_said_to_be_one(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "r", text_of("qthresh-table1"), repeats=1, about={"complete": False})
    assert "| sim | 1, not complete |" in page_of(folder, tmp_path / "report")


def test_a_folder_that_is_none_is_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="not a run folder"):
        make_report([tmp_path], tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_an_experiment_that_is_not_valid_any_more_is_an_error_that_names_the_run(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "r", text_of("qthresh-table1").replace('"qthresh-table1"', '"older"'), repeats=1)
    summary = folder / "summary.json"
    summary.write_text(summary.read_text().replace('"warmup_s": 10', '"warmup_s": -10'))
    with pytest.raises(RunFolderError, match=f"{folder}.*warmup_s"):
        make_report([folder], tmp_path / "report")
