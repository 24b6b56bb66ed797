# SPDX-License-Identifier: Apache-2.0
"""The launcher in a terminal of its own, as a user has it: for tests that type commands and read what comes back."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

import pexpect
from fairlane_topology import state as fl_state
from fairlane_topology.state import OwnedProcess

PROMPT = "mininet> "
START_TIMEOUT_S = 240.0
COMMAND_TIMEOUT_S = 120.0
LAUNCHER = Path(__file__).parents[1] / "fairlane_topology" / "run.py"
"""As a file: with `python -m` a Ctrl-C that Mininet's `py` has caught would end Python by SIGINT in the end."""


def launcher(instance: str, *arguments: str) -> list[str]:
    """The launcher's command line, for an instance that no user's run has."""
    return [sys.executable, str(LAUNCHER), "--instance", instance, *arguments]


class Session:
    """A running launcher. Every wait has a timeout; its error contains the output so far."""

    def __init__(
        self,
        *arguments: str,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] = (sys.executable, str(LAUNCHER)),
    ) -> None:
        """Start `command` with these arguments, in `folder`; `started` is its output before the first prompt."""
        program, *first = command
        self._terminal: pexpect.spawn[str] = pexpect.spawn(
            program,
            [*first, *arguments],
            cwd=None if folder is None else str(folder),
            env={**os.environ, **(environment or {}), "TERM": "dumb"},
            encoding="utf-8",
            codec_errors="replace",
            timeout=COMMAND_TIMEOUT_S,
            dimensions=(50, 400),
        )
        try:
            self.started = self.wait(START_TIMEOUT_S)
        except AssertionError:
            self.end()
            raise

    @property
    def pid(self) -> int:
        """Of the launcher."""
        pid = self._terminal.pid
        assert pid is not None
        return pid

    def do(self, command: str, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """Type a command; what it says up to the next prompt."""
        self.type(command)
        return self.wait(timeout_s).partition("\n")[2]  # behind the echo

    def type(self, line: str) -> None:
        """Type a line without waiting."""
        self._terminal.sendline(line)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._terminal.sendintr()

    def wait(self, timeout_s: float = COMMAND_TIMEOUT_S, until: str = PROMPT) -> str:
        """The output until the next `until`."""
        try:
            self._terminal.expect_exact(until, timeout=timeout_s)
        except (pexpect.TIMEOUT, pexpect.EOF):
            raise AssertionError(f"no {until!r} within {timeout_s:g} s, but:\n{self._terminal.before}") from None
        return re.sub(r"\r+\n", "\n", str(self._terminal.before))

    def signal(self, number: int) -> int:
        """Send a signal to the launcher; its exit code."""
        os.kill(self.pid, number)
        return self.ended()

    def hang_up(self) -> None:
        """Close the terminal, as a lost connection does."""
        os.close(self._terminal.fileno())

    def leave(self) -> int:
        """Type `exit`; the launcher's exit code."""
        self.type("exit")
        return self.ended()

    def ended(self) -> int:
        """The exit code of a launcher that ends by itself; minus the signal's number where one has killed it."""
        try:
            self._terminal.expect(pexpect.EOF, timeout=START_TIMEOUT_S)
        except pexpect.TIMEOUT:
            raise AssertionError(f"it does not end:\n{self._terminal.before}") from None
        self._terminal.wait()
        return (
            -int(self._terminal.signalstatus or 0)
            if self._terminal.exitstatus is None
            else int(self._terminal.exitstatus)
        )

    def settle(self) -> None:
        """Wait until all that was typed is done, however many prompts it brought."""
        self.type("sh echo settled-$((6 * 7))")
        self.wait(until="settled-42")
        self.wait()

    def end(self) -> None:
        """End it if it still runs: by SIGTERM, which lets it remove what it has made, then by SIGKILL."""
        if self._terminal.isalive():
            with contextlib.suppress(AssertionError, OSError):  # it hangs; a terminal that was closed
                self.signal(signal.SIGTERM)
        with contextlib.suppress(OSError):
            self._terminal.close(force=True)
        if self._terminal.isalive():
            os.kill(self.pid, signal.SIGKILL)
            self._terminal.wait()


@contextlib.contextmanager
def sessions(instance: str, document: object, folder: Path) -> Generator[Callable[..., Session]]:
    """Starts the launcher with a topology, as often as asked for; nothing of it stays in any case."""
    topology = folder / "topology.json"
    topology.write_text(json.dumps(document))
    made: list[Session] = []

    def started(*arguments: str) -> Session:
        made.append(Session("--instance", instance, "--topology", str(topology), *arguments, folder=folder))
        return made[-1]

    try:
        yield started
    finally:
        for session in made:
            session.end()
        fl_state.clean(instance)


def processes(instance: str) -> dict[str, OwnedProcess]:
    """What the run state names, by what it is."""
    state = fl_state.read(instance)
    assert state is not None
    return {process.what: process for process in map(OwnedProcess.from_json, state["pids"])}


def wait_until(happens: Callable[[], object], what: str, limit_s: float = 60.0) -> None:
    """Wait until it happens; `what` is the error."""
    deadline = time.monotonic() + limit_s
    while not happens():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
