# SPDX-License-Identifier: Apache-2.0
"""The real command in a process of its own: Ctrl-C and SIGTERM leave a usable partial result, a sweep goes on, and data are the same bytes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fairlane_lab.cli import app
from fairlane_lab.definition.expansion import Selection
from fairlane_lab.definition.loading import load
from fairlane_lab.results.tables import DETERMINISTIC
from fairlane_lab.run_result import SIM
from fairlane_lab.runners import sim
from fairlane_lab.sweep.campaign import Campaign, run_campaign
from fairlane_lab.sweep.runners import local_executor
from typer.testing import CliRunner

pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")

pytestmark = pytest.mark.timed

DEADLINE_S = 120.0
SHORT = ("--set", "duration_s=5", "--set", "warmup_s=3")
ONE_LINK = ("--set", "case=2M-2ms")
DRIVER = """
from fairlane_lab.results import tables
tables.BATCH_S = 0.0  # each result on the disk at once, so that the test sees it
if __name__ == "__main__":
    from fairlane_lab.cli import app
    app()
"""


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    path = tmp_path / "driver.py"
    path.write_text(DRIVER)
    return path


def interrupted(driver: Path, folder: Path, number: signal.Signals, *arguments: str) -> tuple[int, str]:
    """Exit code and standard error of a command that gets a signal, as its whole group does in a terminal, when two batches are in `folder`."""
    process = subprocess.Popen(
        [sys.executable, str(driver), *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + DEADLINE_S
        # Of a sweep's folder or of a run's; not `**`, which also looks into batches that are gone by then.
        while not [*folder.glob("parts/00002"), *folder.glob("*/*/parts/00002")]:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline, "no result on the disk"
            time.sleep(0.01)
        os.killpg(process.pid, number)
        said = process.communicate(timeout=DEADLINE_S)[1]
    finally:
        process.kill()
        process.wait()
    return process.returncode, said


def lab(*arguments: str) -> str:
    """Standard output of a command that has to succeed."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def summary_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "summary.json").read_text())


def same_bytes(folders: Sequence[Path]) -> None:
    """Every table that a seed decides is there and equal, byte by byte; only times of the wall clock may differ."""
    for name in (*(f"{table}.parquet" for table in DETERMINISTIC), "events.jsonl", "campaign.json"):
        files = {(folder / name).read_bytes() for folder in folders}
        assert len(files) == 1, f"{name} differs"
    first, *others = ({path.name for path in folder.iterdir()} for folder in folders)
    assert all(other == first for other in others)


@pytest.mark.parametrize(
    ("number", "code", "jobs"), [(signal.SIGINT, 130, "1"), (signal.SIGTERM, 143, "2"), (signal.SIGHUP, 129, "1")]
)
def test_a_signal_leaves_a_partial_result_that_can_be_used(
    driver: Path, tmp_path: Path, number: signal.Signals, code: int, jobs: str
) -> None:
    results = tmp_path / "r"
    command = ("run", "qthresh-fig9", "--repeats", "2000", *ONE_LINK, *SHORT, "--jobs", jobs, "--no-plots")
    ended, said = interrupted(driver, results, number, *command, "--results", str(results))
    folder = (results / "qthresh-fig9" / "latest").resolve()
    kept = f"interrupted: what was measured until then is kept; the same command with --folder {folder} goes on"
    assert (ended, said.strip()) == (code, kept)
    summary = summary_of(folder)
    assert not summary["complete"]
    assert 2 <= summary["runs"] < summary["asked_runs"] == 2000
    assert not (folder / "parts").exists()
    assert "every number is the same" in lab("show", str(folder), str(folder))
    if jobs == "1":
        assert "cwnd.png" in lab("plot", str(folder))
        page = Path(lab("report", "--results", str(results)).split()[-1]).read_text()
        assert ", not complete |" in page


def test_an_interrupted_run_in_a_folder_goes_on_and_ends_with_the_same_bytes(driver: Path, tmp_path: Path) -> None:
    folder, whole = tmp_path / "sweep", tmp_path / "whole"
    where = ("--no-plots", "--jobs", "1", "--folder", str(folder))
    command = ("run", "qthresh-fig9", "--repeats", "40", *ONE_LINK, *SHORT, *where)
    ended, said = interrupted(driver, folder, signal.SIGINT, *command)
    assert ended == 130
    assert "what was measured until then is kept" in said
    before = summary_of(folder)
    assert 0 < before["runs"] < 40
    assert f"runs that were there already: {before['runs']}" in lab(*command)
    assert summary_of(folder)["complete"]
    selection = Selection(repeats=40, values={"case": ("2M-2ms",), "duration_s": (5,), "warmup_s": (3,)})
    run_campaign(Campaign(load("qthresh-fig9"), selection, whole), local_executor(SIM))
    same_bytes([folder, whole])


def test_one_process_two_and_a_second_run_give_the_same_bytes(tmp_path: Path) -> None:
    command = ("run", "qthresh-table1", "--repeats", "2", "--set", "case=512k-5ms,2M-2ms", *SHORT, "--no-plots")
    folders: list[Path] = []
    for name, jobs in (("one", "1"), ("two", "2"), ("again", "1")):
        lab(*command, "--jobs", jobs, "--results", str(tmp_path / name))
        folders.append((tmp_path / name / "qthresh-table1" / "latest").resolve())
    same_bytes(folders)
    assert (folders[0] / "series.parquet").stat().st_size > 1000


async def test_an_interrupted_wait_of_a_run_leaves_no_timer() -> None:
    """Its timer would set a result that nobody waits for any more: a traceback in the place of the one sentence."""
    loop, problems = asyncio.get_running_loop(), list[Any]()
    loop.set_exception_handler(lambda _, context: problems.append(context))
    waits = asyncio.ensure_future(sim._instant(loop.time() + 0.01))  # pyright: ignore[reportPrivateUsage]
    await asyncio.sleep(0)
    waits.cancel()
    await asyncio.sleep(0.05)
    assert problems == []
