# SPDX-License-Identifier: Apache-2.0
"""Switches and links in one process: packets between switches never cross the kernel, and users find what they had. Needs root."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_session import Session, processes, sessions

pytestmark = pytest.mark.kernel

INSTANCE = "86"
"""No other test's."""
LIMIT_S = 60.0
FAIRLANE = str(Path(sys.executable).with_name("fairlane"))

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root")


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Session]]:
    """Starts h1, h3 - s1 = s2 - s3 - h2, the last link between switches captured; nothing of it stays."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path / "state"))
    document: dict[str, object] = {
        "hosts": {f"h{number}": {"ip": f"10.0.{number}.{number}/24"} for number in (1, 2, 3)},
        "switches": {"s1": {}, "s2": {}, "s3": {}},
        "links": [
            {"a": "h1", "b": "s1-p1", "delay": "2ms"},
            ["h3", "s1-p3"],
            {"a": "s1-p2", "b": "s2-p1"},
            {"a": "s1-p4", "b": "s2-p3"},
            {"a": "s2-p2", "b": "s3-p1", "delay": "3ms", "capture": True},
            ["s3-p2", "h2"],
        ],
    }
    with sessions(INSTANCE, document, tmp_path) as started:
        yield started


def fairlane(*words: str, code: int = 0) -> str:
    done = subprocess.run([FAIRLANE, *words], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout or done.stderr


def round_trip_ms(session: Session, count: int = 3) -> float:
    """The least from h1 to h2; every packet comes back."""
    said = session.do(f"h1 ping -c {count} -i 0.2 -W 5 10.0.2.2")
    assert " 0% packet loss" in said, said
    found = re.search(r"rtt min/avg/max/mdev = ([0-9.]+)/", said)
    assert found is not None
    return float(found.group(1))


def frames(interface: str) -> int:
    """That the kernel has seen at an interface of ours."""
    counts = Path(f"/sys/class/net/{interface}/statistics")
    return sum(int((counts / name).read_text()) for name in ("rx_packets", "tx_packets"))


@needs_root
def test_packets_between_switches_do_not_cross_the_kernel_and_users_find_what_they_had(
    start: Callable[..., Session],
) -> None:
    session = start()
    do = session.do
    assert [what for what in processes(INSTANCE) if "fairlane-switch" in what] == ["fairlane-switch network"]
    assert not Path(f"/sys/class/net/n{INSTANCE}w0a").exists()
    # The packet thread has a processor of its own, where there is a second one; hosts receive on the others.
    tasks = Path(f"/proc/{processes(INSTANCE)['fairlane-switch network'].pid}/task").iterdir()
    threads = {(task / "comm").read_text().strip(): int(task.name) for task in tasks}
    every, own = os.sched_getaffinity(0), os.sched_getaffinity(threads["packets"])
    others = every - own if len(every) > 1 else every - every
    steering = do("h2 cat /sys/class/net/eth0/queues/rx-0/rps_cpus").strip().replace(",", "")
    assert (int(steering, 16), len(own)) == (sum(1 << cpu for cpu in others), 1)
    ports = [f"n{INSTANCE}{switch}-eth{port}" for switch in ("s1", "s2") for port in (1, 2)]
    before = [frames(name) for name in ports]
    assert "0% dropped" in do("pingall 5")
    assert 10.0 <= round_trip_ms(session) < 30.0
    seen = [frames(name) for name in ports]
    at_host, *between, captured = (now - then for now, then in zip(seen, before, strict=True))
    assert between == [0, 0]
    assert min(at_host, captured) >= 6, "a host, and a link that is captured, are in the kernel"
    # Mininet's words, and the state of an interface is that of the port.
    assert f"n{INSTANCE}s1-eth2<->n{INSTANCE}s2-eth1 (OK OK)" in do("links")
    assert do("link s1 s2 down") == ""
    assert "100% packet loss" in do("h1 ping -c 1 -W 1 10.0.2.2")
    assert do("link s1 s2 up") == ""
    round_trip_ms(session)
    do(f"sh ip link set n{INSTANCE}s2-eth1 down")
    assert "100% packet loss" in do("h1 ping -c 1 -W 1 10.0.2.2")
    do(f"sh ip link set n{INSTANCE}s2-eth1 up")
    # Every link takes changes, also one without a delay between two switches.
    fairlane("link", "set", "s1-s2", "--delay", "20ms")
    fairlane("link", "set", "h1-s1", "--delay", "1ms")
    assert 48.0 <= round_trip_ms(session) < 70.0
    shown = json.loads(fairlane("link", "show", "s1-s2", "--json"))
    assert shown["emulated"] is True
    assert (shown["stats"]["a"]["interface"], shown["stats"]["b"]["interface"]) == (
        f"n{INSTANCE}s1-eth2",
        f"n{INSTANCE}s2-eth1",
    )
    assert shown["stats"]["a_to_b"]["delivered_packets"] >= 3
    assert "ingress" in fairlane("trace", "s2:1", "--packet", "icmp:10.0.1.1>10.0.2.2", "--json")
    # One switch stops and starts, with what it had, while the others forward.
    do("h1 ping -q -i 0.01 10.0.3.3 > neighbour.log &")
    assert do("switch s2 stop") == ""
    assert "does not run" in do("switch s2 stop")
    assert "100% packet loss" in do("h1 ping -c 1 -W 1 10.0.2.2")
    assert do("switch s2 start", LIMIT_S) == ""
    assert 48.0 <= round_trip_ms(session) < 70.0
    sent, received = map(int, re.findall(r"(\d+) (?:packets transmitted|received)", do("h1 kill -INT $!; wait; cat neighbour.log")))  # fmt: skip
    assert received >= sent - 1, "the last one may be under way"
    assert session.leave() == 0


@needs_root
def test_with_separate_processes_a_killed_switch_takes_no_other_one_with_it(start: Callable[..., Session]) -> None:
    session = start("--processes", "separate")
    do = session.do
    switches = [what for what in processes(INSTANCE) if "fairlane-switch" in what]
    assert switches == [f"fairlane-switch {name}" for name in ("s1", "s2", "s3")] + ["fairlane-switch network"]
    assert 10.0 <= round_trip_ms(session) < 30.0
    assert frames(f"n{INSTANCE}s1-eth2") >= 6
    assert "s1-s2 is a bare veth pair" in " ".join(fairlane("link", "set", "s1-s2", "--delay", "1ms", code=5).split())
    fairlane("link", "set", "s2-s3", "--delay", "20ms")
    assert 44.0 <= round_trip_ms(session) < 65.0
    os.kill(processes(INSTANCE)["fairlane-switch s2"].pid, signal.SIGKILL)
    assert "100% packet loss" in do("h1 ping -c 1 -W 1 10.0.2.2")
    assert " 0% packet loss" in do("h1 ping -c 1 -W 5 10.0.3.3")
    # It stays dead, as one without power does, and that is shown.
    assert "fairlane-switch s2 (process " in fairlane("status", code=4)
    assert do("switch s2 start", LIMIT_S) == ""
    round_trip_ms(session)
    assert session.leave() == 0
