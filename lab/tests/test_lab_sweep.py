# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
"""Campaigns with made-up runners: one core or two, a crash, a failure, Ctrl-C, going on, and a dask cluster of this machine."""

from __future__ import annotations

import json
import pkgutil
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fairlane_lab.definition.expansion import Selection
from fairlane_lab.definition.loading import Definition, load_text
from fairlane_lab.definition.schema import MininetOverrides
from fairlane_lab.inputs import build_hashes
from fairlane_lab.problems import RunFolderError
from fairlane_lab.results.tables import DETERMINISTIC
from fairlane_lab.run_result import SIM, RunError
from fairlane_lab.runners.mininet import tree_s
from fairlane_lab.sweep import workers
from fairlane_lab.sweep.campaign import Campaign, run_campaign
from fairlane_lab.sweep.runners import Outcome, local_executor, mininet_testbed, processor_s
from fairlane_lab.sweep.workers import dask_cluster, process_pool
from lab_command import lab
from test_lab_definition import FILE

RUN, FAILS, CRASHES, INTERRUPTED, SLOW, HANGS = (
    f"lab_fake_runners:{name}" for name in ("run", "fails", "crashes", "interrupted", "slow", "hangs")
)
THREE = Selection(repeats=3)


def definition() -> Definition:
    return load_text(FILE, "small.toml", "small")


def test_one_process_and_two_give_the_same_bytes(tmp_path: Path) -> None:
    one = run_campaign(Campaign(definition(), THREE, tmp_path / "one"), local_executor(RUN))
    two = run_campaign(Campaign(definition(), THREE, tmp_path / "two"), process_pool(RUN, 2))
    again = run_campaign(Campaign(definition(), THREE, tmp_path / "again"), process_pool(RUN, 2))
    assert one.complete
    assert two.complete
    for name in (*(f"{table}.parquet" for table in DETERMINISTIC), "events.jsonl"):
        files = [(tmp_path / folder / name).read_bytes() for folder in ("one", "two", "again")]
        assert files[0] == files[1] == files[2], name
    for part in ("points", "verdicts", "definition_sha256", "definition", "runs"):
        assert one.summary[part] == two.summary[part] == again.summary[part]


def test_a_summary_has_aggregates_verdicts_and_what_it_was_run_with(tmp_path: Path) -> None:
    done = run_campaign(Campaign(definition(), THREE, tmp_path / "new"), local_executor(RUN))
    summary = json.loads(done.path.read_text())
    assert summary == json.loads(json.dumps(done.summary))
    first = summary["points"][0]
    assert (first["point"], first["params"]["threshold"], first["runs"]) == ("slow/threshold=4", 4, 3)  # fmt: skip
    low, middle, high = (first["metrics"][name] for name in ("fairness_lo", "fairness", "fairness_hi"))
    assert low < middle < high
    assert first["ranges"]["fairness"] == [low, high]
    assert [verdict["per"]["point"] for verdict in summary["verdicts"]][:1] == ["slow/threshold=4"]
    assert summary["about"] == {"kernel": "none"}
    assert len(summary["topologies"]) == 2
    assert (tmp_path / "latest").resolve() == tmp_path / "new"


def test_a_run_s_processor_time_is_its_own_and_its_children_s_and_no_sleep(tmp_path: Path) -> None:
    selection, cpu_s, wall_s = Selection(repeats=1, values={"threshold": (4,)}), "cpu_s_of_runs", "wall_s_of_runs"
    done = {
        name: run_campaign(
            Campaign(definition(), selection, tmp_path / name), local_executor(f"lab_fake_runners:{name}")
        )
        for name in ("sleeps", "computes")
    }
    sleeps, computes = (done[name].summary["speed"] for name in done)
    assert 0 < sleeps[cpu_s] < 0.25 < 0.5 <= sleeps[wall_s]
    assert 2 * (0.2 + 0.2) <= computes[cpu_s] < computes[wall_s] + 0.1
    timing = tmp_path / "computes" / "timing.parquet"
    older: Any = pq.read_table(timing)
    pq.write_table(older.drop(["cpu_s"]), timing)  # as an older version has left it
    assert run_campaign(Campaign(definition(), Selection(repeats=2, values={"threshold": (4,)}), tmp_path / "computes"), local_executor(RUN)).summary["speed"][cpu_s] is None  # fmt: skip


