# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""The archive and the pages of docs/results: what is published comes from the data, and what stands there is what the data says."""

from __future__ import annotations

import csv
import io
import re
import shutil
from math import isnan
from pathlib import Path
from typing import Any, cast

import pytest
from fairlane_lab.definition.loading import Definition, load, load_text
from fairlane_lab.paths import RESULTS_PAGES
from fairlane_lab.problems import ExperimentError
from fairlane_lab.report import archive, publish, run_folder
from fairlane_lab.report.archive import archive_run, is_stale, numbers_problem, open_archived, open_measured
from fairlane_lab.report.publish import find_differing_pages, make_pages, round_coordinates, write_pages
from fairlane_lab.report.run_folder import open_run
from lab_command import lab
from report_folders import make_folder

FILES = Path(__file__).parent / "report_experiments"


def test_the_pages_of_the_repository_are_what_its_archive_says() -> None:
    """No number there is typed by hand. `fairlane lab publish` makes them anew."""
    old = {
        path.name: problem
        for path in (RESULTS_PAGES / "data").glob("*.runs.parquet")
        if (problem := numbers_problem(path))
    }
    if old:
        pytest.skip(f"{len(old)} archives are to be run anew: {'; '.join(sorted(set(old.values())))}")
    assert find_differing_pages(RESULTS_PAGES) == []


def test_one_configuration_gives_one_number_wherever_it_stands() -> None:
    """In virtual time, runs of the same configuration and seed that stand in several experiments are equal."""
    seen: dict[tuple[object, ...], dict[str, float]] = {}
    shared = ("goodput_bps", "utilisation", "fairness", "retransmits", "drops")
    for path in sorted((RESULTS_PAGES / "data").glob("*.runs.parquet")):
        name, runtime = path.name.split(".")[:2]
        run = open_archived(RESULTS_PAGES / "data", load(name), runtime)
        if runtime == "mininet" or run is None or "configuration" not in run.runs:
            continue
        for row in run.runs.to_dict("records"):
            if not isinstance(row["configuration"], str):  # an archive has it once a point
                continue
            key = (row["configuration"], row["seed"], runtime, row.get("git"))
            numbers = {metric: row[metric] for metric in shared if metric in row and not isnan(row[metric])}
            assert seen.setdefault(key, numbers) == numbers, f"{name} at {row['point']}"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive with one experiment in two runtimes, which is the only one there is."""
    text = (FILES / "qthresh-table1.toml").read_text()
    definition = load_text(text, "qthresh-table1.toml")
    for module in (archive, run_folder, publish):
        monkeypatch.setattr(module, "experiment_names", lambda: [definition.experiment.name])

    def load_it(_name: str) -> Definition:
        return definition

    monkeypatch.setattr(run_folder, "load", load_it)
    for runtime in ("sim", "mininet"):
        archive_run(make_folder(tmp_path / runtime, text, runtime=runtime, repeats=7), tmp_path / "pages" / "data")
    return tmp_path / "pages"


def nearly(value: Any) -> Any:
    """A part of a summary that equals what an archive of seven digits gives again."""
    if isinstance(value, dict):
        return {name: nearly(each) for name, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [nearly(each) for each in cast("list[Any]", value)]
    return pytest.approx(value, rel=1e-6) if isinstance(value, float) else value


def test_an_archive_gives_the_summary_of_its_folder(tmp_path: Path) -> None:
    text = (FILES / "qthresh-table1.toml").read_text()
    definition = load_text(text, "qthresh-table1.toml")
    folder = make_folder(tmp_path / "run", text, repeats=3)
    path = archive_run(folder, tmp_path / "data")
    assert path.name == f"{definition.experiment.name}.sim.runs.parquet"
    assert [run.runtime for run in open_measured(tmp_path / "data", definition).runs] == ["sim"]
    there, back = open_run(folder), open_archived(tmp_path / "data", definition, "sim")
    assert back is not None
    for part in ("points", "verdicts"):
        assert back.summary[part] == nearly(there.summary[part])
    assert back.metadata == there.metadata
    assert set(back.runs["repeat"][back.runs["configuration"].notna()]) == {0}
    assert (len(back.series) > 0) == any(plot.kind == "series" for plot in there.definition.plots)
    assert open_archived(tmp_path / "data", definition, "kernel") is None


def test_an_archive_is_stale_when_the_runs_would_be_others_not_when_more_is_asked(tmp_path: Path) -> None:
    text = (FILES / "qthresh-table1.toml").read_text()
    archive_run(make_folder(tmp_path / "run", text, repeats=2), tmp_path)

    def stale(old: str, new: str) -> bool:
        assert old in text
        definition = load_text(text.replace(old, new), "qthresh-table1.toml")
        found = open_archived(tmp_path, definition, "sim")
        assert found is not None
        return is_stale(tmp_path, definition, found)

    assert not stale('title = "', 'title = "Again: ')
    assert not stale("[topology]", '[[cases]]\nlabel = "new"\nrate_bps = 1\ndelay_ms = 1\n\n[topology]'), (
        "a part of the points"
    )
    assert stale("rate_bps = 512_000", "rate_bps = 513_000")
    assert stale("duration_s = ", "duration_s = 1")


def test_what_is_cut_off_is_not_published(tmp_path: Path) -> None:
    text = (FILES / "qthresh-table1.toml").read_text()
    for about in ({"complete": False}, {"quick": True}):
        folder = make_folder(tmp_path / "-".join(about), text, repeats=1, about=about)
        done = lab("publish", str(folder), "--out", str(tmp_path / "pages"))
        assert done.exit_code == 3
        assert "only complete runs are published, and none of --quick" in " ".join(done.output.split())
        assert not (tmp_path / "pages").exists()
        archive_run(folder, tmp_path / "old" / "data")
        done = lab("publish", "--out", str(tmp_path / "old"))
        assert "runs.parquet: only complete runs are published" in " ".join(done.output.split())


def test_a_page_has_bounds_numbers_pictures_and_where_they_come_from(results: Path) -> None:
    (index, page) = write_pages(results)
    text = page.read_text()
    assert "| sim | 7 |" in text
    assert "](data/" in text
    minutes = {
        runtime: float(found[1])
        for runtime, label in (("sim", ""), ("mininet", " by the clock"))
        if (found := re.search(rf"\| ([\d.]+){label} \| \[Parquet\]\(data/[\w-]+\.{runtime}", text))
    }
    assert minutes["sim"] == pytest.approx(minutes["mininet"] / 2, abs=0.1)  # `invented`: half of the clock's
    for table in ("bounds", "numbers"):
        assert f"[{table}](tables/{page.stem}.{table}.csv)" in text
        assert len((results / "tables" / f"{page.stem}.{table}.csv").read_text().splitlines()) > 4
    for link in {part.split(")")[0] for part in text.split("](plots/")[1:]}:
        assert (results / "plots" / link).read_text().startswith("<?xml")
    assert f"({page.name}" in index.read_text()
    assert find_differing_pages(results) == []


def add_mine(results: Path, folder: Path, repeats: int) -> None:
    """An experiment of one's own in the archive, beside the one that is there."""
    text = (FILES / "qthresh-table1.toml").read_text().replace('name = "qthresh-table1"', 'name = "mine"')
    archive_run(make_folder(folder, text, repeats=repeats), results / "data")


