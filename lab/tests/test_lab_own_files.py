# SPDX-License-Identifier: Apache-2.0
"""An experiment, its base, its topology and its program in a folder of the user's: found by paths relative to the file that names them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.loading import load
from fairlane_lab.paths import REPOSITORY
from fairlane_lab.problems import ExperimentError
from fairlane_lab.report.archive import archive_run
from fairlane_lab.run_result import SIM
from fairlane_lab.runners.sim import run
from fairlane_lab.sweep.campaign import Campaign, run_campaign
from fairlane_lab.sweep.runners import local_executor
from lab_command import lab

PROGRAM = '''
from fairlane import Column, P4TableAction, P4TableEntry, P4TableMatch, Program, Settings

FIELDS = {"far_side_in": ("ingress_port", "check_segments"), "far_side_out": ("egress_port", "mark_acks")}


class Own(Program):
    """A program of a user's: what ena.p4 does, under other names."""

    name = "own"
    title = "A user's program."
    p4 = "ena"
    tables = tuple(FIELDS)
    columns = (Column("own_sent", "sent", "packets", counter="passed"),)

    class Settings(Settings):
        """One port."""

        names_errors: bool = False

    def entries(self, port, settings):
        for table, (field, action) in FIELDS.items() if settings.names_errors else ():
            match = P4TableMatch({field: port.port})
            yield P4TableEntry(table, match=match, action=P4TableAction(action))

    def ports_of(self, switch, current):
        found = {int(entry[FIELDS[entry.table_id][0]]) for entry in current.values()}
        return {port: self.Settings(names_errors=True) for port in found}
