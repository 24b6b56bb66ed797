# SPDX-License-Identifier: Apache-2.0
"""Events and warnings of a running loop on standard error, beside the event log."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

ROOT = "fairlane_controller"
LOOP = logging.getLogger(f"{ROOT}.loop")
logging.getLogger(ROOT).addHandler(logging.NullHandler())
logging.getLogger(ROOT).propagate = False

_WARNINGS = ("error", "disconnected", "refused", "flow_refused", "flows_missed", "occupancy_corrected", "config_refused", "config_waits")  # fmt: skip


def log_event(event: str, fields: dict[str, Any], *, frequent: bool = False) -> None:
    """Log an event of the loop: what is wrong is a warning; what is frequent (each flow, each decision) is for the event log alone."""
    if event in _WARNINGS or not frequent:
        level = logging.WARNING if event in _WARNINGS else logging.INFO
        text = str(fields.get("why") or fields.get("message") or event)
        LOOP.log(level, text, extra={"fields": {"event": event, **fields}})


def warn(text: str) -> None:
    """A warning of a process: a line of its log, or, where it prints none, on standard error."""
    root = logging.getLogger(ROOT)
    if any(isinstance(handler.formatter, _Formatter) for handler in root.handlers):
        root.warning(text)
    else:
        print(f"fairlane: warning: {text}", file=sys.stderr)


@contextmanager
def printed(*, level: int = logging.WARNING) -> Generator[None]:
    """Print lines of at least a level of `logging`, while inside, to standard error."""
    handler, root = logging.StreamHandler(), logging.getLogger(ROOT)
    handler.setFormatter(_Formatter())
    root.addHandler(handler)
    root.setLevel(level)
    try:
        yield
    finally:
        root.removeHandler(handler)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time_utc = datetime.fromtimestamp(record.created, timezone.utc)
        timestamp = time_utc.isoformat(timespec="microseconds").replace("+00:00", "Z")
        given: dict[str, Any] = getattr(record, "fields", {})
        fields = {key: value for key, value in given.items() if key not in ("why", "message")}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = repr(record.exc_info[1])
        text = record.getMessage()
        shown = "".join(f" {key}={json.dumps(value, default=str)}" for key, value in fields.items())
        return f"{timestamp} {record.levelname:>7} {record.name}: {text}{shown}"
