# SPDX-License-Identifier: Apache-2.0
"""What decides a run's bytes: a campaign whose files changed is another one, a run folder holds them, and gives the same bytes elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from fairlane_lab.definition.expansion import Selection
from fairlane_lab.definition.loading import load
from fairlane_lab.inputs import Input, configuration, digest_once
from fairlane_lab.paths import REPOSITORY
from fairlane_lab.problems import RunFolderError
from fairlane_lab.results.tables import DETERMINISTIC
from fairlane_lab.run_result import SIM
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep.campaign import Campaign, run_campaign
from fairlane_lab.sweep.runners import OnOutcome, local_executor, run_one
from fairlane_lab.sweep.workers import process_pool

RUN = "lab_fake_runners:run"
EXAMPLES = REPOSITORY / "docs" / "examples"
EXPERIMENT = """
name = "mine"
extends = "base"
title = "Mine"
paper = "none"
reproduces = "nothing"
what = "A program, a sender, a topology and a trace of the user's own."
runtimes = ["sim"]
program = "own/"
senders = ["SENDER/"]
topology.base = "line.json"
topology.links."h1-s1" = { rate_bps = { trace = "cell.trace" } }
sweep.limit = [5, 40]
run.duration_s = 4
run.warmup_s = 1
"""
BASE = """
main_metrics = ["goodput_bps", "refused"]
flows = [
  { name = "one", sender = "h1", receiver = "h3", variant = "SENDER" },
  { name = "two", sender = "h2", receiver = "h3", variant = "vegas" },
]
"""


def write_own(folder: Path, sender: str) -> Path:
    """An experiment of the user's with all that it may bring, in a folder of its own; senders of different tests have different names."""
    folder.mkdir()
    (folder / "mine.toml").write_text(EXPERIMENT.replace("SENDER", sender))
    (folder / "base.toml").write_text(BASE.replace("SENDER", sender))
    topology = json.loads((REPOSITORY / "mininet" / "topologies" / "dumbbell.json").read_text())
    (folder / "line.json").write_text(json.dumps({**topology, "name": "line"}))
    (folder / "cell.trace").write_text("1\n2\n3\n")
    (folder / "own").mkdir()
    for name in ("program.py", "droptail.p4", "droptail.json", "droptail.p4info.txtpb"):
        (folder / "own" / name).write_bytes((EXAMPLES / "droptail" / name).read_bytes())
    (folder / sender).mkdir()
    for name in ("sender.py", "gentle.h"):
        text = (EXAMPLES / "gentle" / name).read_text()
        for old in ("gentle", "Gentle", "GENTLE"):
            text = text.replace(old, sender)
        (folder / sender / name.replace("gentle", sender)).write_text(text)
    return folder


def campaign(folder: Path, out: Path) -> Campaign:
    return Campaign(load(str(folder / "mine.toml")), Selection(repeats=1), out)


FILES = {
    "cell.trace": ("1", "1 ", "trace cell.trace was"),
    "line.json": ('"line"', '"wire"', "topology line.json was"),
    "own/program.py": ("SPDX", "spdx", "program own was"),
    "own/droptail.p4": ("SPDX", "spdx", "program own was"),
    "own/droptail.json": ("{", "{ ", "program own was"),
    "SENDER/sender.py": ("SPDX", "spdx", "sender SENDER was"),
    "SENDER/SENDER.h": ("SPDX", "spdx", "sender SENDER was"),
    "base.toml": ('variant = "vegas"', 'variant = "reno"', "definition_sha256 was"),
}


