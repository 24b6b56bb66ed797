# SPDX-License-Identifier: Apache-2.0
"""The processes of a topology: how each is started, waited for and stopped (`Service`), and started again when it has died (`Supervisor`).

A topology's launcher is their parent. They do not outlive it: `stop.py --after`, a service itself, sees its end.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from fairlane_topology.state import OwnedProcess, stop_processes

KILLED_TIMEOUT_S = 2.0
"""How long a process that was killed may take to be gone: the kernel takes its memory away first."""
POLL_S = 0.2
"""Between two polls of the supervisor."""
STARTS_MAX = 5
"""Starts in a row, each of which lasted less than `WELL_AFTER_S`: then it stays dead."""
WELL_AFTER_S = 10.0
_WORDS = 500
"""Characters of a log's end that an error quotes."""


class Service:
    """A process that belongs to a topology from its start to the topology's end."""

    def __init__(
        self,
        what: str,
        command: Callable[[], Sequence[str]],
        log: Path,
        is_ready: Callable[[], bool],
        ready_timeout_s: float,
        ends_with: Collection[int] = (),
    ) -> None:
        """Describe it.

        Args:
            what: its name in messages and in the run state.
            command: makes the command line, and what must be there before, at each start.
            log: where its output goes.
            is_ready: whether it serves.
            ready_timeout_s: how long that may take.
            ends_with: exit codes with which it ends as somebody wished; with every other one it has died.
        """
        self.what = what
        self._command = command
        self._log = log
        self._is_ready = is_ready
        self._ready_timeout_s = ready_timeout_s
        self._ends_with = ends_with
        self.process: subprocess.Popen[bytes] | None = None
        self.owned: OwnedProcess | None = None
        """None: it is not meant to run."""
        self.given_up = False
        """It has died too often."""

    def launch(self) -> OwnedProcess:
        """Start it, without waiting until it is ready. Raises RuntimeError when it runs."""
        if self.process is not None:
            try:
                self.process.wait(timeout=KILLED_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"{self.what} (process {self.process.pid}) runs already") from None
        command = list(self._command())
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self.owned = OwnedProcess.identify_child(self.process.pid, self.what)
        return self.owned

    def wait_ready(self) -> None:
        """Wait until it serves. Raises RuntimeError with the end of its log when it does not in time."""
        assert self.process is not None
        deadline = time.monotonic() + self._ready_timeout_s
        while self.process.poll() is None and time.monotonic() < deadline:
            if self._is_ready():
                return
            time.sleep(0.02)
        how = "does not start" if self.has_ended else f"is not ready within {self._ready_timeout_s:g} s"
        log = self._log.read_text(errors="replace").strip()[-_WORDS:]
        raise RuntimeError(f"{self.what} {how}: {log or 'no output'}")

    def death(self) -> str | None:
        """How it has died, None where it has not: it runs, was stopped, or has ended as somebody wished."""
        code = None if self.process is None or self.owned is None else self.process.poll()
        if code is None or code in self._ends_with:
            return None
        return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"

    @property
    def has_ended(self) -> bool:
        """Whether its process has ended, as somebody wished or not."""
        return self.process is not None and self.process.poll() is not None

    @property
    def is_over(self) -> bool:
        """Whether it has ended and a supervisor does not start it again."""
        return self.owned is None or self.given_up or (self.has_ended and self.death() is None)

    def stop(self) -> None:
        """Stop it, if it runs; it is not meant to run then."""
        stop_all([self])


def stop_all(services: Collection[Service]) -> None:
    """Stop them all at once."""
    processes = [(service.process, service.owned) for service in services if service.process is not None]
    for service in services:
        service.owned = None
    stop_processes(owned for _, owned in processes if owned is not None)
    for process, _ in processes:
        process.wait(timeout=10)


class Supervisor:
    """Starts services again that have died, in a thread of its own, until it is closed."""

    def __init__(
        self,
        services: Callable[[], Iterable[Service]],
        restart: Callable[[Service], None],
        report: Callable[[Service, str], None],
        each_second: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the thread.

        Args:
            services: those that it watches.
            restart: starts one; may raise RuntimeError or OSError.
            report: gets how one has died, and what follows.
            each_second: called every second.
        """
        self._services, self._restart, self._report, self._each_second = services, restart, report, each_second
        self._starts: defaultdict[str, list[float]] = defaultdict(list)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Start nothing more; `wait` waits for what is being started."""
        self._closed.set()

    def wait(self, timeout_s: float = 10.0) -> None:
        """Wait for the end of the thread."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        second_at = time.monotonic() + 1
        while not self._closed.wait(POLL_S):
            for service in self._services():
                how = service.death()
                if how is not None and not service.given_up and not self._closed.is_set():
                    self._restart_dead(service, how)
            if time.monotonic() > second_at:
                second_at += 1
                self._each_second()

    def _restart_dead(self, service: Service, how: str) -> None:
        starts = self._starts[service.what]
        if starts and time.monotonic() - starts[-1] > WELL_AFTER_S:
            starts.clear()
        starts.append(time.monotonic())
        if len(starts) > STARTS_MAX:
            service.given_up = True
            self._report(service, f"{how}, as after {STARTS_MAX} starts before, and is not started again")
            return
        self._report(service, f"{how}, and is started again")
        with contextlib.suppress(RuntimeError, OSError):  # it has died again: the next poll sees it
            self._restart(service)
