# SPDX-License-Identifier: Apache-2.0
"""The command line and the loop against real switches: set-up, changes, refusals, killed loops, killed switches."""

from __future__ import annotations

import asyncio
import contextlib
import io
import signal
import subprocess
from pathlib import Path

import pytest
from fairlane_controller.cli.main import main
from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.registry import runs_program, wrong_program
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.names import Scheme
from fairlane_controller.programs.qthresh.policies import Policy
from fairlane_controller.state.processes import OwnedProcess
from fairlane_controller.state.run_state import read_topology, write_topology
from fairlane_controller.switch.changeset import put_entries
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.shared import TABLE_ROUTE
from live_switch import LiveSwitch, wait_until
from live_topology import live_topology
from state_tools import documents


def threshold(switch: LiveSwitch) -> dict[str, object]:
    """The one row of `threshold show`."""
    (row,) = switch.json("threshold", "show")
    return row


def test_a_process_that_has_died_is_shown(switch: LiveSwitch) -> None:
    """All that a launcher has written down, but what ends by itself."""
    with subprocess.Popen(["sleep", "60"]) as alive:
        try:
            written = [
                OwnedProcess.from_pid(alive.pid, "host h1"),
                OwnedProcess(alive.pid, 1, "fairlane-wire"),  # the pid is another's now
                OwnedProcess(alive.pid, 2, "traffic 1 on h1", may_end=True),
            ]
            topology = read_topology(switch.folder)
            write_topology(switch.folder, {**topology, "pids": [one.as_json() for one in written]})
            message = f"fairlane-wire (process {alive.pid}) has died"
            status = switch.json("status", code=1)
            assert status["dead"] == [{"process": "fairlane-wire", "pid": alive.pid, "message": message}]
            assert [row["reachable"] for row in status["switches"]] == [True]
            said = switch.fairlane("status", code=1)
            assert message in said
            assert "host h1" not in said
        finally:
            alive.kill()
    assert f"host h1 (process {alive.pid}) has died" in switch.fairlane("status", code=1)


def test_init_writes_once(bare_switch: LiveSwitch) -> None:
    assert "no program yet" in bare_switch.fairlane("status")
    message = bare_switch.fairlane("threshold", "show", code=5)
    assert "has no program yet: load it with `fairlane config init`" in message
    (first,) = bare_switch.json("config", "init", "--scheme", "qthresh")
    assert first == {"switch": "s1", "routes": 3, "managed_ports": [3], "written": 5}
    (second,) = bare_switch.json("config", "init")
    assert second["written"] == 0
    status = bare_switch.json("status")
    assert [row["reachable"] for row in status["switches"]] == [True]
    managed = [port for port in status["ports"] if port["managed"]]
    assert [(p["port"], p["capacity_packets"]) for p in managed] == [(3, 50)]
    assert [(p["port"], p["scheme"]) for p in status["policies"]] == [(3, "qthresh")]
    routes = bare_switch.json("p4", "table_dump", "ipv4_lpm")["entries"]
    assert sorted(r["match"]["dst"] for r in routes) == ["10.0.1.0/24", "10.0.3.0/24"]


def test_init_keeps_what_the_switch_holds(switch: LiveSwitch) -> None:
    switch.fairlane("threshold", "set", "9")
    switch.fairlane("config", "init")
    assert threshold(switch)["qthresh_packets"] == 9


def test_threshold_by_hand(switch: LiveSwitch) -> None:
    (done,) = switch.json("threshold", "set", "5", "--weight", "2")
    assert (done["qthresh_packets"], done["weight"], done["via"]) == (5, 2.0, "direct")
    row = threshold(switch)
    assert (row["qthresh_packets"], row["weight"], row["mode"]) == (5, 2.0, "manual")
    switch.fairlane("threshold", "set", "--weight", "1.5")
    row = threshold(switch)
    assert (row["qthresh_packets"], row["weight"], row["mode"]) == (5, 1.5, "manual")
    switch.fairlane("threshold", "auto", "--k", "2")
    row = threshold(switch)
    assert (row["qthresh_packets"], row["mode"], row["k"]) == (5, "auto", 2.0)
    for option, tunes in (("--model", False), ("--self-tuning", True)):
        switch.fairlane("threshold", "auto", option)
        assert documents(switch.folder)["policy/s1/3/0"]["self_tuning"] is tunes


