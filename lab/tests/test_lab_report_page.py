# SPDX-License-Identifier: Apache-2.0
"""The HTML report: one self-contained page, with everything beside each other and a line on each difference; from invented runs."""

from __future__ import annotations

import json
import random
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fairlane_lab.definition.judging import Note
from fairlane_lab.definition.strict import Between
from fairlane_lab.report import RunFolderError, make_report, newest_folders
from fairlane_lab.report.differences import find_differences, fitting_notes
from fairlane_lab.report.pairing import pair_up
from fairlane_lab.report.run_folder import Point
from fairlane_lab.report.side_by_side import side_by_side
from fairlane_lab.report.verdict_table import bound_text, tally, verdict_table, worst
from fairlane_lab.run_result import RunResult, SeriesPoint
from fairlane_lab.scenario import Scenario
from report_folders import Runtime, invented, make_folder, text_of

VOID = {"meta", "br", "img", "link", "input", "hr", "path", "use", "rect", "circle"}


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
    base = tmp_path_factory.mktemp("results") / "qthresh-table1"
    names: tuple[Runtime, ...] = ("mininet", "sim")
    return [make_folder(base / name, text_of("qthresh-table1"), name, invent=known) for name in names]


@pytest.fixture(scope="module")
def page(folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page") / "sub" / "report.html"
    assert make_report(folders, out) == out
    return out.read_text()


class Outline(HTMLParser):
    """Tags that do not close, ids and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [found["href"] or ""] if tag == "a" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def test_the_page_is_well_formed_and_every_link_leads_somewhere(page: str) -> None:
    outline = Outline()
    outline.feed(page)
    assert (outline.open, outline.wrong) == ([], [])
    assert len(set(outline.ids)) == len(outline.ids)
    assert outline.links
    assert all(link.startswith("#") and link[1:] in outline.ids for link in outline.links)


def test_the_page_needs_no_network_and_no_script(page: str) -> None:
    assert "<script" not in page
    assert "@import" not in page
    assert not re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?\s*(?:https?:)?//""", page)
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_pictures_are_inline_and_tell_the_runtimes_apart(page: str) -> None:
    assert page.count("<svg") == 2
    assert "<h3>Results: paper, sim, Mininet</h3>" in page
    assert "With 50 packets of buffer, Vegas is left with about a tenth on every link." in page
    assert "Mininet" in page


def test_paper_sim_and_mininet_are_side_by_side(folders: list[Path]) -> None:
    (pair,) = pair_up(folders)
    assert [run.runtime for run in pair.runs] == ["sim", "mininet"]
    table = side_by_side(pair)
    reno = table.columns[0]
    assert (reno.metric, reno.unit, reno.heads) == ("goodput_bps[reno]", "kbit/s", ("paper", "sim", "Mininet"))
    row = next(row for row in table.rows if row.point == "2M-2ms")
    assert [cell.text for cell in row.cells[:3]] == ["1798", "1818", "1616"]
    assert [cell.spread for cell in row.cells[:3]] == ["", "1800..1836", "1600..1632"]
    assert table.repeats == {"sim": 3, "mininet": 3}


def test_a_long_table_shows_the_papers_points_first(tmp_path: Path) -> None:
    (pair,) = pair_up([make_folder(tmp_path / "r", text_of("qthresh-table2"), repeats=1)])
    table = side_by_side(pair)
    assert len(table.rows) == 80
    assert [row.point for row in table.front] == ["512k-5ms/threshold=4", "1.5M-2ms/threshold=5", "2M-2ms/threshold=6", "5M-2ms/threshold=6"]  # fmt: skip


def test_expectations_are_judged_for_each_runtime(folders: list[Path]) -> None:
    (pair,) = pair_up(folders)
    rows = verdict_table(pair)
    assert [(row.text[:24], row.per) for row in rows[:2]] == [("Vegas gets 6 to 17 % of ", "512k-5ms"), ("Vegas gets 6 to 17 % of ", "1.5M-2ms")]  # fmt: skip
    assert rows[0].outcomes["sim"].value == "10 %"
    assert rows[0].outcomes["mininet"].value == "12.5 %"
    counts = tally(rows, "sim")
    assert (counts.met, counts.judged, counts.state) == (0, 8, "undecided"), "of a few runs each"
    summed = worst(rows[:4], "sim")
    assert summed is not None
    assert (summed.state, summed.met, summed.of) == ("too few by design", 0, 4)
    assert worst(rows[:4], "elsewhere") is None


