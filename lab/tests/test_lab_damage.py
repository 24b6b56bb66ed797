# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
"""A full disk, tables that cannot be read, a worker that dies at the start: one sentence each, and the campaign goes on where it can."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from fairlane_lab.cli.running import RUNNERS
from fairlane_lab.definition.expansion import Selection
from fairlane_lab.problems import RunFolderError
from fairlane_lab.results import tables
from fairlane_lab.results.tables import DETERMINISTIC
from fairlane_lab.run_result import RunError
from fairlane_lab.sweep.campaign import Campaign, CampaignResult, run_campaign
from fairlane_lab.sweep.runners import local_executor
from lab_command import lab
from report_folders import make_folder, text_of
from test_lab_definition import FILE
from test_lab_sweep import THREE, definition

RUN = "lab_fake_runners:run"


def run_all(folder: Path) -> CampaignResult:
    return run_campaign(Campaign(definition(), THREE, folder), local_executor(RUN))


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a campaign of 18 runs that was killed when three parts of one run each were written."""
    monkeypatch.setattr(tables, "BATCH_S", 0.0)

    def merge(_store: object) -> None:
        raise SystemExit("killed")

    selection = Selection(repeats=3, values={"case": ("slow",), "threshold": (4,)})
    with monkeypatch.context() as patch:
        patch.setattr(tables.Store, "merge", merge)
        with pytest.raises(SystemExit):
            run_campaign(Campaign(definition(), selection, tmp_path / "new"), local_executor(RUN))
    assert [path.name for path in sorted((tmp_path / "new" / "parts").iterdir())] == ["00001", "00002", "00003"]
    return tmp_path / "new"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite_the_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [cut, empty, overwrite_the_middle])
@pytest.mark.parametrize("table", ["runs", "flows"])
def test_a_damaged_part_is_named_and_without_it_its_runs_are_made_again(
    damage: Callable[[Path], None], table: str, stopped: Path, tmp_path: Path
) -> None:
    path = stopped / "parts" / "00002" / f"{table}.parquet"
    damage(path)
    with pytest.raises(RunError, match=rf"{path} is damaged \(.+\): move {path.parent} away, and the same command"):
        run_all(stopped)
    path.parent.rename(tmp_path / "away")
    done = run_all(stopped)
    assert (done.complete, done.summary["runs"]) == (True, 18)
    run_all(tmp_path / "whole")
    for name in DETERMINISTIC:
        assert (stopped / f"{name}.parquet").read_bytes() == (tmp_path / "whole" / f"{name}.parquet").read_bytes(), name


def test_a_damaged_table_is_one_sentence_of_plot(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "r", text_of("qthresh-table1"), repeats=1)
    cut(folder / "series.parquet")
    result = lab("plot", str(folder))
    assert isinstance(result.exception, SystemExit), result.exception
    assert f"{folder / 'series.parquet'} is damaged (" in result.output


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("inputs", [], "inputs: "),
        ("selections", {}, "selections: "),
        ("selections", [1], "selections[0]: "),
        ("selections", [{"repeats": 3, "values": {"threshold": 4}}], "selections[0].values.threshold: "),
    ],
)
def test_a_campaign_json_with_a_wrong_type_is_told_with_its_place(
    tmp_path: Path, key: str, value: object, said: str
) -> None:
    run_all(tmp_path / "new")
    path = tmp_path / "new" / "campaign.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    before = path.read_bytes()
    with pytest.raises(RunFolderError, match=re.escape(f"{path}: not of `fairlane lab run`: {said}")):
        run_all(tmp_path / "new")
    assert path.read_bytes() == before


@pytest.mark.parametrize("option", ["--results", "--folder"])
@pytest.mark.parametrize("written", [0, 3])
def test_a_full_disk_is_one_sentence(
    option: str, written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is on it is used when there is room again."""
    (tmp_path / "small.toml").write_text(FILE)
    monkeypatch.setattr(tables, "BATCH_S", 0.0)
    monkeypatch.setitem(RUNNERS, "sim", RUN)
    there: list[Path] = []

    def full(path: Path, table: object) -> None:
        there.extend([path] * (path.name == "runs.parquet"))
        if len(there) > written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, table)  # pyright: ignore[reportArgumentType]

    write = tables.write
    command = ["run", str(tmp_path / "small.toml"), "--no-plots", "--jobs", "1", option, str(tmp_path / "r")]
    with monkeypatch.context() as patch:
        patch.setattr(tables, "write", full)
        result = lab(*command)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert said.startswith("fairlane: ")
    assert "cannot be written: No space left on device" in said
    assert "goes on with the runs that are in it" in said
    if option == "--folder":
        again = lab(*command)
        assert again.exit_code == 0, again.output
        assert ("runs that were there already: 3" in again.output) == (written == 3)


def test_a_file_in_place_of_the_run_folder_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(FILE)
    said = lab("run", str(path), "--jobs", "1", "--folder", str(path)).output.split("\n", 1)[-1]
    assert " ".join(said.split()).endswith("small.toml cannot be written: File exists")


def test_a_full_disk_at_the_very_start_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("fairlane_lab.inputs.shutil.copy", full)
        with pytest.raises(RuntimeError, match="cannot be written: No space left on device"):
            run_all(tmp_path / "new")
    assert run_all(tmp_path / "new").complete
