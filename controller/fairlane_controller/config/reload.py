# SPDX-License-Identifier: Apache-2.0
"""The configuration of a running loop: read again on SIGHUP, or when the file changes; in force whole or not at all.

A file with a mistake, or one that a switch refuses, changes nothing: the error is an event.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairlane_controller.config.apply import apply, last_applied
from fairlane_controller.config.compare import CONFIG, read_applied
from fairlane_controller.config.model import LoopConfig
from fairlane_controller.config.read import addressed, read_file
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_input
from fairlane_controller.state.ask import Asker, own_loop
from fairlane_controller.state.events import EventLog
from fairlane_controller.state.run_state import RunState
from fairlane_controller.units import counted

POLL_S = 0.25
"""Between two polls of the file; a new version is read when two polls see the same, since it may be half written before."""
RETRY_S = 0.5
"""Pause before the next try while a switch is away or has no program."""
_RETRYABLE = (ErrorCode.SWITCH_UNREACHABLE, ErrorCode.TIMED_OUT, ErrorCode.NO_PIPELINE, ErrorCode.NO_LOOP)


def parse_loop(data: dict[str, Any] | None, model: type[LoopConfig]) -> LoopConfig:
    """`[loop]` as the control socket has it; BAD_INPUT when it is none."""
    try:
        return model.model_validate(data or {})
    except ValidationError as ex:
        raise bad_input(f"options of the loop: {ex.errors()[0]['msg']}") from None


class ConfigService:
    """What a loop knows of its configuration; `watch` runs beside its agents."""

    def __init__(
        self,
        run: RunState | None,
        log: EventLog,
        use: Callable[[LoopConfig], None],
        loop: LoopConfig,
        path: Path | None,
        asker: Callable[[], Asker | None],
    ) -> None:
        """Apply nothing yet.

        Args:
            run: the topology; None: there is none, and `watch` waits.
            log: gets the events.
            use: takes options of the loop into use.
            loop: the options in use.
            path: the file of `fairlane run --config`, already read once into `loop`; None: there is none.
            asker: carries out what is asked of this loop; None while it is not reached, or the backup, which applies nothing.
        """
        self._run = run
        self._log = log
        self._use = use
        self._loop = loop
        self._path = path
        self._asker = asker
        self._wake = asyncio.Event()
        self._why = ""
        self._waiting = ""
        self._busy = asyncio.Lock()
        log.listeners.append(self._on_event)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the loop that are in use, as the request `loop_options` has them."""
        return self._loop.model_dump(mode="json")

    def put(self, options: dict[str, Any] | None) -> None:
        """Take options of the request `loop_put` into use. Raises BAD_INPUT."""
        loop = parse_loop(options, type(self._loop))
        self._use(loop)
        self._loop = loop

    async def _apply(self, why: str, *, retries: bool = False) -> dict[str, Any]:
        """Read the file, or else what was applied last, and apply what differs.

        Args:
            why: why it is read, for the event.
            retries: it is tried again when a switch is away, so that is no refusal.

        Returns:
            What was done, as plain data.

        Raises:
            FairlaneError: What is wrong, with everything as it was, after an event.
        """
        assert self._run is not None
        name, path = str(self._path or CONFIG), self._path
        async with self._busy:
            asker = self._asker()
            token = own_loop.set((self._run.folder, asker) if asker is not None else None)
            try:
                loaded = last_applied(self._run.folder) if path is None else read_file(path, str(self._run.folder))
                done = await apply(
                    loaded,
                    addressed(loaded, self._run),
                    f"fairlane run --config {name}" if path else "fairlane config apply, again",
                )
            except Exception as ex:  # whatever a file can bring about, the loop goes on with what is in force
                known = isinstance(ex, FairlaneError)
                problem = ex if known else ErrorCode.INTERNAL(f"an unforeseen fault: {type(ex).__name__}: {ex}")
                waits = retries and problem.code in _RETRYABLE
                if not (waits and self._waiting == problem.message):  # once for each reason
                    event, then = (
                        ("config_waits", "it is tried again")
                        if waits
                        else ("config_refused", "what was in force stays")
                    )
                    values = {"file": name, "code": problem.code.value, "message": problem.message}
                    self._log.write(event, **values, why=f"{why}: {problem.message}; {then}")
                self._waiting = problem.message if waits else ""
                raise problem from None
            finally:
                own_loop.reset(token)
        self._waiting = ""
        entries, result = sum(done.written.values()), {"file": name, **done.to_json()}
        differed = f"{counted(entries, 'table entry')}, {counted(done.settings, 'setting')} of policies and {counted(done.ports, 'port')} differed"
        self._log.write("config_applied", **result, why=f"{why}: {differed}")
        return result

    # ---- beside the agents ---------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Until cancelled: apply the file at the start, on SIGHUP, when it changes, and after a switch has restarted."""
        if self._run is None:
            await asyncio.Event().wait()
        if self._path is not None:
            with contextlib.suppress(NotImplementedError, ValueError):  # another thread's loop, in tests
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._ask_for, "SIGHUP")
            self._ask_for("the loop has started")
        seen = before = self._stamp()
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), POLL_S)
            now = self._stamp()
            if now is not None and now != seen and now == before:
                self._ask_for("the file has changed")
                seen = now
            before = now
            if self._wake.is_set() and (self._asker() is None or not await self._try()):
                await asyncio.sleep(RETRY_S)

    async def _try(self) -> bool:
        """Whether that was all: False when it is to be tried again, because a switch was away."""
        assert self._run is not None
        self._wake.clear()
        try:
            if self._path is not None or read_applied(self._run.folder) is not None:
                await self._apply(self._why, retries=True)
        except FairlaneError as ex:
            if ex.code in _RETRYABLE:
                self._wake.set()
        return not self._wake.is_set()

    def _ask_for(self, why: str) -> None:
        self._why = why
        self._wake.set()

    def _on_event(self, event: str, fields: dict[str, Any]) -> None:
        """A switch that has restarted lacks what a set-up does not write: classes, limits by hand."""
        if event == "restored":
            self._ask_for(f"switch {fields.get('switch')} has restarted")

    def _stamp(self) -> tuple[int, int, int] | None:
        """Changes with every new version of the file, written in place or replaced; None while it is away."""
        if self._path is None:
            return None
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size
