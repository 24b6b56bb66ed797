# SPDX-License-Identifier: Apache-2.0
"""The end of an event log, followed: whole lines only, over rotations, with a bound on what is read at once."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, cast

FIRST_BYTES = 256 * 1024
"""How much of the log's end is read at first."""
STEP_BYTES = 4 * 1024 * 1024
"""At most so much a call afterwards."""


class EventTail:
    """`new()` gives the events that came since the last call; the first call that finds a log gives its last `first` ones."""

    def __init__(self, path: Path | None, first: int = 200, first_bytes: int = FIRST_BYTES) -> None:
        self._path = path
        self._first: int | None = first
        "None when that was done."
        self._first_bytes = first_bytes
        self._inode: int | None = None
        "Of the file that is followed; None: of none yet."
        self._offset = 0
        self._rest = b""

    def new(self) -> list[dict[str, Any]]:
        """Events in their order; none where there is no log (yet). A line that is no JSON object is left out."""
        if self._path is None:
            return []
        found, whole = self._rest_of_rotated(self._path)
        if not whole:
            return found
        try:
            with self._path.open("rb") as file:
                return found + self._read(file)
        except FileNotFoundError:
            if self._first == 0:
                self._first = None  # there was nothing to leave out: what comes is new
        except OSError:
            pass
        return found

    def _rest_of_rotated(self, path: Path) -> tuple[list[dict[str, Any]], bool]:
        """What was still to be read of the file that is followed, when it was rotated; and whether that is all of it."""
        if self._inode is None or _inode(path) == self._inode:
            return [], True
        found: list[dict[str, Any]] = []
        with contextlib.suppress(OSError), path.with_name(path.name + ".1").open("rb") as file:
            if os.fstat(file.fileno()).st_ino == self._inode:
                found, whole = self._next(file)
                if not whole:
                    return found, False
        self._inode, self._offset, self._rest = None, 0, b""
        return found, True

    def _read(self, file: Any) -> list[dict[str, Any]]:
        status = os.fstat(file.fileno())
        first, self._first = self._first, None
        if first is not None:
            self._offset = max(0, status.st_size - self._first_bytes)
        elif self._inode is not None and status.st_ino != self._inode:
            return []  # rotated just now: the next call reads the rest of the old one first
        elif status.st_size < self._offset:
            self._offset, self._rest = 0, b""  # a new run
        self._inode = status.st_ino
        half = first is not None and self._offset > 0
        found, _ = self._next(file, half)
        return found if first is None else found[-first:] if first else []

    def _next(self, file: Any, half: bool = False) -> tuple[list[dict[str, Any]], bool]:
        """The next events of a file, and whether that was its end; `half`: the first line may be a part of one."""
        file.seek(self._offset)
        data = cast("bytes", file.read(STEP_BYTES))
        self._offset += len(data)
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        found = [event for line in (lines[1:] if half else lines) if (event := _parse(line)) is not None]
        return found, len(data) < STEP_BYTES


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) and "event" in value else None


def place_of(event: dict[str, Any]) -> str:
    """`s1:3`, `s1:3 class 0`, `s1`, or nothing."""
    switch, port = event.get("switch"), event.get("port")
    place = f"{switch or ''}:{port}" if port is not None else str(switch or "")
    traffic_class = event.get("class", event.get("traffic_class"))
    if traffic_class:
        place += f" class {traffic_class}"
    return place


def sentence_of(event: dict[str, Any]) -> str:
    """Why, in the event's own words; else what it carries, in short."""
    why = event.get("why") or event.get("message") or event.get("reason")
    if why:
        return str(why)
    left_out = {"time", "monotonic_ns", "event", "switch", "port", "class", "traffic_class", "dry_run"}
    parts = [f"{key} {_short(value)}" for key, value in event.items() if key not in left_out]
    return ", ".join(parts)[:300]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(", ", ": "), default=str)
    return text if len(text) <= 120 else f"{text[:117]}…"