REFUSALS = [
    (
        ("threshold", "set", "51"),
        2,
        "s1:3 class 0: threshold: 51 is more than the port lets wait (50 packets): must be at most 50",
    ),
    (("threshold", "set", "0"), 2, "threshold: 0 is out of range: must be greater than or equal to 1"),
    (("threshold", "set", "5", "-w", "300"), 2, "weight: 300.0 is out of range: must be less than or equal to 255"),
    (("threshold", "set", "5", "-w", "0.1"), 2, "would admit nothing: must be at least 0.2"),
    (("threshold", "set", "5", "-c", "8"), 2, "class: 8 is out of range: must be less than 8"),
    (("threshold", "set", "4", "5"), 3, "port 4 is not managed; managed ports: s1:3"),
    (("threshold", "set", "600", "5"), 3, "port 600 is not managed; managed ports: s1:3"),
    (("threshold", "auto", "--k", "0"), 2, "k: 0.0 is out of range: must be greater than or equal to 0.1"),
    (("p4", "table_dump", "polciy"), 3, "unknown table 'polciy'; did you mean 'policy'?"),
]


def test_refusals_change_nothing(switch: LiveSwitch) -> None:
    before = threshold(switch)
    for arguments, code, message in REFUSALS:
        assert message in switch.fairlane(*arguments, code=code)
        assert threshold(switch) == before, arguments


def test_schemes(switch: LiveSwitch) -> None:
    switch.fairlane("threshold", "set", "7", "-w", "2")
    (done,) = switch.json("threshold", "set", "--scheme", "drop_tail")
    assert done["scheme"] == "drop_tail"
    assert threshold(switch)["scheme"] == "drop_tail"
    switch.fairlane("threshold", "set", "--scheme", "qthresh")
    row = threshold(switch)
    assert (row["scheme"], row["qthresh_packets"], row["weight"], row["mode"]) == ("qthresh", 7, 2.0, "manual")


def test_changes_go_through_a_running_loop(switch: LiveSwitch) -> None:
    with switch.loop():
        (done,) = switch.json("threshold", "set", "8")
        assert done["via"] == "loop"
        assert threshold(switch)["qthresh_packets"] == 8
        assert "must be at most 50" in switch.fairlane("threshold", "set", "51", code=2)
        assert switch.json("threshold", "set", "--scheme", "drop_tail")[0]["via"] == "loop"
        assert threshold(switch)["scheme"] == "drop_tail"
        switch.fairlane("threshold", "set", "--scheme", "qthresh")
        assert (threshold(switch)["qthresh_packets"], threshold(switch)["mode"]) == (8, "manual")
        switch.fairlane("threshold", "auto", "--weight", "2")
        assert (threshold(switch)["qthresh_packets"], threshold(switch)["weight"]) == (8, 2.0)
        assert threshold(switch)["mode"] == "auto"
        switch.fairlane("threshold", "set", "9")
        status = switch.json("status")
        assert status["loop_running"] is True
        assert status["loop"][0]["connected"] is True
        (measured,) = switch.json("ports", "measure")
        assert (measured["switch"], measured["port"], measured["bw_bps"]) == ("s1", 3, None)
        assert status["loop"][0]["policies"][0]["mode"] == "manual"
        assert "a control loop runs for" in switch.fairlane("run", code=7)
        assert "stop it before `init`" in switch.fairlane("config", "init", code=7)
    changed = [event["updates"][0]["args"].get("qthresh") for event in switch.events("changed")]
    assert changed == [8, None, 8, 8, 9]


def test_the_newest_writer_wins_and_the_loop_waits_for_it_to_go(switch: LiveSwitch) -> None:
    with switch.loop():
        # By address alone the command knows nothing of the loop and becomes the primary for its one write.
        address = f"s1=127.0.0.1:{switch.grpc_port}@1"
        main_by_address("threshold", "set", "7", "-s", address)
        assert threshold(switch)["qthresh_packets"] == 7
        wait_until("the loop to be primary again", lambda: switch.loop_status()["connected"])
        wait_until("the loop to have read the new value", lambda: loop_threshold(switch) == 7)


def loop_threshold(switch: LiveSwitch) -> object:
    """The threshold as the loop knows it."""
    policies = switch.loop_status()["policies"]
    return policies[0]["qthresh_packets"] if policies else None


def main_by_address(*arguments: str) -> None:
    """`fairlane ARGUMENTS` without the run state."""
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main(list(arguments))


