# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab list|show|run|plot` with made-up runners: what they print, where data goes, exit codes, bad options."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fairlane_lab.cli.options import make_selection
from fairlane_lab.cli.running import RUNNERS
from fairlane_lab.definition.extend import experiment_names
from lab_command import lab
from lab_fake_runners import Varies
from rich.console import Console
from test_lab_definition import FILE
from typer.testing import Result


@pytest.fixture(autouse=True)
def _runners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RUNNERS, "sim", "lab_fake_runners:run")
    monkeypatch.setitem(RUNNERS, "mininet", "lab_fake_runners:run_many")
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(FILE)
    return str(path)


def words(result: Result) -> str:
    return " ".join(result.output.split())


def test_list_names_every_experiment() -> None:
    result = lab("list", "--json")
    assert result.exit_code == 0
    listed: dict[str, Any] = json.loads(result.stdout)
    table = {row["name"]: row for row in listed["experiments"]}
    assert table["qthresh-table2"]["runtimes"] == ["sim", "mininet"]
    assert "qthresh-table1" in lab("list").output


STARTS = """
import sys
from fairlane_controller.cli.main import make_app
from typer.testing import CliRunner
result = CliRunner().invoke(make_app(), ["lab", *sys.argv[2:]])
assert sys.argv[1] in result.output, result.output
print(*sorted({name.split(".")[0] for name in sys.modules} & {"distributed", "finsy", "grpc", "numpy", "pandas", "pyarrow", "scipy"}))
"""


@pytest.mark.parametrize(("command", "said"), [("list", "qthresh-table1"), ("run --help", "--repeats")])
def test_to_list_experiments_and_to_explain_run_needs_none_of_what_runs_them(command: str, said: str) -> None:
    """Which would take several seconds."""
    done = subprocess.run(
        [sys.executable, "-c", STARTS, said, *command.split()], capture_output=True, text=True, timeout=100
    )
    assert (done.stdout, done.stderr) == ("\n", "")


def test_an_experiment_with_mistakes_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"small": FILE, "untidy": 'name = "untidy"\n', "torn": "name ="}
    for name, text in texts.items():
        (tmp_path / f"{name}.toml").write_text(text)
    monkeypatch.setattr("fairlane_lab.cli.showing.EXPERIMENTS", tmp_path)
    monkeypatch.setattr("fairlane_lab.cli.showing.experiment_names", lambda: list(texts))
    result = lab("list")
    assert result.exit_code == 3
    assert re.search(r"small +Small.* sim", words(result))
    assert "untidy: has mistakes: `fairlane lab show untidy` says which" in words(result)
    assert "torn.toml: not TOML" in words(result)


@pytest.mark.parametrize("columns", [80, 140])
def test_the_list_has_one_line_an_experiment(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane_lab.cli.showing.console", Console(width=columns))
    lines = lab("list").output.splitlines()
    assert max(map(len, lines)) <= columns
    for name in experiment_names():
        (line,) = (each for each in lines if each.startswith(f"{name} "))
        assert re.search(r" (sim|kernel|mininet)", line)


def test_show_tells_points_and_expectations(small: str) -> None:
    text = words(lab("show", small))
    assert "sim: 6 points, 12 runs of 20 s (5 s not counted)" in text
    assert "kernel: 6 points, 12 runs of 20 s" in text
    assert f"run it: fairlane lab run {small} (or --runtime kernel, mininet)" in text
    assert "expected: something" in text
    assert re.search(r"s1-p3 → s2-p1 1 Mbit/s \S+ ms 50 packets, 8 strict", text), (
        "where a scheme without its queues would be seen"
    )
    assert json.loads(lab("show", small, "--json").stdout)["points"]["mininet"][-1] == "fast/threshold=6"


def test_show_says_how_to_run_what_has_no_textbook_senders(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(FILE.replace('"sim", "mininet"', '"mininet"'))
    assert f"run it: fairlane lab run {path} --runtime kernel (or --runtime mininet)" in words(lab("show", str(path)))


def test_show_tells_settings_of_links_that_are_words() -> None:
    assert "jitter_distribution normal" in words(lab("show", "leo-share"))


def test_show_prints_a_sentence_with_several_bounds_once() -> None:
    text = words(lab("show", "qthresh-table2"))
    assert "sim: 84 points, 5040 runs of 40 s" in text
    assert "mininet: 28 points, 168 runs of 26 s" in text
    assert "expected: Q9: the best thresholds are 4, 5, 6, 6 (3 bounds)" in text
    assert text.count("Q9") == 1


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8-sig", "small: Small"),
        ("utf-16", "small.toml: cannot be read: it is not UTF-8 text"),
    ],
)
def test_a_file_of_another_encoding(tmp_path: Path, encoding: str, said: str) -> None:
    path = tmp_path / "small.toml"
    path.write_text(FILE, encoding=encoding)
    assert said in words(lab("show", str(path)))