'''
EXPERIMENT = """
name = "mine"
extends = "base"
program = "own/"
topology.base = "far.json"
sweep.names_errors = [true, false]
"""
BASE = """
extends = "ena-fig7"
expect = []
plots = []
main_metrics = ["own_sent", "transfer_bps"]
params = { ber = 1e-6, file_bytes = 100_000 }
sweep.sender = [{ label = "ena-sack", variant = "ena-sack", receive_windows = 4 }]
sweep.file_bytes = [100_000]
quick.only = {}
mininet.only = {}
cases = [{ label = "paper", errors_in = "payload", spare_retransmissions = true }]
tcp.receiver_program = false
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of a user, all beside each other, in a folder that is not the current one."""
    compiled = REPOSITORY / "p4src" / "compiled"
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "program.py").write_text(PROGRAM)
    for ending in ("json", "p4info.txtpb"):
        (tmp_path / "own" / f"ena.{ending}").symlink_to(compiled / f"ena.{ending}")
    topology = json.loads((REPOSITORY / "mininet" / "topologies" / "satellite.json").read_text())
    (tmp_path / "far.json").write_text(json.dumps({**topology, "name": "far"}))
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "mine.toml").write_text(EXPERIMENT)
    return tmp_path


def test_topology_and_program_are_found_beside_the_file(folder: Path) -> None:
    scenarios = expand(load(str(folder / "mine.toml")), Selection(repeats=1))
    assert [scenario.topology["name"] for scenario in scenarios] == ["far", "far"]
    assert [scenario.program for scenario in scenarios] == [str(folder / "own/")] * 2
    assert [scenario.control.settings.names_errors for scenario in scenarios] == [True, False]
    assert scenarios[0].seed == scenarios[1].seed, "what the switch does is no part of the world"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("far.json", "./near.json", "mine.toml: topology.base: there is no file"),
        ("far.json", "a" * 5000 + ".json", "mine.toml: topology.base: there is no file"),
        ("own/", "owen/", "mine.toml: program: "),
        ("own/", "~nobody-at-all/own/", "mine.toml: program: "),
        ("own/", "a" * 5000 + "/", "mine.toml: program: "),
        ("sweep.names_errors", "sweep.names_error", "mine.toml: sweep.names_error: there is no parameter 'names_error'. Did you mean 'names_errors'?"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_told(folder: Path, old: str, new: str, message: str) -> None:
    path = folder / "mine.toml"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ExperimentError) as caught:
        load(str(path))
    assert message in str(caught.value)


def test_a_program_of_the_user_s_runs_in_sim_with_its_settings_and_its_numbers(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    campaign = Campaign(load(str(folder / "mine.toml")), Selection(repeats=1), tmp_path / "run")
    done = run_campaign(campaign, local_executor(SIM))
    assert done.complete, done.failures
    sent = {point["params"]["names_errors"]: point["metrics"].get("own_sent") for point in done.summary["points"]}
    assert sent["True"] > 100_000 / 512
    assert sent["False"] is None, "a port that has nothing of the program shows nothing"


def test_the_example_runs_in_processes_of_its_own(tmp_path: Path) -> None:
    """Other processes know the classes of a program in a folder, too."""
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    shutil.copytree(REPOSITORY / "docs" / "examples" / "droptail", tmp_path / "mine")
    command = ["run", str(tmp_path / "mine" / "experiment.toml"), "--quick", "--jobs", "2", "--no-plots", "--check"]
    done = lab(*command, "--results", str(tmp_path / "results"), "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    refused = {point["params"]["limit"]: point["metrics"]["refused"] for point in summary["points"]}
    assert refused[5] > refused[10] > refused[40] > 0
    assert "was changed after" not in done.stderr

    os.utime(tmp_path / "mine" / "droptail.json", (1, 1))
    again = lab(
        "run", command[1], "--quick", "--jobs", "1", "--no-plots", "--set", "limit=5", "--results", str(tmp_path)
    )
    assert again.exit_code == 0
    assert "droptail.p4 was changed after droptail.json was made, which runs: `fairlane p4 compile" in again.stderr


def test_a_run_with_a_program_in_a_folder_has_a_page_wherever_it_is_made(tmp_path: Path) -> None:
    """In processes that have not loaded the program: its copy lies beside the runs, in the archive too."""
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    shutil.copytree(REPOSITORY / "docs" / "examples" / "droptail", tmp_path / "mine")
    file, results, out = tmp_path / "mine" / "experiment.toml", tmp_path / "results", tmp_path / "pages"

    def lab(*arguments: object) -> None:
        command = [sys.executable, "-c", "from fairlane_lab.cli import app; app()", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr

    lab("run", file, "--set", "limit=5", "--repeats", 2, "--no-plots", "--results", results)
    shutil.rmtree(tmp_path / "mine")
    run = results / "droptail-limit" / "latest"
    lab("report", run, "--out", out)
    text = (out / "droptail-limit.md").read_text()
    assert "`fairlane lab run experiment.toml`" in text
    assert "refused (packets)" in text
    archive_run(run, out / "data")
    shutil.rmtree(results)
    code = "import pathlib, sys; from fairlane_lab.report.publish import write_pages; write_pages(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(out)], check=True, cwd=tmp_path, timeout=200)
    assert "refused (packets)" in (out / "droptail-limit.md").read_text()
    assert "# Results" in (out / "index.md").read_text()


def test_the_law_of_a_program_in_a_folder_runs_in_virtual_time(tmp_path: Path) -> None:
    """Its limit becomes what the line sends in 20 ms: 100, 24 or so, and 2 packets."""
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    file = REPOSITORY / "docs" / "examples" / "shortwait" / "experiment.toml"
    done = run_campaign(Campaign(load(str(file)), Selection(repeats=1), tmp_path), local_executor(SIM))
    assert done.complete, done.failures
    limits = {int(point["params"]["rate_bps"]): point["metrics"]["limit_packets"] for point in done.summary["points"]}
    assert limits[1_000_000] <= 3
    assert 20 <= limits[10_000_000] <= 26


def test_what_a_program_in_a_folder_learns_by_digests_it_learns_in_virtual_time(tmp_path: Path) -> None:
    """The lab runs the program's own loop: pairs of hosts that send get their entries."""
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    text = (REPOSITORY / "docs" / "examples" / "shortwait" / "experiment.toml").read_text()
    text = text.partition("[[expect]]")[0].replace('program = "./"', f'program = "{REPOSITORY}/docs/examples/talkers"')
    (tmp_path / "learns.toml").write_text(
        text.replace('"short-wait"', '"learns"')
        .replace('"limit_packets", "queue_packets", ', "")
        .replace(', "refused"', "")
    )
    values = {"duration_s": (4,), "warmup_s": (1,), "rate_bps": (4_000_000,)}
    result = run(expand(load(str(tmp_path / "learns.toml")), Selection(repeats=1, values=values))[0])
    learnt = {event["flow"] for event in result.events if event["event"] == "flow"}
    assert {"10.0.1.1 > 10.0.3.3", "10.0.2.2 > 10.0.3.3"} <= learnt


def test_dctcp_keeps_the_queue_of_a_port_that_marks_near_the_threshold(tmp_path: Path) -> None:
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    file = REPOSITORY / "docs" / "examples" / "ecnmark" / "dctcp.toml"
    values = {"mark_at": (20, 40), "duration_s": (20,), "warmup_s": (8,)}
    done = run_campaign(Campaign(load(str(file)), Selection(repeats=1, values=values), tmp_path), local_executor(SIM))
    assert done.complete, done.failures
    for point in done.summary["points"]:
        metrics, mark_at = point["metrics"], point["params"]["mark_at"]
        assert 0.7 * mark_at < metrics["queue_packets"] < 1.2 * mark_at
        assert (metrics["drops"], metrics["retransmits"], metrics["timeouts"]) == (0, 0, 0)
        assert metrics["utilisation"] > 0.99
        assert metrics["marked"] > 1000


def test_a_sweep_goes_over_programs_each_with_its_own_control(folder: Path) -> None:
    text = 'name = "both"\nextends = "base"\nsweep.program = ["ena", "own/"]\n[control.own]\nnames_errors = true\n'
    (folder / "both.toml").write_text(text)
    first, second = expand(load(str(folder / "both.toml")), Selection(repeats=1))
    assert (first.program, first.params["program"], first.params["scheme"]) == ("ena", "ena", "drop_tail")
    assert (second.program, second.params["scheme"]) == (str(folder / "own"), "own")
    assert second.control.settings.names_errors is True
    assert first.seed == second.seed
    (folder / "both.toml").write_text(text.replace("[control.own]", "[control.oven]"))
    with pytest.raises(ExperimentError, match=r"control\.oven: there is no key 'oven'"):
        load(str(folder / "both.toml"))