def test_what_is_undecided_is_no_failure_on_the_page(folders: list[Path], tmp_path: Path) -> None:
    page = make_report(folders, tmp_path / "report.html").read_text()
    assert '<b class="">0 of 8</b><span>expectations met in sim, 8 undecided</span>' in page


def test_bounds_are_told_in_the_metrics_unit() -> None:
    assert bound_text({"metric": "utilisation", "min": 0.97, "max": None}) == "at least 97 %"
    assert bound_text({"metric": "goodput_bps[vegas] / goodput_bps[reno]", "min": 0.06, "max": 0.17}) == "6 to 17 %"
    assert bound_text({"metric": "jain", "min": None, "max": 0.9}) == "at most 0.9"
    assert bound_text({"metric": "window_packets", "min": 4, "max": 10}) == "4 to 10 packets"


def test_every_difference_above_ten_percent_has_a_line(folders: list[Path]) -> None:
    (pair,) = pair_up(folders)
    lines = find_differences(pair, ["goodput_bps[reno]", "goodput_bps[vegas]"])
    found = {(line.metric, line.measured, line.against): line for line in lines}
    assert set(found) == {
        ("goodput_bps[vegas]", "sim", "paper"),
        ("goodput_bps[reno]", "mininet", "paper"),
        ("goodput_bps[reno]", "mininet", "sim"),
        ("goodput_bps[vegas]", "mininet", "sim"),
    }
    between = found["goodput_bps[reno]", "mininet", "sim"]
    assert [round(each.share, 3) for each in between.differences] == [-0.111] * 4
    assert between.compared == 4
    assert between.notes == ()
    assert between.unexplained


def test_what_no_note_explains_is_red(page: str) -> None:
    assert '<span class="unexplained">unexplained</span>' in page


def test_a_note_explains_only_its_metrics_its_points_and_what_it_is_against() -> None:
    point = Point("p", {"case": "a"}, {})
    any_size = Between(min=-1, max=1)
    notes = [
        Note(text="all", share=any_size),
        Note(text="other metric", metrics=("jain",), share=any_size),
        Note(text="other point", where={"case": "b"}, share=any_size),
        Note(text="mininet", where={"runtime": "mininet"}, share=any_size),
        Note(text="of sim", against="sim", share=any_size),
        Note(text="remark"),
        Note(text="open end", share=Between(min=-1)),
    ]

    def texts(runtime: str, against: str) -> list[str]:
        return [note.text for note in fitting_notes(notes, point, "fairness", runtime, against)]

    assert texts("sim", "paper") == ["all"]
    assert texts("mininet", "paper") == ["all", "mininet"]
    assert texts("mininet", "sim") == ["of sim"]


def test_a_remark_stands_on_the_page_and_explains_nothing(tmp_path: Path) -> None:
    text = text_of("qthresh-table1").split("[[notes]]")[0] + '[[notes]]\ntext = "a word on the paper"\n'
    folder = make_folder(tmp_path / "r", text, "mininet", invent=known)
    page = make_report([folder], tmp_path / "report.html").read_text()
    assert '<p class="mute">a word on the paper</p>' in page
    assert page.count("a word on the paper") == 1
    assert '<span class="unexplained">unexplained</span>' in page


def test_a_note_that_was_found_after_the_run_explains_it(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "r", text_of("qthresh-table1").split("[[notes]]")[0], "mininet", invent=known)
    found = (Note(text="found later", share=Between(min=-1, max=1)),)
    (pair,) = pair_up([folder], lambda name: found if name == "qthresh-table1" else None)
    (line,) = find_differences(pair, ["goodput_bps[reno]"])
    assert line.notes == ("found later",)
    (pair,) = pair_up([folder], lambda _name: None)
    (line,) = find_differences(pair, ["goodput_bps[reno]"])
    assert line.unexplained


def test_a_note_for_a_small_difference_does_not_explain_a_large_one(tmp_path: Path) -> None:
    text = text_of("qthresh-table1").split("[[notes]]")[0]
    text += '[[notes]]\ntext = "headers"\nmetrics = ["goodput_bps[reno]"]\nshare = { min = -0.12, max = 0 }\n'
    (pair,) = pair_up([make_folder(tmp_path / "r", text, "mininet", invent=known)])
    lines = find_differences(pair, ["goodput_bps[reno]"])
    explained = {each.point for line in lines if line.notes == ("headers",) for each in line.differences}
    partly = {each.point for line in lines if line.partly == ("headers",) for each in line.differences}
    assert explained == {"1.5M-2ms", "2M-2ms", "5M-2ms"}  # the fourth differs by 9.5 %
    assert partly == set()
    text = text.replace("-0.12", "-0.06")
    (pair,) = pair_up([make_folder(tmp_path / "s", text, "mininet", invent=known)])
    (line,) = find_differences(pair, ["goodput_bps[reno]"])
    assert line.partly == ("headers",)
    assert line.unexplained


