# SPDX-License-Identifier: Apache-2.0
"""The end of an event log, followed: whole lines only, over rotations, with a bound on what is read at once."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

from fairlane_controller.errors import ErrorCode, FairlaneError, unknown_name
from fairlane_controller.state.files import unreadable
from fairlane_controller.units import parse_time

FIRST_BYTES = 256 * 1024
"""How much of the log's end is read at first."""
STEP_BYTES = 4 * 1024 * 1024
"""At most so much a call afterwards."""

Event = dict[str, Any]


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

    def new(self) -> list[Event]:
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

    def _rest_of_rotated(self, path: Path) -> tuple[list[Event], bool]:
        """What was still to be read of the file that is followed, when it was rotated; and whether that is all of it."""
        if self._inode is None or _inode(path) == self._inode:
            return [], True
        found: list[Event] = []
        with contextlib.suppress(OSError), path.with_name(path.name + ".1").open("rb") as file:
            if os.fstat(file.fileno()).st_ino == self._inode:
                found, whole = self._next(file)
                if not whole:
                    return found, False
        self._inode, self._offset, self._rest = None, 0, b""
        return found, True

    def _read(self, file: Any) -> list[Event]:
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

    def _next(self, file: Any, half: bool = False) -> tuple[list[Event], bool]:
        """The next events of a file, and whether that was its end; `half`: the first line may be a part of one."""
        file.seek(self._offset)
        data = cast("bytes", file.read(STEP_BYTES))
        self._offset += len(data)
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        found = [event for line in (lines[1:] if half else lines) if (event := _parse(line)) is not None]
        return found, len(data) < STEP_BYTES


def _inode(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return path.stat().st_ino
    return None


def _parse(line: bytes) -> Event | None:
    """The event of a line; None: it is none, or a line that is being written."""
    with contextlib.suppress(ValueError, RecursionError):
        value: Any = json.loads(line)
        return cast("Event", value) if isinstance(value, dict) and "event" in value else None
    return None


def place_of(event: Event) -> str:
    """`s1:3`, `s1:3 class 0`, `s1`, or nothing."""
    switch, port = event.get("switch"), event.get("port")
    place = f"{switch or ''}:{port}" if port is not None else str(switch or "")
    traffic_class = event.get("class", event.get("traffic_class"))
    if traffic_class:
        place += f" class {traffic_class}"
    return place


def sentence_of(event: Event) -> str:
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


_CLOCK = re.compile(r"^(\d{1,2}):(\d{2})(?::(\d{2}))?$")


@dataclass(frozen=True)
class EventFilter:
    """Which events; an empty field is any."""

    events: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    port: int | None = None
    object: str | None = None
    "The name of an object of a port, that an event names alone or in a list."
    since: datetime | None = None

    def takes(self, event: Event) -> bool:
        """Whether it is one of them; events of the whole topology have no switch and stay out when one is named."""
        return (
            (not self.events or event.get("event") in self.events)
            and (not self.switches or event.get("switch") in self.switches)
            and (self.port is None or event.get("port") == self.port)
            and (
                self.object is None
                or any(
                    value == self.object or (isinstance(value, list) and self.object in value)
                    for value in event.values()
                )
            )
            and (self.since is None or (_time(event) or self.since) >= self.since)
        )


def _time(event: Event) -> datetime | None:
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(str(event.get("time")))
    return None


def read_events(path: Path, wanted: EventFilter, last: int | None = None, *, check_names: bool = True) -> list[Event]:
    """The events of the log and of the file that it was rotated to, oldest first; `last` of them. No file: none.

    Raises UNKNOWN_NAME for an event that the log has none of, with the names that it has (unless it may come yet: not
    `check_names`); BAD_FILE when it cannot be read.
    """
    found: deque[Event] = deque(maxlen=last)
    names: set[str] = set()
    for event in _all(path):
        names.add(str(event["event"]))
        if wanted.takes(event):
            found.append(event)
    for name in wanted.events if check_names else ():
        if names and name not in names:
            raise unknown_name("event", name, names)
    return list(found)


def _all(path: Path) -> Iterator[Event]:
    for part in (path.with_name(path.name + ".1"), path):
        try:
            with part.open("rb") as file:
                yield from filter(None, map(_parse, file))
        except FileNotFoundError:
            continue
        except OSError as ex:
            raise unreadable(part, ex) from None


def parse_since(text: str, now: datetime | None = None) -> datetime:
    """`5m` or `90s` ago, `12:03` or `12:03:07` UTC (today, or yesterday when that is to come), or an ISO 8601 time."""
    now = now or datetime.now(timezone.utc)
    clock = _CLOCK.match(text.strip())
    try:
        if clock:
            at = now.replace(hour=int(clock[1]), minute=int(clock[2]), second=int(clock[3] or 0), microsecond=0)
            return at if at <= now else at - timedelta(days=1)
        if "-" in text:
            at = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
            return at if at.tzinfo else at.replace(tzinfo=timezone.utc)
    except ValueError as ex:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"--since {text!r}: {ex}") from None
    return now - timedelta(seconds=parse_time(text, "--since"))