def test_run_prints_the_table_and_where_the_data_is(small: str, tmp_path: Path) -> None:
    result = lab("run", small, "--jobs", "1", "--results", str(tmp_path / "r"))
    assert result.exit_code == 0, result.output
    folder = (tmp_path / "r" / "small" / "latest").resolve()
    assert f"data {folder}/summary.json" in words(result)
    assert f"plot {folder}/plots/fairness.png" in words(result)
    assert "something · slow/threshold=6: " in words(result)
    shown = lab("show", str(folder))
    assert shown.exit_code == 0
    assert "slow" in shown.output
    assert lab("plot", str(folder)).exit_code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files that are another's")
def test_what_root_makes_is_of_whom_the_folder_is(small: str, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 4711, 4712)
    for _ in range(2):
        assert lab("run", small, "--jobs", "1", "--results", str(tmp_path / "theirs" / "r")).exit_code == 0
    made = list((tmp_path / "theirs").rglob("*"))
    assert {path.name for path in made} >= {"r", "small", "latest", "summary.json", "fairness.png"}
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in made} == {(4711, 4712)}


def test_where_no_run_folder_can_be_made_is_one_sentence(small: str) -> None:
    result = lab("run", small, "--no-plots", "--jobs", "1", "--results", small)
    assert result.exit_code == 3
    assert words(result).startswith(f"fairlane: {small}/small")
    assert words(result).endswith(": Not a directory")


def test_run_as_json_is_one_document(small: str, tmp_path: Path) -> None:
    result = lab("run", small, "--json", "--no-plots", "--set", "threshold=4..5", "--set", "case=slow", "--repeats", "1", "--jobs", "1", "--results", str(tmp_path))  # fmt: skip
    document = json.loads(result.stdout)
    assert [point["point"] for point in document["points"]] == ["slow/threshold=4", "slow/threshold=5"]
    assert document["complete"] is True


def test_a_value_with_a_comma_is_chosen_in_double_quotes() -> None:
    chosen = make_selection("sim", 1, None, ['case="near, 1 MB",far , "far, 9 KB"', "n=1..2,5"], quick=False)
    assert chosen.values == {"case": ("near, 1 MB", "far", "far, 9 KB"), "n": (1, 2, 5)}


def test_check_fails_when_an_expectation_is_not_met(small: str, tmp_path: Path) -> None:
    fair = ("run", small, "--no-plots", "--jobs", "1", "--results", str(tmp_path), "--set", "threshold=1", "--check")
    assert lab(*fair).exit_code == 0
    assert lab(*(word.replace("threshold=1", "threshold=20") for word in fair)).exit_code == 1


@pytest.mark.parametrize(
    ("threshold", "said"),
    [(4, "expectations about points that were not run: 2"), (5, "expectations about points that were not run: 1")],
)
def test_expectations_of_points_that_were_not_run_share_one_line(
    small: str, tmp_path: Path, threshold: int, said: str
) -> None:
    of_a_point = '[[expect]]\ntext = "of {0}"\nmetric = "fairness"\nmin = 0\nwhere = {{ threshold = {0} }}\n'
    with Path(small).open("a") as file:
        file.write(of_a_point.format(5) + of_a_point.format(6))
    result = lab(
        "run", small, "--no-plots", "--jobs", "1", "--results", str(tmp_path), "--set", f"threshold={threshold}"
    )
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if line.startswith("no data")]
    assert [line.removeprefix("no data").strip().startswith(said) for line in lines] == [True]
    assert ("of 5" in result.output, "of 6" in result.output) == (threshold == 5, False)


def test_failed_runs_are_listed_and_make_the_exit_code(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RUNNERS, "sim", "lab_fake_runners:fails")
    result = lab("run", small, "--no-plots", "--jobs", "1", "--repeats", "2", "--results", str(tmp_path))
    assert result.exit_code == 1
    assert "failed runs: 6;" in words(result)
    assert result.output.count("this machine stood still") == 1
    assert " and 5 more: this machine stood still" in words(result)
    assert "not complete: 6 of 12 runs" in words(result)


