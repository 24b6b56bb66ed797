# SPDX-License-Identifier: Apache-2.0
"""The event log: one JSON object a line, for every decision with its inputs; kept below a size."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Collection
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TextIO

from fairlane_controller.logs import log_event
from fairlane_controller.state.run_state import RunState

EVENTS_FILE = "controller-events.jsonl"
MAX_BYTES = 16 * 1024 * 1024


def log_of(run: RunState | None) -> Path | None:
    """The event log of a topology; None without one."""
    return run.folder / EVENTS_FILE if run else None


class EventLog:
    """Appends to `path`; when the file is full it becomes `<path>.1` and a new one begins. None: nowhere."""

    def __init__(
        self,
        path: Path | None,
        max_bytes: int = MAX_BYTES,
        frequent: Collection[str] = (),
        *,
        dry_run: bool = False,
    ) -> None:
        """Open nothing yet.

        Args:
            path: the file; None: nowhere.
            max_bytes: its size.
            frequent: events that are lines for debugging (`Program.frequent_events`).
            dry_run: every event says that it is one of a dry run, and the file, which another loop may write, stays.
        """
        self._path = path
        self._max_bytes = max_bytes
        self._frequent = frequent
        self._dry_run = dry_run
        self._file: TextIO | None = None
        self.listeners: list[Callable[[str, dict[str, Any]], None]] = []
        "Called with each event and its fields."
        self.lost = 0
        "Events that could not be written (disk full); the loop goes on."

    def write(self, event: str, **fields: Any) -> None:
        """One event; `event` is its stable name."""
        if self._dry_run:
            fields["dry_run"] = True
        for listener in self.listeners:
            listener(event, fields)
        log_event(event, fields, frequent=event in self._frequent)
        if self._path is None:
            return
        record = {
            "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "monotonic_ns": time.monotonic_ns(),
            "event": event,
            **fields,
        }
        try:
            if self._file is not None and self._file.tell() > self._max_bytes and not self._dry_run:
                self._turn_over(self._path, self._file)
            if self._file is None:
                self._file = self._path.open("a", encoding="utf-8")
            self._file.write(json.dumps(record, default=str) + "\n")
            self._file.flush()
        except OSError:
            self.lost += 1

    def _turn_over(self, path: Path, full: TextIO) -> None:
        """The full file becomes `<path>.1`, unless another process that writes here (the primary, its backup) has done so already."""
        self._file = None
        with full:
            still_there = path.exists() and os.path.samestat(os.fstat(full.fileno()), path.stat())
        if still_there:
            path.replace(path.with_name(path.name + ".1"))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk: what was not written is lost, and counted
                self._file.close()
            self._file = None


def write_event(folder: Path, event: str, **fields: Any) -> None:
    """One event into the log of a run-state folder, by who has it not open."""
    log = EventLog(folder / EVENTS_FILE)
    log.write(event, **fields)
    log.close()