def test_processor_time_in_mininet_has_that_of_what_still_runs() -> None:
    before_s, own_s = tree_s(), processor_s()
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        running_s, own_s = tree_s() - before_s, processor_s() - own_s
        child.communicate(b"\n", timeout=60)
    assert running_s - own_s >= 0.28  # of a running process Linux tells hundredths
    assert tree_s() - before_s == pytest.approx(running_s, abs=0.15)


def test_failures_are_told_and_stop_nothing(tmp_path: Path) -> None:
    done = run_campaign(Campaign(definition(), THREE, tmp_path / "new"), process_pool(FAILS, 2))
    assert not done.complete
    assert len(done.failures) == 12
    assert {failure.error for failure in done.failures} == {"this machine stood still", "ZeroDivisionError: a fault"}
    assert 'raise ZeroDivisionError("a fault")' in next(
        each.detail for each in done.failures if each.scenario.repeat == 2
    )
    assert done.summary["runs"] == 6
    assert len(done.summary["failures"]) == 12


def test_a_process_that_dies_takes_only_its_run_with_it(tmp_path: Path) -> None:
    selection = Selection(repeats=2, values={"threshold": (4,)})
    done = run_campaign(Campaign(definition(), selection, tmp_path / "new"), process_pool(CRASHES, 2))
    assert sorted((each.scenario.point, each.scenario.repeat, each.error) for each in done.failures) == [
        (f"{case}/threshold=4", 1, "its process died (a crash, or no memory)") for case in ("fast", "slow")
    ]
    assert done.summary["runs"] == 2


def test_ctrl_c_leaves_a_usable_part_and_the_same_campaign_goes_on(tmp_path: Path) -> None:
    campaign = Campaign(definition(), THREE, tmp_path / "new")
    stopped = run_campaign(campaign, local_executor(INTERRUPTED))
    assert (stopped.interrupted, stopped.complete, stopped.summary["runs"]) == (True, False, 1)
    assert json.loads(stopped.path.read_text())["complete"] is False
    assert pq.read_table(tmp_path / "new" / "runs.parquet").num_rows == 1
    done = run_campaign(campaign, local_executor(RUN))
    assert (done.interrupted, done.complete, done.skipped, done.summary["runs"]) == (False, True, 1, 18)
    whole = run_campaign(Campaign(definition(), THREE, tmp_path / "whole"), local_executor(RUN))
    for table in DETERMINISTIC:
        assert (tmp_path / "new" / f"{table}.parquet").read_bytes() == (
            whole.path.parent / f"{table}.parquet"
        ).read_bytes()


def test_more_repeats_are_added_to_what_is_there(tmp_path: Path) -> None:
    run_campaign(Campaign(definition(), Selection(repeats=1), tmp_path / "new"), local_executor(RUN))
    done = run_campaign(Campaign(definition(), THREE, tmp_path / "new"), local_executor(RUN))
    assert (done.skipped, done.summary["runs"], done.complete) == (6, 18, True)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    run_campaign(Campaign(definition(), THREE, folder), local_executor(RUN))
    with pytest.raises(RunFolderError, match="holds results of something else: seed was 1, is 2"):
        run_campaign(Campaign(definition(), Selection(seed=2), folder), local_executor(RUN))
    kept = json.loads((folder / "campaign.json").read_text())
    other = {**kept, "build": {**kept["build"], "code": "0" * 64}}
    (folder / "campaign.json").write_text(json.dumps(other))
    with pytest.raises(RunFolderError, match=r"something else: build\.code was 000000000000, is [0-9a-f]{12}; name"):
        run_campaign(Campaign(definition(), THREE, folder), local_executor(RUN))
    (folder / "campaign.json").write_text(json.dumps(kept))
    changed = load_text(FILE.replace("warmup_s = 5", "warmup_s = 6"), "small.toml", "small")
    with pytest.raises(RunFolderError, match="definition_sha256 was"):
        run_campaign(Campaign(changed, THREE, folder), local_executor(RUN))
    folder.rename(tmp_path / "old")
    assert run_campaign(Campaign(changed, THREE, folder), local_executor(RUN)).complete


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(RunFolderError, match=r"not empty and has no campaign\.json"):
        run_campaign(Campaign(definition(), THREE, tmp_path), local_executor(RUN))