@pytest.mark.parametrize(
    ("runner", "runs"), [("interrupted", 1), ("interrupted_in_serializer", 1), ("interrupted_in_destructor", 2)]
)
def test_ctrl_c_keeps_what_is_there(
    runner: str, runs: int, small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RUNNERS, "sim", f"lab_fake_runners:{runner}")
    result = lab("run", small, "--no-plots", "--jobs", "1", "--results", str(tmp_path / "r"))
    assert result.exit_code == 130
    summary = json.loads((tmp_path / "r" / "small" / "latest" / "summary.json").read_text())
    assert (summary["complete"], summary["runs"], summary["failures"]) == (False, runs, [])


@pytest.mark.parametrize(
    "where", ["cli.running.find_experiments", "sweep.campaign.make_rows", "sweep.campaign.publish"]
)
def test_ctrl_c_within_a_serializer_ends_the_command(
    where: str, small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dump(*_arguments: object) -> object:
        return Varies().model_dump()

    monkeypatch.setattr(f"fairlane_lab.{where}", dump)
    result = lab("run", small, "--no-plots", "--jobs", "1", "--results", str(tmp_path / "r"))
    assert result.exit_code == 130, result.output


def test_a_run_in_a_folder_goes_on_and_refuses_what_changed(small: str, tmp_path: Path) -> None:
    command = ("run", small, "--no-plots", "--jobs", "1", "--folder", str(tmp_path / "set"), "--set", "threshold=4")
    assert lab(*command).exit_code == 0
    again = lab(*command)
    assert again.exit_code == 0
    assert "runs that were there already: 4" in words(again)
    other = lab(*command, "--seed", "2")
    assert other.exit_code == 3
    assert "seed was 1, is 2; name another folder" in words(other)
    assert (tmp_path / "set" / "runs.parquet").exists()


def test_a_report_has_the_newest_runs_and_a_table_any(small: str, tmp_path: Path) -> None:
    where = ("--results", str(tmp_path / "r"))
    for seed in ("1", "2"):
        assert lab("run", small, "--no-plots", "--jobs", "1", "--seed", seed, *where).exit_code == 0
    made = lab("report", "--out", str(tmp_path / "pages"), *where)
    assert made.exit_code == 0, made.output
    assert "Small" in (tmp_path / "pages" / "small.md").read_text()
    first, second = sorted(each for each in (tmp_path / "r" / "small").iterdir() if not each.is_symlink())
    assert "(seed 1, seed 2; medians of 2 runs)" in words(lab("show", str(first), str(second)))
    assert "every number is the same" in words(lab("show", str(first), str(first)))
    runs = json.loads(lab("show", str(first), str(second), "--json").stdout)["runs"]
    assert [run["seed"] for run in runs] == [1, 2]
    missing = lab("show", small, str(second))
    assert missing.exit_code == 2
    assert "is no run folder; allowed: one experiment, or run folders" in words(missing)
    nothing = lab("report", "--results", str(tmp_path / "empty"))
    assert nothing.exit_code == 3
    assert "no run folder of an experiment; run one first: fairlane lab run NAME" in words(nothing)


@pytest.mark.parametrize(
    ("code", "arguments", "message"),
    [
        (3, ["run", "qthresh-tabel1"], "there is no experiment 'qthresh-tabel1'. Did you mean 'qthresh-table1'?"),
        (3, ["run", "atm-*"], "no experiment is called like 'atm-*'"),
        (2, ["run", "qthresh-table1", "--runtime", "ns3"], "'ns3' is not one of 'sim', 'kernel', 'mininet'"),
        (2, ["run", "qthresh-table1", "--target", "tofino"], "'tofino' is not one of 'embedded', 'bmv2'"),
        (2, ["run", "qthresh-table1", "--target", "bmv2"], "bmv2 needs --runtime mininet"),
        (2, ["run", "qthresh-table2", "--set", "treshold=4"], "there is no parameter 'treshold'. Did you mean 'threshold'?"),
        (2, ["run", "qthresh-table2", "--set", "threshold"], "must be PARAM=VALUE, PARAM=VALUE,VALUE or PARAM=FIRST..LAST"),
        (2, ["run", "qthresh-table2", "--set", 'case="2M, 2ms'], "a value with a comma in double quotes"),
        (2, ["run", "fasttcp-clock", "--set", 'case="near, 1 GB"'], "case: there is no value 'near, 1 GB'. Did you mean 'near, 1 MB'?"),
        (2, ["run", "qthresh-table2", "--set", "threshold=9..x"], "must be two whole numbers"),
        (2, ["run", "qthresh-table2", "--set", "threshold=4", "--set", "threshold=5"], "threshold is set twice"),
        (2, ["run", "qthresh-table2", "--set", "threshold=0"], "got 0; allowed: packets from 1 to 65535, 'model' or 'auto'"),
        (2, ["run", "qthresh-table2", "--dask", "here"], "--dask 'here': must be the address of a dask scheduler"),
        (3, ["plot", "/nonexistent"], "/nonexistent: not a run folder: there is no summary.json in it"),
        (2, ["run", "qthresh-table1", "demo", "--folder", "x"], "--folder is the folder of one experiment's runs"),
        (2, ["run", "qthresh-table2", "--dask", "tcp://x:1", "--jobs", "2"], "the scheduler has processes of its own"),
        (2, ["run", "qthresh-table2", "--dask", "tcp://x:1", "--threads", "2"], "--threads: of runs in the simulator on this machine"),
        (2, ["run", "qthresh-table2", "--runtime", "kernel", "--threads", "2"], "--threads: of runs in the simulator on this machine"),
        (3, ["show", "nothing"], "there is no experiment 'nothing'"),
        (3, ["show", "/nonexistent/folder"], "not a run folder: there is no summary.json in it"),
    ],
)  # fmt: skip
def test_bad_arguments_say_what_is_allowed(code: int, arguments: list[str], message: str) -> None:
    result = lab(*arguments)
    assert result.exit_code == code
    assert message in words(result)


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        ("duration_s = 20", "duration_s = ", ["small.toml: not TOML"]),
        ("duration_s = 20", "durations_s = 20", ["run.durations_s: there is no key 'durations_s'. Did you mean 'duration_s'?"]),
        ('variant = "vegas"', 'variant = "vages"', ["flows[1].variant: there is no variant 'vages'. Did you mean 'vegas'?"]),
        ('base = "dumbbell"', 'base = "ring"', ["topology.base: there is no topology 'ring'"]),
    ],
)  # fmt: skip
def test_a_broken_file_is_refused_with_its_name_the_key_and_what_is_allowed(
    old: str, new: str, messages: list[str], small: str, tmp_path: Path
) -> None:
    path = Path(small)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    result = lab("run", small, "--results", str(tmp_path / "r"))
    assert result.exit_code == 3
    assert "small.toml" in words(result)
    for message in messages:
        assert message in words(result)
    assert not (tmp_path / "r").exists()


