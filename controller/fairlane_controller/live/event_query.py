# SPDX-License-Identifier: Apache-2.0
"""Questions to a whole event log: since when, which events, where; the rotated file is part of it."""

from __future__ import annotations

import json
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

_CLOCK = re.compile(r"^(\d{1,2}):(\d{2})(?::(\d{2}))?$")

Event = dict[str, Any]


@dataclass(frozen=True)
class EventFilter:
    """Which events; an empty field is any."""

    events: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    port: int | None = None
    object: str | None = None
    "The name of an object of a port, such as a VC, that an event names alone or in a list."
    since: datetime | None = None

    def takes(self, event: Event) -> bool:
        """Whether it is one of them; events of the whole topology have no switch and stay out when one is named."""
        if self.events and event.get("event") not in self.events:
            return False
        if self.switches and event.get("switch") not in self.switches:
            return False
        if self.port is not None and event.get("port") != self.port:
            return False
        if self.object is not None and not any(self.object in _names(value) for value in event.values()):
            return False
        return self.since is None or (_time(event) or self.since) >= self.since


def _names(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _time(event: Event) -> datetime | None:
    try:
        return datetime.fromisoformat(str(event.get("time")))
    except ValueError:
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
            with part.open(encoding="utf-8", errors="replace") as file:
                for line in file:
                    try:
                        value: Any = json.loads(line)
                    except (ValueError, RecursionError):
                        continue  # the last line, while it is being written
                    if isinstance(value, dict) and "event" in value:
                        yield cast("Event", value)
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
