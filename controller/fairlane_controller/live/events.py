# SPDX-License-Identifier: Apache-2.0
"""The end of an event log, followed: whole lines only, over rotations, with a bound on what is read at once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

FIRST_BYTES = 256 * 1024
"""How much of the log's end is read at first."""
STEP_BYTES = 4 * 1024 * 1024
"""At most so much a call afterwards."""


class EventTail:
    """`new()` gives the events that came since the last call; the first call gives the last `first` ones."""

    def __init__(self, path: Path | None, first: int = 200, first_bytes: int = FIRST_BYTES) -> None:
        self._path = path
        self._first: int | None = first
        self._first_bytes = first_bytes
        self._inode: int | None = None
        self._offset = 0
        self._rest = b""

    def new(self) -> list[dict[str, Any]]:
        """Events in their order; none where there is no log (yet). A line that is no JSON object is left out."""
        if self._path is None:
            return []
        try:
            with self._path.open("rb") as file:
                return self._read(file)
        except OSError:
            return []

    def _read(self, file: Any) -> list[dict[str, Any]]:
        status = os.fstat(file.fileno())
        first = self._first
        begins = self._inode is None
        if begins:
            self._offset = max(0, status.st_size - self._first_bytes)
        elif status.st_ino != self._inode or status.st_size < self._offset:
            self._offset, self._rest = 0, b""  # rotated, or a new run
        self._inode = status.st_ino
        file.seek(self._offset)
        data = cast("bytes", file.read(STEP_BYTES))
        started = self._offset
        self._offset += len(data)
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if begins and started > 0:
            lines = lines[1:]  # the first may be half a line
        found = [event for line in lines if (event := _parse(line)) is not None]
        if begins and first is not None:
            self._first = None
            return found[-first:] if first else []
        return found


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        value: Any = json.loads(line)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) and "event" in value else None


def place_of(event: dict[str, Any]) -> str:
    """`s1:3`, `s1:3 class 0`, `s1`, or nothing."""
    switch, port = event.get("switch"), event.get("port")
    place = f"{switch or ''}:{port}" if port is not None else str(switch or "")
    traffic_class = event.get("class", event.get("traffic_class"))
    if traffic_class:
        place += f" class {traffic_class}"
    if event.get("vc"):
        place += f" {event['vc']}"
    return place


def sentence_of(event: dict[str, Any]) -> str:
    """Why, in the event's own words; else what it carries, in short."""
    why = event.get("why") or event.get("message") or event.get("reason")
    if why:
        return str(why)
    left_out = {"time", "monotonic_ns", "event", "switch", "port", "class", "traffic_class", "vc", "dry_run"}
    parts = [f"{key} {_short(value)}" for key, value in event.items() if key not in left_out]
    return ", ".join(parts)[:300]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(", ", ": "), default=str)
    return text if len(text) <= 120 else f"{text[:117]}…"
