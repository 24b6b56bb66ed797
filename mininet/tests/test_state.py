# SPDX-License-Identifier: Apache-2.0
"""The run state: processes are known by pid and start time, and cleaning removes what is named and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from fairlane_controller.state.run_state import LinkEnd, read_run_state, remember_port
from fairlane_switch import link_control
from fairlane_switch.link_series import read_series
from fairlane_topology import nodes
from fairlane_topology import state as fl_state


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours."""
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait(timeout=10)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State files go to a folder of the test's own."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path / "state"))


def test_clean_stops_the_process_that_is_written_down(sleeper: subprocess.Popen[bytes]) -> None:
    process = fl_state.OwnedProcess.from_pid(sleeper.pid, "sleeper")
    fl_state.write("7", {"pids": [process.as_json()], "interfaces": []})
    assert fl_state.alive("7")
    assert fl_state.clean("7") == [f"sleeper (pid {sleeper.pid})"]
    assert sleeper.wait(timeout=5) == -15
    assert fl_state.instances() == []


def test_a_pid_that_was_used_again_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    real = fl_state.OwnedProcess.from_pid(sleeper.pid, "someone else's")
    assert real.starttime is not None
    fl_state.write("7", {"pids": [{**real.as_json(), "starttime": real.starttime - 1}], "interfaces": []})
    assert not fl_state.alive("7")
    assert fl_state.clean("7") == []
    assert sleeper.poll() is None


def test_what_runs_in_a_hosts_namespace_ends_with_the_host(sleeper: subprocess.Popen[bytes]) -> None:
    """A daemon that an experiment has left keeps the namespace, and nobody would find it again. Needs root for the namespace."""
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    script = "setsid sleep 60 > /dev/null & echo $!; exec sleep 60"
    host = subprocess.Popen(["unshare", "--net", "bash", "-c", script], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    try:
        daemon = fl_state.OwnedProcess.from_pid(int(host.stdout.readline()), "daemon")
        members = fl_state.namespace_members([host.pid])
        assert {member.pid for member in members} == {host.pid, daemon.pid}
        assert fl_state.namespace_members([sleeper.pid]) == [], "it shares our namespace"
        fl_state.write("7", {"pids": [fl_state.OwnedProcess.from_pid(host.pid, "host h1").as_json()], "interfaces": []})
        assert fl_state.clean("7") == [f"host h1 (pid {host.pid})", f"left by a host (pid {daemon.pid})"]
        assert not daemon.is_alive()
        assert sleeper.poll() is None
    finally:
        host.kill()
        host.wait(timeout=10)


def test_a_dead_process_cannot_be_adopted(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    sleeper.wait(timeout=5)
    with pytest.raises(ProcessLookupError, match="sleeper"):
        fl_state.OwnedProcess.from_pid(sleeper.pid, "sleeper")


def test_unreadable_state_is_removed_without_harm() -> None:
    folder = fl_state.folder("7")
    folder.mkdir(parents=True)
    (folder / "state.db").write_text('{"pids": [')
    assert fl_state.read("7") is None
    assert fl_state.clean("7") == []
    assert not folder.exists()


@pytest.mark.parametrize("name", ["..", "../x", "", "a/b"])
def test_a_path_is_no_instance(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not the name of a topology"):
        fl_state.clean(name)
    assert tmp_path.exists()


def test_stop_refuses_a_name_that_left_no_state(tmp_path: Path) -> None:
    del tmp_path
    fl_state.write("7", {"pids": [], "interfaces": []})
    done = subprocess.run(
        [sys.executable, "-m", "fairlane_topology.stop", "8"],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 2
    assert "no topology '8' left its state in" in done.stderr
    assert fl_state.instances() == ["7"]


def test_an_empty_variable_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_STATE_DIR", "")
    assert fl_state.state_root() == Path("/run/fairlane")


def test_unknown_interfaces_are_not_an_error() -> None:
    assert fl_state.remove_interfaces(["fl-no-such-if"]) == []


def test_what_was_changed_of_a_port_stays_when_the_state_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state(**port: object) -> dict[str, object]:
        return {"name": "7", "switches": [{"name": "s1", "grpc": "localhost:50051", "ports": [{"port": 2, **port}]}]}

    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    fl_state.write("7", state(rate_bps=2_000_000, mtu=9000))
    remember_port(fl_state.folder("7"), "s1", 2, {"rate_bps": 500_000})
    fl_state.write("7", state(rate_bps=2_000_000, mtu=1500))
    port = read_run_state(fl_state.folder("7")).switch("s1").ports[0]
    assert (port.rate_bps, port.mtu) == (500_000, 1500)


def test_ports_of_a_switch_that_starts_again_get_what_was_set_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = dict[int, dict[str, object]]()

    def set_port(_: Path, port: int, **values: object) -> None:
        given[port] = values

    monkeypatch.setattr(nodes, "set_port", set_port)
    monkeypatch.setattr(link_control, "set_port", set_port)
    ports = [{"port": number} for number in (1, 2, 3)]
    fl_state.write("7", {"name": "7", "switches": [{"name": "s1", "grpc": "localhost:50051", "ports": ports}]})
    switch = object.__new__(nodes.EmbeddedSwitch)
    switch.options, switch.name, switch.control = nodes.NetworkOptions(7), "s1", tmp_path / "s1.sock"
    folder, varying = switch.options.folder, read_series("rate_bps", {"steps": [[0, 1e6], [1, 3e6]]})
    running = link_control.RunningPorts(read_run_state(folder))
    for port in (1, 2):
        running.set_rate(LinkEnd("s1", port), cast(int, varying))
    assert read_run_state(folder).switch("s1").ports[0].rate_bps == varying
    remember_port(folder, "s1", 2, {"rate_bps": 0, "queue_cells": 0, "scheduler": "drr"})
    given.clear()
    switch.restore_ports()
    settings = {"rate_bps": 0, "queue_cells": nodes.NO_LIMIT, "scheduler": "drr"}
    assert given == {1: {"rate_bps": varying.form}, 2: settings}
