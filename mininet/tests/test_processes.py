# SPDX-License-Identifier: Apache-2.0
"""Processes of a topology: ready or an error with their last words, and started again when they die, but not for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fairlane_switch.process import Service, stop_all
from fairlane_topology import processes as fl_processes
from fairlane_topology import state as fl_state
from fairlane_topology.processes import Supervisor

LIMIT_S = 20.0


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Makes services of a shell's script, which are ready when there is a file `ready`; stopped at the end."""
    made: list[Service] = []

    def service(script: str, timeout_s: float = LIMIT_S, ends_with: tuple[int, ...] = ()) -> Service:
        words = ["sh", "-c", f"cd {tmp_path}; {script}"]
        ready = tmp_path / "ready"
        made.append(
            Service(f"service {len(made)}", lambda: words, tmp_path / "log", ready.exists, timeout_s, ends_with)
        )
        return made[-1]

    yield service
    stop_all(made)


def ended(service: Service) -> int:
    assert service.process is not None
    return service.process.wait(timeout=LIMIT_S)


def test_a_service_is_started_and_stopped(make: Callable[..., Service]) -> None:
    service = make("touch ready; exec sleep 60")
    owned = service.launch()
    service.wait_ready()
    assert (owned.is_alive(), service.death(), service.has_ended) == (True, None, False)
    with pytest.raises(RuntimeError, match=r"service 0 \(process \d+\) runs already"):
        service.launch()
    service.stop()
    assert (owned.is_alive(), service.death(), service.is_over) == (False, None, True)


def test_one_that_does_not_start_says_why(make: Callable[..., Service]) -> None:
    for script, why in (
        ("echo no such file >&2; exit 2", "does not start: no such file"),
        ("exit 0", "does not start: no output"),
    ):
        service = make(script)
        service.launch()
        with pytest.raises(RuntimeError, match=why):
            service.wait_ready()
    service = make("echo wait >&2; exec sleep 60", timeout_s=0.5)
    service.launch()
    with pytest.raises(RuntimeError, match=r"is not ready within 0\.5 s"):
        service.wait_ready()


def test_how_one_has_ended_is_known(make: Callable[..., Service]) -> None:
    killed, wished = make("exec sleep 60"), make("exit 7", ends_with=(0, 7))
    killed.launch()
    wished.launch()
    assert killed.process is not None
    killed.process.kill()
    assert (ended(killed), killed.death(), killed.is_over) == (-9, "was killed by signal 9", False)
    assert (ended(wished), wished.death(), wished.is_over) == (7, None, True)
    failed = make("exit 3")
    failed.launch()
    assert (ended(failed), failed.death()) == (3, "ended with exit code 3")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a supervisor said; it looks often."""
    monkeypatch.setattr(fl_processes, "POLL_S", 0.01)
    return []


def supervise(service: Service, told: list[str], done: threading.Event, until: Callable[[str], bool]) -> Supervisor:
    def tell(one: Service, how: str) -> None:
        assert one is service
        told.append(how)
        if until(how):
            done.set()

    def restart(one: Service) -> None:
        one.launch()

    return Supervisor(lambda: [service], restart, tell)


def test_what_was_killed_is_started_again(make: Callable[..., Service], told: list[str]) -> None:
    service, done = make("exec sleep 60"), threading.Event()
    first = service.launch()
    supervisor = supervise(service, told, done, lambda _: True)
    os.kill(first.pid, signal.SIGKILL)
    assert done.wait(LIMIT_S)
    deadline = time.monotonic() + LIMIT_S
    while service.owned == first or service.has_ended:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    supervisor.close()
    supervisor.wait(LIMIT_S)
    assert told == ["was killed by signal 9, and is started again"]


def test_what_dies_again_and_again_stays_dead(make: Callable[..., Service], told: list[str]) -> None:
    service, done = make("exit 3"), threading.Event()
    service.launch()
    supervisor = supervise(service, told, done, lambda how: "not started again" in how)
    assert done.wait(LIMIT_S)
    supervisor.close()
    supervisor.wait(LIMIT_S)
    assert told == [
        *["ended with exit code 3, and is started again"] * fl_processes.STARTS_MAX,
        "ended with exit code 3, as after 5 starts before, and is not started again",
    ]
    assert service.is_over


def test_the_watcher_waits_for_its_parent_and_removes_what_that_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path / "state"))
    left = subprocess.Popen(["sleep", "60"])
    # The parent starts the watcher and ends when its input does.
    script = f"{sys.executable} -m fairlane_topology.stop --after $$ 7 > {tmp_path}/said 2>&1 & echo $!; read line"
    try:
        fl_state.write("7", {"pids": [fl_state.OwnedProcess.from_pid(left.pid, "left").as_json()], "interfaces": []})
        fl_state.write("8", {"pids": [], "interfaces": []})
        with subprocess.Popen(
            ["bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as parent:
            assert parent.stdout is not None
            watcher = fl_state.OwnedProcess.from_pid(int(parent.stdout.readline()), "watcher")
            assert left.poll() is None
            parent.kill()
        assert left.wait(timeout=LIMIT_S) == -signal.SIGTERM
        deadline = time.monotonic() + LIMIT_S
        while watcher.is_alive():
            assert time.monotonic() < deadline, (tmp_path / "said").read_text()
            time.sleep(0.02)
        assert fl_state.instances() == ["8"]
    finally:
        left.kill()
        left.wait(timeout=10)