def test_an_experiment_of_one_s_own_has_its_page_and_its_line_in_the_index(results: Path, tmp_path: Path) -> None:
    add_mine(results, tmp_path / "mine", 7)
    index, mine, _ = write_pages(results)
    assert "](mine.md) | 1 |" in index.read_text()
    assert "lab/experiments/mine.toml" not in mine.read_text()
    assert "| sim | 7 |" in mine.read_text()
    assert find_differing_pages(results) == []


QUESTION = """pictures = ["mine-goodput"]
[[pages]]
name = "both"
question = "Which is it?"
experiments = ["mine", "qthresh-table1", "not-archived"]
"""


def test_a_question_has_the_experiments_that_answer_it_on_one_page(results: Path, tmp_path: Path) -> None:
    add_mine(results, tmp_path / "mine", 7)
    (results / "pages.toml").write_text(QUESTION)
    index, both = write_pages(results)
    text = both.read_text()
    assert (both.name, text.splitlines()[1]) == ("both.md", "# Which is it?")
    assert [text.count(f'<a id="{name}"></a>') for name in ("mine", "qthresh-table1", "not-archived")] == [1, 1, 0]
    assert "`fairlane lab run mine`" in text
    assert "| mine | sim | 7 |" in text
    assert "[Which is it?](both.md) | 2 |" in index.read_text()
    assert "[qthresh-table1](#qthresh-table1)" in text
    assert "(plots/mine-goodput.svg)" in index.read_text()


