# SPDX-License-Identifier: Apache-2.0
"""The event log of a control loop, read from its end or as a whole: whole lines only, over rotations, so much at once."""

from __future__ import annotations

import contextlib
import json
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from fairlane_controller.documents import inode_of, is_table
from fairlane_controller.errors import unknown_name
from fairlane_controller.state.files import unreadable

FIRST_BYTES = 256 * 1024
"""How much of the log's end is read at first."""
STEP_BYTES = 4 * 1024 * 1024
"""What one call reads at most."""

Event = dict[str, Any]


class EventTail:
    """`new()` gives the events that came since the last call; the first call that finds a log gives its last `first` ones.

    The open file is read to its end before the one that has taken its name, so a rotation loses nothing.
    """

    def __init__(self, path: Path | None, first: int = 200) -> None:
        self._path = path
        self._first = first
        self._file: BinaryIO | None = None
        self._rest = b""

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def new(self) -> list[Event]:
        """Events in their order; none where there is no log (yet). A line that is no JSON object is left out."""
        if self._path is None:
            return []
        with contextlib.suppress(OSError):
            if self._file is None:
                return self._begin(self._path)
            follows = inode_of(self._path)
            found, ended = self._next(self._file)
            if ended and follows not in (None, os.fstat(self._file.fileno()).st_ino):
                self._file.close()
                self._file, self._rest = self._path.open("rb"), b""
                found += self._next(self._file)[0]
            return found
        return []

    def _begin(self, path: Path) -> list[Event]:
        first, self._first = self._first, self._first or 1 << 62  # a log that begins later is new as a whole
        self._file = path.open("rb")
        if size := max(0, os.fstat(self._file.fileno()).st_size - (FIRST_BYTES if first else 0)):
            self._file.seek(size - 1)
            self._file.readline()  # the rest of a line, unless it is one's end
        return self._next(self._file)[0][-self._first :]

    def _next(self, file: BinaryIO) -> tuple[list[Event], bool]:
        """The next events of a file, and whether that was its end."""
        if os.fstat(file.fileno()).st_size < file.tell():
            file.seek(0)  # it was emptied: a new run
            self._rest = b""
        data = file.read(STEP_BYTES)
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        return [event for line in lines if (event := _parse(line)) is not None], len(data) < STEP_BYTES


def _parse(line: bytes) -> Event | None:
    """The event of a line; None: it is none, or a line that is being written."""
    with contextlib.suppress(ValueError, RecursionError):
        value: Any = json.loads(line)
        return value if is_table(value) and "event" in value else None
    return None


def place_of(event: Event) -> str:
    """`s1:3`, `s1:3 class 0`, `s1`, or nothing."""
    switch, port = str(event.get("switch") or ""), event.get("port")
    traffic_class = event.get("class", event.get("traffic_class"))
    return (f"{switch}:{port}" if port is not None else switch) + (f" class {traffic_class}" if traffic_class else "")


def sentence_of(event: Event) -> str:
    """Why, in the event's own words; else its fields, in short."""
    why = event.get("why") or event.get("message") or event.get("reason")
    if why:
        return str(why)
    left_out = {"time", "monotonic_ns", "event", "switch", "port", "class", "traffic_class", "dry_run"}
    texts = {key: value if isinstance(value, str) else json.dumps(value, default=str) for key, value in event.items()}
    return ", ".join(f"{key} {text}" for key, text in texts.items() if key not in left_out)[:300]


def line_of(event: Event) -> str:
    """Time (UTC), place, event and why, in columns."""
    dry = "(dry run) " if event.get("dry_run") else ""
    return f"{str(event.get('time', ''))[11:19]} {place_of(event):<6} {event['event']:<14} {dry}{sentence_of(event)}"


@dataclass(frozen=True)
class EventFilter:
    """Which events; an empty field is any."""

    events: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    port: int | None = None

    def takes(self, event: Event) -> bool:
        """Whether it is one of them; events of the whole topology have no switch and stay out when one is named."""
        return (
            (not self.events or event.get("event") in self.events)
            and (not self.switches or event.get("switch") in self.switches)
            and (self.port is None or event.get("port") == self.port)
        )


def read_events(path: Path, wanted: EventFilter, last: int | None = None, *, check_names: bool = True) -> list[Event]:
    """The events of the log and of the file that it was rotated to, oldest first.

    Args:
        path: The log; no file: no events.
        wanted: Which of them.
        last: So many at most; None: all.
        check_names: Refuse an event that the log has none of; no: it may come yet.

    Raises:
        FairlaneError: UNKNOWN_NAME for such an event, with the names that there are; BAD_FILE: the log cannot be read.
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