def test_without_a_result_no_folder_is_left(tmp_path: Path) -> None:
    done = run_campaign(Campaign(definition(), THREE, tmp_path / "new"), local_executor("nowhere:run"))
    assert not (tmp_path / "new").exists()
    assert done.failures[0].error == "ModuleNotFoundError: No module named 'nowhere'"


def test_a_dask_cluster_gives_what_one_process_gives(tmp_path: Path, scheduler: str) -> None:
    here = run_campaign(Campaign(definition(), THREE, tmp_path / "here"), local_executor(FAILS))
    there = run_campaign(Campaign(definition(), THREE, tmp_path / "there"), dask_cluster(FAILS, scheduler))
    assert there.summary["points"] == here.summary["points"]
    assert sorted((each.scenario.point, each.scenario.repeat) for each in there.failures) == sorted((each.scenario.point, each.scenario.repeat) for each in here.failures)  # fmt: skip
    assert (tmp_path / "here" / "runs.parquet").read_bytes() == (tmp_path / "there" / "runs.parquet").read_bytes()


def test_a_worker_with_another_build_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs would be of something else."""
    other = {**build_hashes(), "native": "0123456789ab"}

    def hashes(_kernel: bool) -> dict[str, str]:
        return other

    monkeypatch.setattr("fairlane_lab.sweep.workers.build_hashes", hashes)
    campaign = Campaign(definition(), THREE, tmp_path / "new")
    done = run_campaign(campaign, process_pool(RUN, 1))
    assert re.search(r"worker \S+ has another fairlane, or other files: native is \w*, here 0123456789ab", done.stopped)
    assert not (tmp_path / "new").exists()


def test_workers_that_come_later_get_work(tmp_path: Path) -> None:
    from distributed import LocalCluster

    options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    processes: set[int] = set()
    cluster: Any
    with LocalCluster(n_workers=1, **options) as cluster:
        address = f"{cluster.scheduler_address}"

        def note(outcome: Outcome) -> None:
            if not processes:
                cluster.scale(2)
            assert outcome.result is not None
            processes.add(outcome.result.about["pid"])

        campaign = Campaign(definition(), Selection(repeats=8), tmp_path / "new")
        done = run_campaign(campaign, dask_cluster(SLOW, address), note)
    assert (done.complete, len(processes)) == (True, 2)


@pytest.fixture(scope="module")
def limit_s(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Stands for the half hour that no run takes: twice what a worker needs on this machine to start and to run once."""
    folder, started = tmp_path_factory.mktemp("limit"), time.monotonic()
    process_pool(SLOW, 1)(Campaign(definition(), THREE, folder).scenarios[:1], lambda _outcome: None)
    return max(3.0, 2 * (time.monotonic() - started))


@pytest.fixture
def scheduler() -> Iterator[str]:
    """A dask scheduler with one worker that has imported what it needs: that is no part of a run."""
    from distributed import Client, LocalCluster

    options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    cluster: Any
    with LocalCluster(n_workers=1, **options) as cluster, Client(cluster, set_as_default=False) as client:
        client.submit(pkgutil.resolve_name, SLOW).result(timeout=60)
        yield cluster.scheduler_address


def test_the_limit_of_a_cluster_is_between_results_and_not_of_the_sweep(
    tmp_path: Path, scheduler: str, limit_s: float
) -> None:
    """In scaled time: 18 runs of a quarter of a second on one worker last longer than the limit."""
    campaign = Campaign(definition(), THREE, tmp_path / "new")
    done = run_campaign(campaign, dask_cluster(SLOW, scheduler, stall_s=limit_s))
    assert (done.complete, done.stopped, list(done.failures)) == (True, "", [])


