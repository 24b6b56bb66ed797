# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
"""`fairlane lab run --archived`: archived runs are judged where a sample of them comes out the same; and a sample of docs/results does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fairlane_lab.cli.running import RUNNERS
from fairlane_lab.definition.expansion import expand
from fairlane_lab.definition.loading import load
from fairlane_lab.paths import RESULTS_DATA
from fairlane_lab.problems import RunFolderError
from fairlane_lab.report.archive import Archived, archive_run, find_archived
from fairlane_lab.results.rows import make_rows
from fairlane_lab.results.tables import archived_row
from fairlane_lab.run_result import SIM, RunResult
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep.runners import Outcome, local_executor
from lab_command import lab
from lab_fake_runners import run as make
from test_lab_definition import FILE, definition

IN_SIM = sorted(path.name.split(".")[0] for path in RESULTS_DATA.glob("*.sim.runs.parquet"))
LARGEST_PACKETS = 1_000_000
"""Of a run that `make test` makes again: some seconds."""


def run(*arguments: str) -> tuple[int, str]:
    result = lab("run", *arguments, "--jobs", "1")
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An experiment's file with archived runs of a made-up runner."""
    monkeypatch.setitem(RUNNERS, "sim", "lab_fake_runners:run")
    monkeypatch.setattr("fairlane_lab.cli.running.RESULTS_DATA", tmp_path / "data")
    path = tmp_path / "small.toml"
    path.write_text(FILE)
    run(str(path), "--results", str(tmp_path / "first"), "--no-plots")
    archive_run(tmp_path / "first" / "small" / "latest", tmp_path / "data")
    return str(path)


def test_where_a_sample_is_the_same_the_archive_is_judged_and_nothing_else_is_run(small: str, tmp_path: Path) -> None:
    code, said = run(small, "--archived", "--results", str(tmp_path / "again"))
    assert code == 0, said
    assert "6 of 6 runs that were made again are the archive's" in said
    assert "something · slow/threshold=6: " in said
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    ("runner", "says"), [("other", ", archived is "), ("fails", "run 1: this machine stood still")]
)
def test_a_sample_that_differs_fails_and_says_where(
    runner: str, says: str, small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RUNNERS, "sim", f"lab_fake_runners:{runner}")
    code, said = run(small, "--archived", "--results", str(tmp_path / "again"))
    assert code == 1
    assert "6 of 6" not in said
    assert says in said
    assert not (tmp_path / "again").exists(), "what is wrong is not hidden by new runs"


def test_a_run_that_never_recovered_and_now_does_differs() -> None:
    def row(recovery_s: float | None) -> tuple[Scenario, RunResult]:
        scenario = expand(definition())[0]
        result = make(scenario)
        for flow in result.flows:
            flow.after_spike_bytes, flow.recovery_s = 1.0, recovery_s
        return scenario, result

    scenario, made = row(1.5)
    then = archived_row(make_rows(*row(None), "sim", "embedded")["runs"][0])
    archive = Archived(definition(), {}, {(scenario.point, 0): then}, [scenario])
    differences = archive.rerun(lambda sample, take: take(Outcome(sample[0], made)), lambda _outcome: None)
    assert differences == [f"{scenario.point}, run 0: recovery_s is 1.5, archived is inf"]


def test_an_interrupted_sample_differs_in_nothing(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RUNNERS, "sim", "lab_fake_runners:interrupted_in_serializer")
    code, said = run(small, "--archived")
    assert (code, "run 1" in said) == (130, False)


def test_one_number_changed_in_an_archive_is_found(small: str, tmp_path: Path) -> None:
    """Whichever run it is of: only a sample is made again."""
    (path,) = (tmp_path / "data").glob("*.runs.parquet")
    table = pq.read_table(path)
    place = table.column_names.index("goodput_bps")
    values = table["goodput_bps"].to_pylist()
    values[-1] += 1
    pq.write_table(
        table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type)), path
    )
    code, said = run(small, "--archived", "--check")
    assert code == 1
    assert "its numbers are not those that were archived" in said


def test_a_file_that_runs_otherwise_now_says_so(small: str) -> None:
    Path(small).write_text(FILE.replace("duration_s = 20", "duration_s = 21"))
    code, said = run(small, "--archived")
    assert code == 1
    assert "run it anew" in said


@pytest.mark.parametrize("option", [["--quick"], ["--repeats", "3"], ["--seed", "2"], ["--runtime", "mininet"]])
def test_what_no_archive_has_is_refused(option: list[str], small: str) -> None:
    code, said = run(small, "--archived", *option)
    assert code == 2
    assert "--archived: " in said


@pytest.mark.parametrize("name", IN_SIM)
def test_a_run_of_docs_results_comes_out_the_same(name: str) -> None:
    """The short form of `fairlane lab run all --archived --check`: of each experiment the smallest run of the sample."""
    try:
        found = find_archived(RESULTS_DATA, load(name), "sim")
    except RunFolderError as error:
        pytest.skip(str(error))
    assert found is not None
    least = min(found.sample, key=lambda each: found.rows[each.point, each.repeat]["packets"])
    if (packets := found.rows[least.point, least.repeat]["packets"]) > LARGEST_PACKETS:
        pytest.skip(f"its smallest run is of {packets} packets")
    differences = found.rerun(
        lambda _sample, on_outcome: local_executor(SIM)([least], on_outcome), lambda _outcome: None
    )
    assert differences == []
