# SPDX-License-Identifier: Apache-2.0
"""The processes that we start, of the Rust workspace and others: found, started, waited for, stopped by pid, never by name."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NoReturn

from fairlane_controller.state.processes import OwnedProcess

RELEASE_DIR = Path(__file__).parent.parent / "target" / "release"
READY = "fairlane-switch: ready"
"""Begins the line with which the switch says that it serves."""
STOP_TIMEOUT_S = 5.0
KILLED_TIMEOUT_S = 2.0
"""How long a process that was killed may take to be gone: the kernel takes its memory away first."""
POLL_S = 0.01
_WORDS = 500
"""Characters of its output's end that an error quotes."""


class BinaryNotFoundError(RuntimeError):
    """The binary `name` is in none of the `places`."""

    def __init__(self, name: str, places: Sequence[Path]) -> None:
        looked = f"(looked in {', '.join(map(str, places))} and on the PATH)"
        if name.startswith("simple_switch"):
            super().__init__(f"{name} is not there {looked}: docs/install.md says where p4lang's packages are")
        else:
            super().__init__(f"{name} is not built {looked}: run 'make setup'")


class ProcessFailedError(RuntimeError):
    """A process did not become ready: it ended (`exit_code`) or was too slow (`exit_code` None). `words` is what it said."""

    def __init__(self, what: str, exit_code: int | None, words: str, timeout_s: float) -> None:
        self.exit_code = exit_code
        self.words = words
        how = f"is not ready within {timeout_s:g} s" if exit_code is None else "does not start"
        super().__init__(f"{what} {how}: {words[-_WORDS:] or 'no output'}")


def find_binary(name: str) -> Path:
    """Path of a binary: `$FAIRLANE_BIN_DIR`, then this tree's release build, then the PATH.

    Raises BinaryNotFoundError.
    """
    folder = os.environ.get("FAIRLANE_BIN_DIR")
    places = [Path(folder)] if folder else []
    places.append(RELEASE_DIR)
    for place in places:
        if (place / name).is_file():
            return place / name
    on_path = shutil.which(name)
    if on_path is None:
        raise BinaryNotFoundError(name, places)
    return Path(on_path)


def become_binary(name: str = "", arguments: Sequence[str] | None = None) -> NoReturn:
    """This process becomes a binary: the one of its name, with its arguments, unless others are given.

    Raises BinaryNotFoundError.
    """
    name = name or Path(sys.argv[0]).name
    if not (RELEASE_DIR / name).is_file():
        raise BinaryNotFoundError(name, [RELEASE_DIR])
    os.execv(RELEASE_DIR / name, [name, *(sys.argv[1:] if arguments is None else arguments)])


def wait_until(holds: Callable[[], object], timeout_s: float) -> bool:
    """Wait until something holds; returns whether it did within so long."""
    deadline = time.monotonic() + timeout_s
    while not (result := holds()) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return bool(result)


class Service:
    """A process that we start, and stop at the end; it may be started again. A context manager: leaving it stops the process."""

    def __init__(
        self,
        what: str,
        command: Callable[[], Sequence[str]],
        log: Path | None,
        is_ready: Callable[[], object],
        ready_timeout_s: float,
        ends_with: Collection[int] = (),
    ) -> None:
        """Describe it.

        Args:
            what: its name in messages and in the run state.
            command: makes the command line, and what must be there before, at each start.
            log: where its output goes; None: to a file that goes with this object.
            is_ready: whether it serves.
            ready_timeout_s: how long that may take.
            ends_with: exit codes with which it ends as somebody wished; with every other one it has died.
        """
        self.what = what
        self._command = command
        if log is None:
            self._output = tempfile.NamedTemporaryFile(prefix="fairlane-")  # noqa: SIM115 (lives as long as this)
            log = Path(self._output.name)
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
        """Wait until it serves. Raises ProcessFailedError when it does not in time."""
        in_time = wait_until(lambda: self.has_ended or self._is_ready(), self._ready_timeout_s)
        if self.has_ended or not in_time:
            code = self.process.poll() if self.process is not None else None
            raise ProcessFailedError(self.what, code, self.words, self._ready_timeout_s)

    def start(self) -> Service:
        """Start it and wait until it serves; returns it. Raises as both do, and nothing runs then."""
        try:
            self.launch()
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def death(self) -> str | None:
        """How it has died, None where it has not: it runs, was stopped, or has ended as somebody wished."""
        code = None if self.process is None or self.owned is None else self.process.poll()
        if code is None or code in self._ends_with:
            return None
        return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"

    @property
    def pid(self) -> int:
        """Of its process. Raises RuntimeError before the first start."""
        if self.process is None:
            raise RuntimeError(f"{self.what} was not started")
        return self.process.pid

    @property
    def has_ended(self) -> bool:
        """Whether its process has ended, as somebody wished or not."""
        return self.process is not None and self.process.poll() is not None

    @property
    def is_over(self) -> bool:
        """Whether it has ended and a supervisor does not start it again."""
        return self.owned is None or self.given_up or (self.has_ended and self.death() is None)

    @property
    def words(self) -> str:
        """What it has said since its start."""
        return self._log.read_text(errors="replace").strip()

    def line(self, begin: str) -> str:
        """The first line of its output that begins so; empty where there is none."""
        whole = self._log.read_text(errors="replace").split("\n")[:-1]
        return next((line for line in whole if line.startswith(begin)), "")

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Stop it, if it runs; it is not meant to run then. Returns its exit code, 0 where it was never started."""
        stop_all([self], timeout_s)
        return 0 if self.process is None else self.process.returncode

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start_process(
    command: Sequence[str | Path], *, ready: str = READY, timeout_s: float = 10.0, prefix: Sequence[str] = ()
) -> Service:
    """Start `prefix` + `command` and wait for a line of its output that begins with `ready`. Raises ProcessFailedError."""
    words = [*prefix, *map(str, command)]
    service = Service(Path(command[0]).name, lambda: words, None, lambda: service.line(ready), timeout_s)
    return service.start()


def accepts(address: str, timeout_s: float) -> bool:
    """Whether a server accepts a connection at HOST:PORT.

    A connection from the kernel's choice of port to itself (simultaneous open, RFC 9293 §3.5) is none: while nobody listens on
    a port of the ephemeral range, connect() may get that very port as its own.
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=timeout_s) as connection:
            return connection.getsockname() != connection.getpeername()
    except OSError:
        return False


def stop_all(services: Collection[Service], timeout_s: float = STOP_TIMEOUT_S) -> None:
    """Stop them all at once."""
    for service in services:
        service.owned = None
    end_processes([service.process for service in services if service.process is not None], timeout_s)


def end_processes(processes: Collection[subprocess.Popen[Any]], timeout_s: float = STOP_TIMEOUT_S) -> None:
    """Ask our children to end (SIGTERM), and kill those that have not within `timeout_s`. Harmless to those that have ended."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + timeout_s
    for process in processes:
        try:
            process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=STOP_TIMEOUT_S)
