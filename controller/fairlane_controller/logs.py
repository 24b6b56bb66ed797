# SPDX-License-Identifier: Apache-2.0
"""What a running loop says on standard error: events and warnings as lines for people or as JSON, beside the event log.

The keys are those of `fairlane-switch --log-format json`: timestamp, level, target (where), message, and the fields.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime, timezone
from enum import Enum
from typing import Any, TextIO, cast

ROOT = "fairlane_controller"
LOOP = logging.getLogger(f"{ROOT}.loop")
logging.getLogger(ROOT).addHandler(logging.NullHandler())
logging.getLogger(ROOT).propagate = False

_WARNINGS = (
    "error",
    "disconnected",
    "refused",
    "flow_refused",
    "flows_missed",
    "occupancy_corrected",
    "config_refused",
    "config_waits",
)
_FIELDS = "fields_of_the_event"
WARN_EVERY_S = 10.0
"""Of a warning that repeats."""


class LogFormat(str, Enum):
    """The form of a line."""

    TEXT = "text"
    JSON = "json"


class LogLevel(str, Enum):
    """The least severe lines that are printed."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def log_event(event: str, fields: dict[str, Any], *, frequent: bool = False) -> None:
    """Log an event of the loop: what is wrong is a warning, what is frequent (each flow, each decision) is for debugging."""
    level = logging.WARNING if event in _WARNINGS else logging.DEBUG if frequent else logging.INFO
    if LOOP.isEnabledFor(level):
        LOOP.log(
            level, str(fields.get("why") or fields.get("message") or event), extra={_FIELDS: {"event": event, **fields}}
        )


def warn(text: str) -> None:
    """A warning of a process: a line of its log, or, where it prints none, on standard error."""
    root = logging.getLogger(ROOT)
    if any(isinstance(handler.formatter, (_TextFormatter, _JsonFormatter)) for handler in root.handlers):
        root.warning(text)
    else:
        print(f"fairlane: warning: {text}", file=sys.stderr)


class RateLimitedLog:
    """Warns in `log`; a warning that repeats comes at most every `WARN_EVERY_S`, with the number of repetitions that were left out."""

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._last_s: dict[str, float] = {}
        self._left_out: Counter[str] = Counter()

    def __call__(self, kind: str, text: str) -> None:
        """Warn of `text`, which repeats what was said of the same `kind`."""
        now_s = self._clock()
        if now_s - self._last_s.get(kind, -WARN_EVERY_S) < WARN_EVERY_S:
            self._left_out[kind] += 1
            return
        self._last_s[kind] = now_s
        left_out = self._left_out.pop(kind, 0)
        self._log.warning("%s%s", text, f" ({left_out} more since the last line)" if left_out else "")


@contextmanager
def printed(
    form: LogFormat = LogFormat.TEXT, level: LogLevel = LogLevel.WARNING, stream: TextIO | None = None
) -> Generator[None]:
    """Print lines, while inside, to standard error or `stream`; finsy's own lines too when debugging."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonFormatter() if form is LogFormat.JSON else _TextFormatter())
    root = logging.getLogger(ROOT)
    names = [ROOT, "finsy"] if level is LogLevel.DEBUG else [ROOT]
    for name in names:
        logging.getLogger(name).addHandler(handler)
    root.setLevel(level.value.upper())
    try:
        yield
    finally:
        for name in names:
            logging.getLogger(name).removeHandler(handler)


def _parts(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    timestamp = (
        datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
    )
    fields = cast("dict[str, Any]", getattr(record, _FIELDS, {}))
    shown = {key: value for key, value in fields.items() if key not in ("why", "message")}
    if record.exc_info and record.exc_info[1] is not None:
        shown["error"] = repr(record.exc_info[1])
    return timestamp, shown


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        timestamp, fields = _parts(record)
        shown = "".join(f" {key}={json.dumps(value, default=str)}" for key, value in fields.items())
        return f"{timestamp} {record.levelname:>7} {record.name}: {record.getMessage()}{shown}"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        timestamp, fields = _parts(record)
        own = {"timestamp": timestamp, "level": record.levelname, "target": record.name, "message": record.getMessage()}
        # Fields that have the name of one of those keep theirs with a mark behind it.
        more = {f"{key}_" if key in own else key: value for key, value in fields.items()}
        return json.dumps({**own, **more}, default=str)