@pytest.mark.parametrize("file", FILES)
def test_a_campaign_whose_files_changed_is_another_one(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From whatever folder it is named."""
    sender = f"s{list(FILES).index(file)}x"
    old, new, said = FILES[file]
    folder = write_own(tmp_path / "files", sender)
    assert run_campaign(campaign(folder, tmp_path / "run"), local_executor(RUN)).complete
    again = run_campaign(campaign(folder, tmp_path / "run"), local_executor(RUN))
    assert again.skipped == 2, "nothing has changed"
    path = folder / file.replace("SENDER", sender)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    digest_once.cache_clear()  # as in a process of its own
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunFolderError) as caught:
        run_campaign(campaign(Path("files"), tmp_path / "run"), local_executor(RUN))
    assert said.replace("SENDER", sender) in str(caught.value)


def test_a_run_folder_holds_the_files_of_its_runs(tmp_path: Path) -> None:
    folder = write_own(tmp_path / "files", "holder")
    run_campaign(campaign(folder, tmp_path / "run"), local_executor(RUN))
    copies = tmp_path / "run" / "inputs" / "own"
    there = {str(path.relative_to(copies)): path.read_bytes() for path in copies.rglob("*") if path.is_file()}
    mine = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}  # fmt: skip
    assert there == mine
    assert json.loads((tmp_path / "run" / "campaign.json").read_text())["file"] == "inputs/own/mine.toml"


def test_other_values_go_into_the_same_folder(tmp_path: Path) -> None:
    folder = write_own(tmp_path / "files", "valued")
    definition = load(str(folder / "mine.toml"))
    for limit, skipped in ((5, 0), (40, 0), (5, 1)):
        selection = Selection(repeats=1, values={"limit": (limit,)})
        done = run_campaign(Campaign(definition, selection, tmp_path / "run"), local_executor(RUN))
        assert (done.skipped, done.complete) == (skipped, True)
    said = json.loads((tmp_path / "run" / "campaign.json").read_text())
    assert said["selections"] == [{"repeats": 1, "values": {"limit": [limit]}} for limit in (5, 40)]


def test_another_value_of_a_constant_is_another_campaign(tmp_path: Path) -> None:
    """No point's name says it."""
    file = write_own(tmp_path / "files", "constant") / "mine.toml"
    file.write_text(file.read_text().replace("sweep.limit = [5, 40]", "params.limit = 5"))
    definition = load(str(file))

    def skipped(name: str, **values: Sequence[int]) -> int:
        selection = Selection(repeats=1, values=values)
        return run_campaign(Campaign(definition, selection, tmp_path / name), local_executor(RUN)).skipped

    assert (skipped("one"), skipped("one", limit=(5,))) == (0, 1), "the file's own value"
    with pytest.raises(RunFolderError, match=r"set\.limit was the file's, is \[40\]; name another folder"):
        skipped("one", limit=(40,))
    assert skipped("two", limit=(40,)) == 0
    with pytest.raises(RunFolderError, match=r"set\.limit was \[40\], is the file's"):
        skipped("two")
    assert skipped("one", limit=(5, 40)) == 0, "an axis, which is in the points' names"


def test_a_file_that_changes_while_the_campaign_runs_ends_it(tmp_path: Path) -> None:
    folder = write_own(tmp_path / "files", "changer")

    def execute(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        for scenario in scenarios:
            outcome = run_one(RUN, scenario)
            on_outcome(outcome)
            (folder / "cell.trace").write_text("1\n5\n9\n")

    done = run_campaign(campaign(folder, tmp_path / "run"), execute)
    assert done.stopped.endswith("cell.trace changed while the campaign ran: what ran since then is not kept")
    assert done.summary["runs"] == 1


def test_a_program_that_changed_since_it_was_loaded_is_not_run(tmp_path: Path) -> None:
    """In a notebook: its classes are those of before."""
    folder = write_own(tmp_path / "files", "notebook")
    assert run_campaign(campaign(folder, tmp_path / "one"), local_executor(RUN)).complete
    with (folder / "own" / "program.py").open("a") as file:
        file.write("# another\n")
    with pytest.raises(RunFolderError, match=r"program \S+own has changed since this process loaded it: start another"):
        run_campaign(campaign(folder, tmp_path / "two"), local_executor(RUN))


def test_a_worker_with_other_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_own(tmp_path / "files", "worker")

    def other(_each: Input) -> str:
        return "0123456789ab"

    monkeypatch.setattr("fairlane_lab.sweep.workers.digest_once", other)
    done = run_campaign(campaign(folder, tmp_path / "run"), process_pool(RUN, 1))
    assert "other files: program " in done.stopped
    assert "here 0123456789ab" in done.stopped


def test_a_configuration_is_what_is_in_the_files_and_not_where_they_lie(tmp_path: Path) -> None:
    def configurations(folder: Path) -> list[str]:
        return [configuration(each) for each in campaign(folder, tmp_path).scenarios]

    sender = "placed"
    first = write_own(tmp_path / "first", sender)
    before = configurations(first)
    assert len(set(before)) == 2
    text = (first / "cell.trace").read_text()
    (first / "cell.trace").write_text(f"{text}4\n")
    assert not set(before) & set(configurations(first))
    (first / "cell.trace").write_text(text)
    (first / "other").mkdir()
    for path in first.glob("*.*"):
        path.rename(first / "other" / path.name)
    (first / "own").rename(first / "other" / "own")
    (first / "other" / sender).symlink_to(first / sender)
    assert configurations(first / "other") == before


@pytest.mark.timeout(900)
def test_a_run_folder_gives_the_same_bytes_in_another_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With files of the user's own: the folder that they came from is gone by then."""
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    folder = write_own(tmp_path / "files", "bundled")
    monkeypatch.setenv("FAIRLANE_SENDERS", "")
    done = run_campaign(campaign(folder, tmp_path / "run"), local_executor(SIM))
    assert done.complete, done.failures
    folder.rename(tmp_path / "gone")
    there = (tmp_path / "run").rename(tmp_path / "elsewhere")
    environment = {**os.environ, "FAIRLANE_SENDERS": "", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["sh", str(there / "repeat.sh")]
    again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=800)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "the same bytes: runs.parquet" in again.stdout
    for name in DETERMINISTIC:
        file = f"{name}.parquet"
        assert (there / file).read_bytes() == (there / "again" / file).read_bytes(), name
    other = (there / "flows.parquet").read_bytes()
    (there / "runs.parquet").write_bytes(other)
    differs = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=800)
    assert differs.returncode != 0
    assert "runs.parquet" in differs.stdout + differs.stderr


def test_the_script_of_a_run_folder_has_every_selection_that_was_run(tmp_path: Path) -> None:
    for repeats in (1, 2):
        values = {"case": ("2M-2ms",), "duration_s": (8,), "warmup_s": (2.5,)}
        selection = Selection(repeats=repeats, quick=True, values=values)
        run_campaign(Campaign(load("qthresh-table1"), selection, tmp_path / "run"), local_executor(RUN))
    lines = (tmp_path / "run" / "repeat.sh").read_text().splitlines()
    command = (
        'fairlane lab run qthresh-table1.toml --folder "$here/again" --no-plots --runtime sim --target embedded --seed 1'
        " --quick --repeats {} --set case=2M-2ms --set duration_s=8 --set warmup_s=2.5"
    )
    assert lines[4:7] == ['cd "$here/inputs/fairlane/lab/experiments"', command.format(1), command.format(2)]
    for file in (
        "lab/experiments/qthresh-table1.toml",
        "mininet/topologies/dumbbell.json",
        "p4src/compiled/qthresh.json",
    ):
        assert (tmp_path / "run" / "inputs" / "fairlane" / file).exists(), file
