# SPDX-License-Identifier: Apache-2.0
"""Mininet's command line as a user has it, in a terminal: its commands work, none of them ends the session, and leaving removes everything. Needs root."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_session import Session, launcher, sessions
from fairlane_topology import state as fl_state

pytestmark = pytest.mark.kernel

HERE = Path(__file__).parents[1]
INSTANCE = "96"
"""No other test's."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root")


def document() -> dict[str, object]:
    """h1 - s1 - s2 - h2, with an emulated link between the switches; h1 has IPv6 too."""
    return {
        "hosts": {"h1": {"ip": "10.0.1.1/24", "ipv6": "fd00:1::1/64"}, "h2": {"ip": "10.0.2.2/24"}},
        "switches": {"s1": {}, "s2": {}},
        "links": [["h1", "s1-p1"], {"a": "s1-p2", "b": "s2-p1", "delay": "1ms", "bandwidth": "8Mbit"}, ["h2", "s2-p2"]],
    }


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Session]]:
    """Starts the launcher in a terminal. Its state is in the test's own folder; nothing of it stays in any case."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path / "state"))
    with sessions(INSTANCE, document(), tmp_path) as started:
        yield started


def ours() -> list[str]:
    """Interfaces of this instance in the root namespace."""
    return [name for name in os.listdir("/sys/class/net") if name.startswith(f"n{INSTANCE}")]  # noqa: PTH208


def owned() -> list[fl_state.OwnedProcess]:
    """What the run state names, and what runs in the hosts' namespaces."""
    state = fl_state.read(INSTANCE)
    assert state is not None
    named = [fl_state.OwnedProcess.from_json(item) for item in state["pids"]]
    return [*named, *fl_state.namespace_members(host["pid"] for host in state["hosts"])]


def nothing_stays(processes: list[fl_state.OwnedProcess]) -> None:
    assert [process.what for process in processes if process.is_alive()] == []
    assert ours() == []
    assert fl_state.instances() == []


@needs_root
def test_every_command_works_and_none_ends_the_session(start: Callable[..., Session], tmp_path: Path) -> None:
    session = start()
    do = session.do
    # Mininet knows the hosts' addresses before anybody has used them.
    assert "*** Results: 0% dropped (2/2 received)" in do("pingall 5")
    assert do("py h1.IP(), h2.IP(), h1.MAC()").strip() == "('10.0.1.1', '10.0.2.2', '08:00:00:00:00:01')"
    assert "<FairlaneHost h2: eth0:10.0.2.2 pid=" in do("dump")
    assert "10.0.2.2 ping statistics" in do("h1 ping -c 1 -W 5 h2")
    # Both ends report a rate; the switch lets 8 Mbit/s pass.
    for command, results in (("iperf h1 h2", 2), ("iperfudp 1M h1 h2", 3)):
        said = do(command, 60)
        rates = re.search(r"\*\*\* Results: (\[.*\])", said)
        assert rates is not None, said
        assert len(re.findall(r"'[\d.]+ [KM]bits/sec'|'1M'", rates.group(1))) == results, said
    # Whose interface it is can be seen.
    assert f"h1-eth0<->n{INSTANCE}s1-eth1 (OK OK)" in do("links")
    assert f"h1 h1-eth0:n{INSTANCE}s1-eth1\n" in do("net")
    assert "h1: h1-eth0\n" in do("intfs")
    # A link that was down comes back with all that it had.
    kept = "ip -4 route; ip -6 route show default; ip neigh show nud permanent; ip -6 addr show scope global"
    before = do(f"h1 {kept}")
    assert "default via 169.254.1.1" in before
    assert "default via fe80::ff:1" in before
    assert do("link h1 s1 down") == ""
    assert "Network is unreachable" in do("h1 ping -c 1 -W 1 10.0.2.2")
    assert do("link h1 s1 up") == ""
    assert do(f"h1 {kept}") == before
    assert "0% dropped" in do("pingall 5")
    # Hosts have our Python and our commands.
    assert do("h1 python3 -c 'import scapy.all; print(6 * 7)'").strip() == "42"
    assert str(HERE.parent / ".venv/bin/fairlane") in do("sh command -v fairlane")
    # A switch that was stopped is started again with what it had.
    assert do("switch s1 stop") == ""
    assert "100% packet loss" in do("h1 ping -c 1 -W 1 10.0.2.2")
    assert do("switch s1 start", 60) == ""
    assert "0% dropped" in do("pingall 5")
    # Errors are reported, and the session goes on.
    assert "no OpenFlow" in do("dpctl dump-flows")
    assert "KeyError" in do("x nobody xclock")
    assert "No such file" in do("source nowhere")
    assert "usage: switch" in do("switch s9 stop")
    assert "has no attribute" in do("py net.nothing")
    (tmp_path / "lines").write_text("# a comment\nh1 echo one\ndpctl x\nh1 echo two\n")
    assert re.search(r"one\n.*no OpenFlow.*two\n", do(f"source {tmp_path / 'lines'}"), re.DOTALL)
    # Ctrl-C ends a command and nothing else, also beside one in the background, twice, and in commands of Mininet's.
    do("h1 ping h2 > /dev/null &")
    for command in ("h1 sleep 60", "sh sleep 60", "iperf h1 h2", "py h2.cmd('sleep 60')"):
        session.type(command)
        time.sleep(1)
        session.interrupt()
        session.interrupt()
        session.settle()
        assert do("h2 echo $((6 * 7))").endswith("42\n"), command
    # A Ctrl-C that comes when the command has ended takes nothing of the next one along.
    do("py h1.sendInt()")
    assert do("h1 echo $((6 * 7))") == "42\n"
    # What is typed for a command reaches it.
    session.type("h1 python3 -c 'print(input() * 2)'")
    time.sleep(1)
    assert "abcabc" in session.do("abc")
    assert "its shell has ended" in do("h1 exit")
    assert "is gone" in do("h1 ls")
    processes = owned()
    assert session.leave() == 0
    nothing_stays(processes)


@needs_root
@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "terminal closed"])
def test_a_signal_removes_everything_as_exit_does(start: Callable[..., Session], how: str) -> None:
    session = start("--no-controller")
    session.do("h2 nohup setsid sleep 600 > /dev/null 2>&1 &")
    session.type("h1 sleep 600")  # a shell that is busy
    time.sleep(1)
    processes = owned()
    assert len(processes) >= 8
    numbered = {
        "s1": (f"127.0.0.1:{50051 + 20 * int(INSTANCE)}", 0),
        "s2": (f"127.0.0.1:{50052 + 20 * int(INSTANCE)}", 1),
    }
    for name, (
        grpc,
        device_id,
    ) in numbered.items():  # as BMv2 and p4lang/tutorials: a controller of the user's expects it
        assert f"{name}: P4Runtime on {grpc}, device id {device_id}\n" in session.started
    if how == "terminal closed":
        session.hang_up()
        deadline = time.monotonic() + 60
        while processes[0].is_alive():
            assert time.monotonic() < deadline, "the launcher does not end"
            time.sleep(0.1)
    else:
        number = signal.Signals[how]
        assert session.signal(number) == 128 + number
    nothing_stays(processes)


@needs_root
def test_a_signal_while_it_starts_leaves_nothing(tmp_path: Path, start: Callable[..., Session]) -> None:
    """At whatever instant: here once its first interface is there."""
    del start
    command = launcher(INSTANCE, "--topology", str(tmp_path / "topology.json"))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not ours():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
        processes = owned()
        process.terminate()
        assert process.wait(timeout=60) == 143
    finally:
        process.kill()
    nothing_stays(processes)
