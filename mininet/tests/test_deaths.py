# SPDX-License-Identifier: Apache-2.0
"""Processes of a running topology are killed (-9): network and loop are started again as they were, and nothing outlives the launcher. Needs root."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_session import Session, processes, sessions, wait_until
from fairlane_controller.state.run_state import LinkEnd, read_run_state
from fairlane_switch.control import ControlError
from fairlane_switch.link_control import RunningPorts
from fairlane_switch.wire import WireClient
from fairlane_topology import state as fl_state
from fairlane_topology.state import OwnedProcess, namespace_members

pytestmark = pytest.mark.kernel

NETWORK = "fairlane-switch network"
INSTANCE = "97"
"""No other test's."""
LIMIT_S = 60.0
FAIRLANE = str(Path(sys.executable).with_name("fairlane"))

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root")


@pytest.fixture
def session(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """h1 - s1 - h2; its state is in the test's own folder, and nothing of it stays. `request.param` is the program: qthresh, with a loop, if left out."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path / "state"))
    document: dict[str, object] = {
        "hosts": {"h1": {"ip": "10.0.1.1/24"}, "h2": {"ip": "10.0.2.2/24"}},
        "switches": {"s1": {}},
        "links": [
            {"a": "h1", "b": "s1-p1", "delay": "1ms"},
            {"a": "s1-p2", "b": "h2", "delay": "1ms", "bandwidth": "8Mbit"},
        ],
    }
    with sessions(INSTANCE, document, tmp_path) as started:
        yield started("--program", getattr(request, "param", "qthresh"))


def fairlane(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([FAIRLANE, *words], capture_output=True, text=True, timeout=LIMIT_S)


def kill(what: str) -> OwnedProcess:
    """Kill a process as nobody expects it."""
    process = processes(INSTANCE)[what]
    os.kill(process.pid, signal.SIGKILL)
    return process


def delay_us(link: str) -> float | None:
    """Of a link there, as the wire says it; None where there is no wire."""
    try:
        with WireClient(fl_state.folder(INSTANCE) / "wire.sock") as wire:
            return next(one.a_to_b.delay_us for one in wire.links() if one.name == link)
    except ControlError:
        return None


def port_rate_bps(switch: str, port: int) -> int:
    """Of a port there, as the switch says it."""
    return RunningPorts(read_run_state(fl_state.folder(INSTANCE))).rate_bps(LinkEnd(switch, port))


@needs_root
def test_what_dies_is_started_again_as_it_was(session: Session) -> None:
    # The network, with the settings that its links had, not those of the file; the loop restores its switch.
    assert fairlane("link", "set", "h1-s1", "--delay", "20ms").returncode == 0
    assert fairlane("link", "set", "s1-h2", "--rate", "1mbit").returncode == 0
    links = fl_state.folder(INSTANCE) / "network.json"
    wait_until(lambda: '"delay_us": 20000' in links.read_text(), "the change of a link is not kept")
    killed = kill(NETWORK)
    wait_until(lambda: processes(INSTANCE)[NETWORK] != killed, "the network is not started again")
    wait_until(lambda: delay_us("h1-s1") == 20_000, "the link has not its settings")
    wait_until(lambda: fairlane("status").returncode == 0, "the loop does not restore the switch")
    assert port_rate_bps("s1", 2) == 1_000_000
    assert "0% dropped" in session.do("pingall 5")
    # A switch that is started while the loop is dead gets its threshold from the loop that comes.
    assert fairlane("threshold", "set", "7").returncode == 0
    remembered = time.monotonic() + 1.0
    wait_until(lambda: time.monotonic() > remembered, "never")  # the loop remembers it at its next evaluation
    kill("fairlane run")
    assert session.do("switch s1 stop") == ""
    assert session.do("switch s1 start", LIMIT_S) == ""
    assert port_rate_bps("s1", 2) == 1_000_000
    shown = json.loads(fairlane("threshold", "show", "--json").stdout)
    assert [row["qthresh_packets"] for row in shown] == [7], shown
    done = fairlane("status")
    assert (done.returncode, "; loop runs" in done.stdout) == (0, True), done.stdout
    assert "0% dropped" in session.do("pingall 5")
    told = [event["why"] for event in json.loads(fairlane("log", "--json").stdout) if event["event"] == "process_died"]
    assert told == [f"{what} was killed by signal 9, and is started again" for what in (NETWORK, "fairlane run")]
    assert session.leave() == 0


@needs_root
@pytest.mark.parametrize("session", ["ena"], indirect=True)
def test_switches_without_a_loop_get_their_program_again_but_one_that_was_stopped_stays_so(session: Session) -> None:
    killed = kill(NETWORK)
    wait_until(lambda: processes(INSTANCE)[NETWORK] != killed, "the network is not started again")
    wait_until(lambda: fairlane("status").returncode == 0, "the switch has no program")
    assert "0% dropped" in session.do("pingall 5")
    assert session.do("switch s1 stop") == ""
    killed = kill(NETWORK)
    wait_until(lambda: processes(INSTANCE)[NETWORK] != killed, "the network is not started again")
    wait_until(lambda: delay_us("h1-s1") == 1_000, "the links are not there")
    assert session.do("switch s1 start", LIMIT_S) == ""
    assert "0% dropped" in session.do("pingall 5")
    assert session.leave() == 0


@needs_root
def test_nothing_outlives_a_killed_launcher(session: Session) -> None:
    session.do("h2 nohup setsid sleep 600 > /dev/null 2>&1 &")
    session.type("h1 sleep 600")  # a shell that is busy

    def members() -> list[OwnedProcess]:
        return namespace_members(processes(INSTANCE)[f"host {name}"].pid for name in ("h1", "h2"))

    wait_until(lambda: len(members()) >= 4, "the hosts' commands do not run")
    owned = [*processes(INSTANCE).values(), *members()]
    assert session.signal(signal.SIGKILL) == -signal.SIGKILL
    wait_until(lambda: not any(process.is_alive() for process in owned), "processes stay")
    wait_until(lambda: fl_state.instances() == [], "the run state stays")
    assert [name for name in os.listdir("/sys/class/net") if name.startswith(f"n{INSTANCE}")] == []  # noqa: PTH208