def test_mininet_needs_root_and_is_given_the_file_s_parallel(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("run", small, "--runtime", "mininet", "--no-plots", "--results", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "Mininet needs root" in lab(*command).output
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert lab(*command).exit_code == 0


DEEP = "[" * 50_000


@pytest.mark.parametrize("value", [DEEP, "[" * 200 + "]" * 200, "{a=" * 300 + "1" + "}" * 300])
def test_a_file_that_is_nested_too_deep_is_a_mistake_and_no_traceback(tmp_path: Path, value: str) -> None:
    path = tmp_path / "small.toml"
    path.write_text(f"{FILE}\n[topology.links.x]\ndeep = {value}\n")
    for command in (["show", str(path)], ["show", str(path), "--json"], ["run", str(path)]):
        result = lab(*command)
        assert isinstance(result.exception, SystemExit), (command, result.exception)
        assert "arrays or objects are nested more than 64 levels deep" in words(result), command


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DEEP, "not JSON: arrays or objects are nested more than 64 levels deep"),
        ('{"points": ' + DEEP, "nested more than 64 levels deep"),
        ("NaN", "not JSON: NaN is no JSON number"),
        ("[]", "it must be a JSON object"),
        ("{}", "experiment: is missing; runtime: is missing; definition: is missing; points: is missing"),
        ('{"experiment": "x", "runtime": "sim", "definition": {}, "points": [{}]}', "points[0].point: is missing"),
        ('{"experiment": "x", "runtime": "moon", "definition": {}, "points": []}', "runtime: got 'moon'; allowed: 'sim', 'kernel' or 'mininet'"),
    ],
)  # fmt: skip
def test_a_summary_that_is_none_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    folder = tmp_path / "experiment" / "run"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(text)
    for command in (
        ["show", str(folder)],
        ["show", str(folder), str(folder)],
        ["report", str(folder)],
        ["plot", str(folder)],
    ):
        result = lab(*command)
        assert isinstance(result.exception, SystemExit), (command, result.exception)
        assert result.exit_code == 3, command
    assert message in words(lab("show", str(folder)))
