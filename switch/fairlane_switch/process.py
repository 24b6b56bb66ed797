# SPDX-License-Identifier: Apache-2.0
"""Finding, starting and stopping a binary of the Rust workspace: ready when it says so, stopped by pid, never by name."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NoReturn

from fairlane_controller.state.processes import start_time

RELEASE_DIR = Path(__file__).parent.parent / "target" / "release"


class BinaryNotFoundError(RuntimeError):
    """The binary `name` is in none of the `places`."""

    def __init__(self, name: str, places: Sequence[Path]) -> None:
        self.name = name
        self.places = tuple(places)
        looked = ", ".join(str(place) for place in places)
        super().__init__(f"{name} is not built (looked in {looked} and on the PATH): run 'make setup'")


class ProcessFailedError(RuntimeError):
    """A process did not become ready: it ended (`exit_code`) or was too slow (`exit_code` None). `words` is what it said."""

    def __init__(self, command: Sequence[str], exit_code: int | None, words: str, timeout_s: float) -> None:
        self.command = tuple(command)
        self.exit_code = exit_code
        self.words = words
        how = f"was not ready within {timeout_s} s" if exit_code is None else f"ended with exit code {exit_code}"
        super().__init__(f"{Path(command[0]).name} {how}: {words or 'it said nothing'}")


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


class ManagedProcess:
    """A process that we started and will stop. A context manager: leaving it stops the process."""

    def __init__(self, process: subprocess.Popen[bytes], ready_line: str, log: IO[bytes]) -> None:
        self._process = process
        self._log = log
        self.ready_line = ready_line
        """The line on standard output that said it is ready."""
        self.pid = process.pid
        self.start_time = start_time(process.pid)
        """Clock ticks since boot, for the run state."""

    @classmethod
    def start(
        cls,
        command: Sequence[str | Path],
        *,
        ready: str,
        timeout_s: float = 10.0,
        prefix: Sequence[str] = (),
    ) -> ManagedProcess:
        """Start `prefix` + `command` and wait for a line on its standard output that begins with `ready`.

        Its standard error is kept for `words`. Raises ProcessFailedError when it ends before, or takes longer than `timeout_s`.
        """
        words = [str(word) for word in command]
        log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        process = subprocess.Popen(
            [*prefix, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
        assert process.stdout is not None
        line = _read_ready_line(process.stdout, ready.encode(), time.monotonic() + timeout_s)
        if line is not None:
            return cls(process, line, log)
        try:
            exit_code = process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            exit_code = None
            process.kill()
            process.wait(timeout=5)
        process.stdout.close()
        raise ProcessFailedError(words, exit_code, _read_log(log), timeout_s)

    @property
    def is_running(self) -> bool:
        """True until it has ended."""
        return self._process.poll() is None

    @property
    def words(self) -> str:
        """What it has said on standard error so far."""
        return _read_log(self._log)

    def stop(self, timeout_s: float = 5.0) -> int:
        """Ask it to end (SIGTERM), insist (SIGKILL) after `timeout_s`; returns its exit code. Harmless when it has ended."""
        if self.is_running:
            self._process.terminate()
        try:
            code = self._process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait(timeout=5)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return code

    def __enter__(self) -> ManagedProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _read_ready_line(stream: IO[bytes], ready: bytes, deadline: float) -> str | None:
    """The first line that begins with `ready`; None when the stream ends or the deadline passes before."""
    buffer = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if not selector.select(left):
                return None
            chunk = os.read(stream.fileno(), 4096)
            if not chunk:
                return None
            buffer += chunk
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                if line.startswith(ready):
                    return line.decode(errors="replace")
    return None


def _read_log(log: IO[bytes]) -> str:
    with contextlib.suppress(OSError, ValueError):
        size = os.fstat(log.fileno()).st_size
        return os.pread(log.fileno(), size, 0).decode(errors="replace").strip()
    return ""