def test_a_difference_within_the_spread_of_the_repeats_says_so(tmp_path: Path) -> None:
    def wide(scenario: Scenario, chance: random.Random, runtime: Runtime) -> RunResult:
        result = known(scenario, chance, runtime)
        result.flows[1].goodput_bps *= (1, 1.5, 0.5)[scenario.repeat]
        return result

    text = text_of("qthresh-table1").split("[[notes]]")[0]
    (pair,) = pair_up([make_folder(tmp_path / "r", text, invent=wide)])
    (line,) = find_differences(pair, ["goodput_bps[vegas]"])
    assert line.explained_by_spread
    assert not line.unexplained


def test_the_newest_run_of_each_runtime_is_taken_and_the_older_one_named(tmp_path: Path) -> None:
    base = tmp_path / "qthresh-table1"
    text = text_of("qthresh-table1")
    old, new = (make_folder(base / name, text, seed=seed, repeats=1) for name, seed in (("a", 1), ("b", 2)))
    (pair,) = pair_up([new, old])
    assert (pair.runs[0].path, pair.older) == (new, 1)
    (tmp_path / "demo" / "x").mkdir(parents=True)
    (tmp_path / "demo" / "x" / "summary.json").write_text('{"rows": []}')
    assert newest_folders(tmp_path) == [new]


def test_an_incomplete_run_is_said_to_be_one(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "r", text_of("qthresh-table1"), repeats=1, about={"complete": False})
    page = make_report([folder], tmp_path / "report.html").read_text()
    assert "not complete, some runs are missing" in page


def test_texts_of_the_experiment_cannot_break_the_page(tmp_path: Path) -> None:
    text = text_of("qthresh-table1").replace('title = "Reno and Vegas behind drop-tail"', 'title = "<b>a & b</b>"')
    page = make_report([make_folder(tmp_path / "r", text, repeats=1)], tmp_path / "report.html").read_text()
    assert "&lt;b&gt;a &amp; b&lt;/b&gt;" in page
    assert "<b>a & b" not in page


def test_what_the_controller_did_is_listed_where_something_changes(tmp_path: Path) -> None:
    text = text_of("qthresh-table1") + '\n[[changes]]\nat_s = 5\nlink = "s1-s2"\ndelay_ms = 20\n'
    folder = make_folder(tmp_path / "r", text, repeats=1)
    event = {
        "point": "512k-5ms",
        "repeat": 0,
        "t_s": 6.25,
        "event": "threshold_set",
        "switch": "s1",
        "qthresh_packets": 7,
    }
    (folder / "events.jsonl").write_text(json.dumps(event) + "\n")
    page = make_report([folder], tmp_path / "report.html").read_text()
    assert "What the controller did" in page
    assert "threshold set" in page
    assert "switch s1, qthresh_packets 7" in page


def test_a_sender_alone_in_both_runtimes_is_drawn_over_each_other(tmp_path: Path) -> None:
    text = text_of("qthresh-table1").split("[[paper_numbers]]")[0]
    before, after = text.split('[[flows]]\nname = "vegas"')
    text = before + "[tcp]" + after.split("[tcp]")[1]
    text = text.replace('flows = ["vegas"]', 'flows = ["reno"]').replace('"goodput_bps[vegas]", ', "").replace(', "fairness"', "")  # fmt: skip

    def alone(scenario: Scenario, chance: random.Random, runtime: Runtime) -> RunResult:
        result = invented(scenario, chance, runtime)
        result.series = [SeriesPoint(0.1 * i, "reno", "cwnd_packets", 10 + i % 20) for i in range(400)]
        return result

    base = tmp_path / "x"
    names: tuple[Runtime, ...] = ("sim", "mininet")
    folders = [make_folder(base / name, text, name, repeats=1, invent=alone) for name in names]
    page = make_report(folders, tmp_path / "report.html").read_text()
    assert "Congestion window: simulated sender and the kernel" in page
    assert "Linux (Mininet)" in page
    assert "falls a minute" in page


def test_nothing_to_report_on_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="run an experiment first"):
        make_report([], tmp_path / "report.html")
    with pytest.raises(RunFolderError, match="not a run folder"):
        make_report([tmp_path], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