def test_the_limit_of_a_pool_is_between_results_too(tmp_path: Path, limit_s: float) -> None:
    done = run_campaign(Campaign(definition(), THREE, tmp_path / "new"), process_pool(SLOW, 1, stall_s=limit_s))
    assert (done.complete, done.stopped, list(done.failures)) == (True, "", [])


@pytest.mark.parametrize(("duration_s", "stopped"), [(100, "no run ended for 0.1 s: given up"), (86_400, "")])
def test_the_limit_grows_with_the_length_of_the_runs(tmp_path: Path, duration_s: float, stopped: str) -> None:
    runs = Selection(repeats=1, values={"case": ("slow",), "threshold": (4,), "duration_s": (duration_s,)})
    done = run_campaign(Campaign(definition(), runs, tmp_path / "new"), process_pool(SLOW, 1, stall_s=0.1))
    assert (done.complete, done.stopped) == (not stopped, stopped)


def test_a_cluster_on_which_a_run_hangs_is_given_up_and_what_was_done_is_kept(
    tmp_path: Path, scheduler: str, limit_s: float
) -> None:
    campaign = Campaign(definition(), THREE, tmp_path / "new")
    done = run_campaign(campaign, dask_cluster(HANGS, scheduler, stall_s=limit_s))
    assert done.stopped == f"no run ended for {limit_s:g} s: given up"
    assert (done.complete, done.summary["runs"]) == (False, 6)  # the first repeat of every point


def test_a_scheduler_that_does_not_answer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane_lab.sweep.workers.CONNECT_S", 0.2)
    done = run_campaign(Campaign(definition(), THREE, tmp_path / "new"), dask_cluster(RUN, "tcp://127.0.0.1:1"))
    assert "the dask scheduler tcp://127.0.0.1:1 has no workers for us" in done.stopped


def test_mininet_gets_all_scenarios_at_once_and_tells_failures(tmp_path: Path) -> None:
    heard: list[str] = []
    selection = Selection(runtime="mininet", repeats=3)
    testbed = mininet_testbed("bmv2", MininetOverrides(parallel=4), heard.append, "lab_fake_runners:run_many")
    done = run_campaign(Campaign(definition(), selection, tmp_path / "new", "bmv2"), testbed)
    assert heard == ["4 networks on bmv2"]
    assert [each.scenario.repeat for each in done.failures] == [2, 2, 2, 2]
    assert pq.read_table(tmp_path / "new" / "runs.parquet")["target"].to_pylist() == ["bmv2"] * 8


def test_the_simulator_gives_the_same_bytes_on_one_core_and_on_two(tmp_path: Path) -> None:
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    selection = Selection(repeats=1, values={"duration_s": (8,), "threshold": (5, "auto")})
    one = run_campaign(Campaign(definition(), selection, tmp_path / "one"), local_executor(SIM))
    two = run_campaign(Campaign(definition(), selection, tmp_path / "two"), process_pool(SIM, 2))
    assert one.complete, one.failures
    assert two.complete, two.failures
    for name in (*(f"{table}.parquet" for table in DETERMINISTIC), "events.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    assert all(0.5 < point["metrics"]["utilisation"] < 1.02 for point in one.summary["points"])


SCRIPT = """
import sys
from pathlib import Path
import fairlane
short = {"case": "2M-2ms", "duration_s": 3, "warmup_s": 1}
run = fairlane.run_experiment("qthresh-fig9", repeats=2, values=short, processes=2, results=Path(sys.argv[1]))
print(len(run.runs), "runs")
"""


@pytest.mark.timeout(900)
def test_a_script_without_a_guard_runs_experiments_in_several_processes(tmp_path: Path) -> None:
    """They do not run the script again."""
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 runs\n", "")


def test_an_interrupt_counts_as_one_whatever_is_raised_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that the same Ctrl-C has ended raises an error of its own while it is closed."""

    def execute(*_: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise RunError("the cluster does not answer any more") from None

    def cluster(*_: object) -> object:
        return execute

    monkeypatch.setattr(workers, "process_pool", cluster)
    ended = lab("run", "qthresh-fig9", "--quick", "--jobs", "2", "--folder", str(tmp_path / "r"))
    assert ended.exit_code == 130
    assert "interrupted: no run had finished" in ended.output
    assert "error" not in ended.output
