# SPDX-License-Identifier: Apache-2.0
"""`fairlane new`: what it writes runs as it is (in the simulator here; PTF and Mininet have the same files as docs/examples)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fairlane_controller.cli.main import main
from fairlane_controller.program.registry import load_program

FAIRLANE = Path(sys.executable).with_name("fairlane")


def call(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert isinstance(ended.value.code, int)
    return ended.value.code


def lab_run(folder: Path, *words: str, quick: bool = True) -> dict[str, list[dict[str, dict[str, float]]]]:
    """The summary of one run a point, from the folder above what was made; without `quick` of as many as the file says."""
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    command = [str(FAIRLANE), "lab", "run", *words, *(["--quick"] if quick else []), "--no-plots", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_scheme_runs_at_once_and_its_results_are_beside_it(here: Path) -> None:
    assert call("new", "my_queue") == 0
    assert sorted(path.name for path in (here / "my_queue").rglob("*") if path.is_file()) == [
        "README.md", "experiment.toml", "limit.py", "my_queue.json", "my_queue.p4", "my_queue.p4info.txtpb", "program.py",
    ]  # fmt: skip
    program = load_program("my_queue/")
    assert (program.name, type(program).__name__, program.tables) == ("my_queue", "MyQueue", ("my_queue_limit",))
    written = [path for path in (here / "my_queue").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert not [path for path in written if "droptail" in path.read_text().lower()]
    points = lab_run(here, "my_queue/experiment.toml")["points"]
    refused = [point["metrics"]["refused"] for point in points]
    assert refused[0] > refused[-1] > 0
    assert len(list((here / "results" / "my-queue-limit").glob("latest/summary.json"))) == 1


def test_a_sender_runs_at_once(here: Path) -> None:
    assert call("new", "--sender", "my_tcp") == 0
    written = [path for path in (here / "my_tcp").iterdir() if path.is_file()]
    assert sorted(path.name for path in written) == ["README.md", "experiment.toml", "my_tcp.h", "sender.py"]
    assert not [path for path in written if "gentle" in path.read_text().lower()]
    dropped = lab_run(here, "my_tcp/experiment.toml")["points"][0]["metrics"]
    assert dropped["goodput_bps[my_tcp]"] > 2 * dropped["goodput_bps[reno]"], "it takes more than its share"
    header = here / "my_tcp" / "my_tcp.h"
    header.write_text(header.read_text().replace("* 7 / 8", "/ 2"))
    halved = lab_run(here, "my_tcp/experiment.toml")["points"][0]["metrics"]
    assert 0.6 < halved["goodput_bps[my_tcp]"] / halved["goodput_bps[reno]"] < 1.6, "Reno beside Reno: compiled again"


def test_an_experiment_runs_at_once(here: Path) -> None:
    assert call("new", "--experiment", "my-question") == 0
    first, second = lab_run(here, "my-question.toml", "--check")["points"]
    assert first["metrics"]["fairness"] < 0.5 < second["metrics"]["fairness"]


def test_an_experiment_may_be_named_as_a_program(here: Path) -> None:
    assert call("new", "--experiment", "codel") == 0
    assert (here / "codel.toml").exists()


@pytest.mark.parametrize(
    ("kind", "file"),
    [((), "mine/experiment.toml"), (("--sender",), "mine/experiment.toml"), (("--experiment",), "mine.toml")],
)
def test_what_is_expected_is_decided(kind: tuple[str, ...], file: str, here: Path) -> None:
    """There are enough runs for it."""
    assert call("new", *kind, "mine") == 0
    short = ("--set", "duration_s=25", "--set", "warmup_s=10")
    verdicts = lab_run(here, file, "--check", *short, quick=False)["verdicts"]
    assert [verdict["met"] for verdict in verdicts] == [True]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("Mine",), "name 'Mine': must be words of small letters and digits with one _ between two of them"),
        (("../mine",), "name '../mine': must be words"),
        (("my-queue",), "with one _ between"),
        (("a" * 33,), "at most 32 characters"),
        (("qthresh",), "qthresh is a program of fairlane already"),
        (("there",), "there is there already"),
        (("--sender", "my-tcp"), "with one _ between"),
        (("--sender", "a" * 13), "at most 12 characters"),
        (("--sender", "there"), "there is there already"),
        (("--sender", "--experiment", "both"), "exclude each other"),
        (("--experiment", "my_question"), "with one - between"),
        (("--experiment", "there"), "there.toml is there already"),
    ],
)
def test_refusals_write_nothing(
    here: Path, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "there").mkdir()
    (here / "there.toml").touch()
    assert call("new", *words) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == ["there", "there.toml"]