def test_a_file_of_questions_with_an_unknown_key_is_refused(results: Path) -> None:
    (results / "pages.toml").write_text(QUESTION + "more = 1\n")
    with pytest.raises(ExperimentError, match=r"(?s)pages\.toml.*more"):
        write_pages(results)


def test_the_papers_numbers_and_ours_are_a_picture_and_a_table(results: Path) -> None:
    index = write_pages(results)[0].read_text()
    assert "(plots/paper.svg)" in index
    rows = (results / "tables" / "paper.csv").read_text().splitlines()
    assert rows[0] == "experiment,point,metric,runtime,paper,measured"
    assert len(rows) > 8
    drawn = (results / "plots" / "paper.svg").read_text()
    for word in ("measured / paper", "qthresh-table1", "sim", "Mininet"):
        assert word in drawn


def test_our_own_sentences_are_a_table_that_the_index_counts(tmp_path: Path, results: Path) -> None:
    """With few runs too: what they cannot decide is a number of its own."""
    add_mine(results, tmp_path / "mine", 3)
    texts = make_pages(results)
    with io.StringIO(str(texts["tables/hypotheses.csv"])) as file:
        worst = [row["worst"] for row in csv.DictReader(file)]
    assert f"are asked {len(worst)} sentences of our own" in str(texts["index.md"])
    assert worst.count("too few by design") > 0
    for state in set(worst):
        assert f"{worst.count(state)} {state}" in str(texts["index.md"])


def test_whatever_is_changed_by_hand_is_found(results: Path) -> None:
    (_, page) = write_pages(results)
    page.write_text(page.read_text().replace("| sim | 7 |", "| sim | 70 |", 1))
    (results / "extra.md").write_text("more")
    (results / "tables" / "extra.numbers.csv").write_text("1")
    picture = results / "plots" / "paper.svg"
    picture.write_text(picture.read_text().replace("data ", "data 0", 1))
    (results / "plots" / "extra.svg").write_text("<svg/>")
    found = ["extra.md", "plots/extra.svg", "plots/paper.svg", page.name, "tables/extra.numbers.csv"]
    assert find_differing_pages(results) == found
    write_pages(results)
    assert find_differing_pages(results) == []
    assert not any((results / name).exists() for name in ("extra.md", "plots/extra.svg"))
    assert not (results / "tables" / "extra.numbers.csv").exists()


def test_a_picture_is_drawn_again_only_for_other_data(results: Path) -> None:
    write_pages(results)
    picture = next((results / "plots").glob("*.svg"))
    drawn = picture.stat().st_mtime_ns
    write_pages(results)
    assert picture.stat().st_mtime_ns == drawn


def test_coordinates_are_rounded_and_numbers_at_the_axes_are_not() -> None:
    drawn = '<path d="M 1.234567 -8.0004 L 2 0.5"/><text x="3.14159">0.001</text><text>-0.0050 ms</text>'
    assert round_coordinates(drawn) == '<path d="M 1.23 -8 L 2 0.5"/><text x="3.14">0.001</text><text>-0.0050 ms</text>'


def test_check_says_which_page_differs(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for archived in (RESULTS_PAGES / "data").glob("gfr-table2.*"):
        shutil.copy(archived, tmp_path / "data")
    done = lab("publish", "--out", str(tmp_path), "--dry-run")
    assert done.exit_code != 0
    assert "run: fairlane lab publish" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("about", "says"),
    [
        ({"git": "0000000", "commit": "0" * 40, "dirty": False}, "000000000000 is not in the history"),
        ({"git": "09d80ae6-dirty"}, "09d80ae6 with changes: its runs are of a changed tree"),
        ({"git": "09d80ae6", "dirty": True}, "09d80ae6 with changes"),
    ],
)
def test_what_nobody_else_can_run_is_not_published(
    about: dict[str, object], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (FILES / "qthresh-table1.toml").read_text()

    def git(command: str, *_: str) -> str:
        return "false" if command == "rev-parse" else ""

    monkeypatch.setattr("fairlane_lab.results.folder._git", git)
    folder = make_folder(tmp_path / "run", text, repeats=1, about={"metadata": about})
    done = lab("publish", str(folder), "--out", str(tmp_path / "pages"))
    assert done.exit_code != 0
    assert says in " ".join(done.output.split())
    assert not (tmp_path / "pages").exists()
    (tmp_path / "old").mkdir()
    path = archive_run(folder, tmp_path / "old" / "data")
    done = lab("publish", "--out", str(tmp_path / "old"))
    assert done.exit_code != 0
    assert f"{path.name}: {says}" in " ".join(done.output.split())