def test_a_loop_stops_on_sigterm_with_exit_code_0(switch: LiveSwitch) -> None:
    with switch.loop() as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0
    assert not (switch.folder / "controller.sock").exists()
    assert threshold(switch)["scheme"] == "qthresh"


def test_a_killed_loop_leaves_thresholds_and_a_new_one_goes_on(switch: LiveSwitch) -> None:
    with switch.loop() as process:
        switch.fairlane("threshold", "set", "8", "-w", "1.5")
        process.kill()
        process.wait(timeout=10)
    assert threshold(switch)["qthresh_packets"] == 8
    assert switch.json("status")["loop_running"] is False
    with switch.loop():
        taken = switch.events("took_over")[-1]
        assert taken["policies"] == [
            {
                "port": 3,
                "traffic_class": 0,
                "scheme": "qthresh",
                "qthresh_packets": 8,
                "weight": 1.5,
                "lanes": None,
                "mode": "manual",
            }
        ]
        assert switch.json("status")["loop"][0]["policies"][0]["mode"] == "manual"
        row = threshold(switch)
        assert (row["qthresh_packets"], row["weight"], row["mode"]) == (8, 1.5, "manual")


def test_a_killed_switch_is_restored_by_the_loop(switch: LiveSwitch) -> None:
    with switch.loop():
        switch.fairlane("threshold", "set", "8")
        switch.kill()
        wait_until("the loop to notice", lambda: switch.loop_status()["error"])
        message = switch.fairlane("threshold", "set", "9", code=4)
        assert f"switch s1 at 127.0.0.1:{switch.grpc_port} does not answer" in message
        switch.start()
        wait_until("the loop to restore the switch", lambda: switch.loop_status()["connected"])
        assert switch.events("restored")
        row = threshold(switch)
        assert (row["qthresh_packets"], row["mode"]) == (8, "manual")
        assert len(switch.json("p4", "table_dump", "ipv4_lpm")["entries"]) == 2


async def test_a_backup_waits_and_takes_over(switch: LiveSwitch) -> None:
    endpoint = Endpoint("s1", f"127.0.0.1:{switch.grpc_port}", 1)
    async with SwitchClient(endpoint, write=True, election_id=2**62):
        refused = subprocess.run(
            switch.command("threshold", "set", "7"), capture_output=True, text=True, timeout=60, check=False
        )
        assert refused.returncode == 5
        assert f"another client is primary, with the election id {2**62}; " in refused.stderr
        assert "so nothing can be written: stop that client" in refused.stderr
        loop = subprocess.Popen(switch.command("run"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await asyncio.to_thread(wait_until, "the loop to be the backup", lambda: switch.events("backup"))
        assert not switch.events("took_over")
    try:
        await asyncio.to_thread(wait_until, "the loop to take over", lambda: switch.events("took_over"))
        assert switch.events("promoted")
    finally:
        loop.kill()
        loop.wait(timeout=10)


async def test_another_program_is_named_and_readers_write_nothing(switch: LiveSwitch) -> None:
    names = [program.TABLE_PORT_LIMIT, *program.TABLE_FLOW.values(), *TABLE_ROUTE.values()]
    wrong = wrong_program("qthresh", names)
    assert "the program on the switch is another one, not qthresh" in wrong.message
    async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}", 1)) as client:
        assert runs_program("qthresh", client.table_names())
        with pytest.raises(FairlaneError, match="opened for reading only"):
            await put_entries(client, [Policy(3, 0, Scheme.QTHRESH, 5).entry])


@pytest.mark.parametrize(
    "command", [("flows", "--interval", "0"), ("drops", "--interval", "0"), ("ports", "--interval", "0"), ("threshold", "show")]
)  # fmt: skip
def test_rows_of_the_switches_that_answer_are_shown_beside_one_that_does_not(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with live_topology(tmp_path, "dumbbell.json", only=("s1",)) as topology:
        topology.fairlane("config", "init", "--scheme", "qthresh", "--switch", "s1")
        for words, shown in (command, ""), ((*command, "--json"), "["):
            with pytest.raises(SystemExit) as ended:
                main([*words, "--state", str(tmp_path)])
            assert ended.value.code == 4
            printed, errors = capsys.readouterr()
            assert printed.startswith(shown)
            assert printed
            assert f"switch s2 at {topology.addresses['s2']} does not answer: connection refused" in errors
        message = topology.fairlane(*command, "--switch", "s2", code=4)
        assert message.startswith("fairlane: switch s2")
