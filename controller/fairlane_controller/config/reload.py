# SPDX-License-Identifier: Apache-2.0
"""The configuration of a running loop: read again on SIGHUP, when the file changes, or when somebody asks; in force whole or not at all.

A file with a mistake, or one that a switch refuses, changes nothing: the error is an event, and the answer to whoever asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairlane_controller.config.apply import CONFIG, apply, last_applied, read_applied
from fairlane_controller.config.model import LoopConfig, loop_model
from fairlane_controller.config.read import Loaded, read_file
from fairlane_controller.config.target import addressed
from fairlane_controller.errors import ErrorCode, FairlaneError, unknown_name
from fairlane_controller.state.ask import Asker, own_loop
from fairlane_controller.state.events import EventLog
from fairlane_controller.state.run_state import RunState
from fairlane_controller.units import counted

POLL_S = 0.25
"""Between two looks at the file; one that changes is read when two looks see the same, since it may be half written before."""
RETRY_S = (0.2, 0.3, 0.5, 1.0, 2.0)
"""Pauses while a switch is away or refuses; the last one again and again."""
OPS = ("loop_options", "loop_put", "config_reload")
_AGAIN = (ErrorCode.SWITCH_UNREACHABLE, ErrorCode.TIMED_OUT, ErrorCode.NO_PIPELINE, ErrorCode.NO_LOOP)

Stamp = tuple[int, int, int]


def parse_loop(data: dict[str, Any] | None, model: type[LoopConfig]) -> LoopConfig:
    """`[loop]` as the control socket has it; BAD_INPUT when it is none."""
    try:
        return model.model_validate(data or {})
    except ValidationError as ex:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"options of the loop: {ex.errors()[0]['msg']}") from None


class ConfigService:
    """What a loop knows of its configuration; `watch` runs beside its agents."""

    def __init__(
        self,
        run: RunState | None,
        log: EventLog,
        use: Callable[[LoopConfig], None],
        loop: LoopConfig | None = None,
        path: Path | None = None,
        asker: Callable[[], Asker | None] = lambda: None,
    ) -> None:
        """`use` takes options of the loop into use; `path` is the file of `fairlane run --config`, already read once into `loop`.

        `asker` carries out what is asked of this loop: None while it is not reached, or the backup, which applies nothing.
        """
        self._run = run
        self._log = log
        self._use = use
        self._loop = loop or loop_model()()
        self._path = path
        self._asker = asker
        self._wake = asyncio.Event()
        self._why = ""
        self._waiting = ""
        self._busy = asyncio.Lock()
        log.listeners.append(self._on_event)

    # ---- requests of the control socket --------------------------------------------------------------------------

    async def handle(self, request: dict[str, Any]) -> Any:
        """`loop_options`, `loop_put` or `config_reload`."""
        match request["op"]:
            case "loop_options":
                return self._loop.model_dump(mode="json")
            case "loop_put":
                loop = parse_loop(request["loop"], type(self._loop))
                self._use(loop)
                self._loop = loop
                return None
            case "config_reload":
                if self._path is None:
                    raise FairlaneError(
                        ErrorCode.BAD_INPUT,
                        "the loop was started without a file: use `fairlane config apply FILE`, or start it with --config FILE",
                    )
                return await self.reload("asked for by `fairlane config reload`")
            case other:
                raise unknown_name("op", str(other), OPS)

    # ---- reading it again ----------------------------------------------------------------------------------------

    async def reload(self, why: str) -> dict[str, Any]:
        """Read the file and apply what differs; raises what is wrong, with everything as it was, after an event of it."""
        assert self._path is not None
        return await self._apply(lambda: read_file(self._path or Path()), why, "fairlane config reload")

    async def _apply(
        self, load: Callable[[], Loaded], why: str, command: str, *, waits: bool = False
    ) -> dict[str, Any]:
        """`waits`: it is tried again when a switch is away, so that is no refusal."""
        assert self._run is not None
        name = str(self._path or CONFIG)
        async with self._busy:
            asker = self._asker()
            token = own_loop.set((self._run.folder, asker) if asker is not None else None)
            try:
                loaded = load()
                name = loaded.source.name
                done = await apply(loaded, addressed(loaded, self._run), command)
            except FairlaneError as ex:
                if waits and ex.code in _AGAIN:
                    self._report_waiting(name, why, ex)
                    raise
                self._log.write(
                    "config_refused",
                    file=name,
                    code=ex.code.value,
                    message=ex.message,
                    why=f"{why}: refused, and what was in force stays: {ex.message}",
                )
                raise
            finally:
                own_loop.reset(token)
        self._waiting = ""
        count = sum(done.written.values())
        self._log.write(
            "config_applied",
            file=name,
            **done.to_json(),
            why=f"{why}: {counted(count, 'table entry')}, {counted(done.settings, 'setting')} of policies and {counted(done.ports, 'port')} differed",
        )
        return {"file": name, **done.to_json()}

    def _report_waiting(self, name: str, why: str, problem: FairlaneError) -> None:
        """Once for each reason."""
        if self._waiting != problem.message:
            self._waiting = problem.message
            text = f"{why}: waits, and is tried again: {problem.message}"
            self._log.write("config_waits", file=name, code=problem.code.value, message=problem.message, why=text)

    # ---- beside the agents ---------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Until cancelled: apply the file at the start, on SIGHUP, when it changes, and after a switch has restarted."""
        if self._run is None:
            await asyncio.Event().wait()
        running = asyncio.get_running_loop()
        if self._path is not None:
            with contextlib.suppress(NotImplementedError, ValueError):  # another thread's loop, in tests
                running.add_signal_handler(signal.SIGHUP, self._ask_for, "SIGHUP")
            self._ask_for("the loop has started")
        seen = before = self._stamp()
        failures = 0
        while True:
            pause_s = RETRY_S[min(failures, len(RETRY_S)) - 1] if failures else POLL_S
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause_s)
            now = self._stamp()
            if now is not None and now != seen and now == before:
                self._ask_for("the file has changed")
                seen = now
            before = now
            if not self._wake.is_set():
                continue
            if failures or self._asker() is None:
                await asyncio.sleep(pause_s)  # `wait` above has not paused
            if self._asker() is None:
                continue
            self._wake.clear()
            failures = 0 if await self._try() else failures + 1
            if failures:
                self._wake.set()

    async def _try(self) -> bool:
        """Whether that was all: False when it should be tried again, because a switch was away."""
        assert self._run is not None
        try:
            if self._path is not None:
                path = self._path
                await self._apply(lambda: read_file(path), self._why, "fairlane config reload", waits=True)
            elif read_applied(self._run.folder) is not None:
                folder = self._run.folder
                await self._apply(lambda: last_applied(folder), self._why, "fairlane config apply, again", waits=True)
        except FairlaneError as ex:
            return ex.code not in _AGAIN
        except Exception as ex:  # whatever a file can bring about, the loop goes on with what is in force
            message = f"an unforeseen fault: {type(ex).__name__}: {ex}"
            self._log.write(
                "config_refused",
                file=str(self._path or CONFIG),
                code=ErrorCode.INTERNAL.value,
                message=message,
                why=f"{self._why}: {message}; what was in force stays",
            )
        return True

    def _ask_for(self, why: str) -> None:
        self._why = why
        self._wake.set()

    def _on_event(self, event: str, fields: dict[str, Any]) -> None:
        """A switch that has restarted lacks what a set-up does not write: classes, limits by hand."""
        if event == "restored":
            self._ask_for(f"switch {fields.get('switch')} has restarted")

    def _stamp(self) -> Stamp | None:
        """Changes with every new version of the file, written in place or replaced; None while it is away."""
        if self._path is None:
            return None
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size
