# SPDX-License-Identifier: Apache-2.0
"""The file `history.jsonl` of a run-state folder: one change a line, oldest first, bounded, written by one process at a time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.files import replace_atomically
from fairlane_controller.state.locks import take_lock

HISTORY_FILE = "history.jsonl"
HISTORY_LOCK_FILE = "history.lock"
MAX_RECORDS = 100
"""Older changes are forgotten,"""
MAX_BYTES = 8 * 1024 * 1024
"""and so are those beyond this size; the newest always stays."""
LOCK_TIMEOUT_S = 30.0
_RETRY_S = 0.02

Request = dict[str, Any]


class Record(BaseModel):
    """One change that was made."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: int = Field(ge=1)
    time: str
    "ISO 8601, UTC."
    command: str
    "As it was typed."
    kind: Literal["change", "undo", "redo"] = "change"
    undo: tuple[Request, ...] = ()
    "Requests that take it back, in the order in which they are applied; none: it cannot be undone."
    of: int | None = None
    "The change that this one undid or made again."
    undone: bool = False
    note: str = ""
    "What cannot be taken back, in words."


@dataclass
class Change:
    """A change that is being made; the caller says how it is undone."""

    undo: list[Request] = field(default_factory=lambda: list[Request]())
    note: str = ""
    recorded: Record | None = None
    "Set when it ended well and there was something to record."


def read_history(folder: Path) -> list[Record]:
    """The changes that are kept, oldest first; BAD_FILE, with the line, when the file cannot be understood."""
    path = folder / HISTORY_FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"cannot read {path}: {ex}") from None
    records: list[Record] = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(Record.model_validate(json.loads(line)))
        except (ValueError, ValidationError):
            raise FairlaneError(
                ErrorCode.BAD_FILE, f"{path}, line {number}: no change of a history; remove the line, or the file"
            ) from None
    return records


def write_history(folder: Path, records: list[Record]) -> None:
    """Replace the file in one step with the newest of `records`; the caller has the lock. Raises BAD_FILE."""
    lines = [json.dumps(record.model_dump(mode="json", exclude_defaults=True)) + "\n" for record in records]
    kept, size = 0, 0
    for line in reversed(lines[-MAX_RECORDS:]):
        size += len(line)
        if kept and size > MAX_BYTES:
            break
        kept += 1
    path = folder / HISTORY_FILE
    try:
        replace_atomically(path, "".join(lines[len(lines) - kept :]))
    except OSError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"cannot write {path}: {ex.strerror}") from None


def append(folder: Path, command: str, change: Change, kind: Literal["change", "undo", "redo"] = "change", of: int | None = None) -> Record:  # fmt: skip
    """Add a change behind the others; the caller has the lock."""
    records = read_history(folder)
    number = records[-1].id + 1 if records else 1
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    made = Record(id=number, time=now, command=command, kind=kind, undo=tuple(change.undo), of=of, note=change.note)
    if of is not None:
        records = [one.model_copy(update={"undone": True}) if one.id == of else one for one in records]
    write_history(folder, [*records, made])
    change.recorded = made
    return made


def record(folder: Path | None, command: str, undo: list[Request], note: str = "") -> Record | None:
    """Record a change that was made; None without a folder. Raises TIMED_OUT, BAD_FILE."""
    if folder is None:
        return None
    with _locked(folder):
        return append(folder, command, Change(list(undo), note))


@asynccontextmanager
async def changing(folder: Path | None, command: str) -> AsyncGenerator[Change]:
    """One change by hand at a time: the body makes it and says its undo, and then it is recorded.

    Nothing is recorded when the body raises, or when it leaves neither an undo nor a note, or without a folder.
    Raises TIMED_OUT when another change takes 30 s.
    """
    change = Change()
    if folder is None:
        yield change
        return
    async with locked(folder):
        yield change
        if change.undo or change.note:
            append(folder, command, change)


@asynccontextmanager
async def locked(folder: Path) -> AsyncGenerator[None]:
    """The lock of a folder's changes; TIMED_OUT when another one takes 30 s."""
    end = time.monotonic() + LOCK_TIMEOUT_S
    while (file := take_lock(folder, HISTORY_LOCK_FILE)) is None:
        if time.monotonic() > end:
            raise _busy(folder)
        await asyncio.sleep(_RETRY_S)
    try:
        yield
    finally:
        file.close()


@contextmanager
def _locked(folder: Path) -> Generator[None, None, None]:
    end = time.monotonic() + LOCK_TIMEOUT_S
    while (file := take_lock(folder, HISTORY_LOCK_FILE)) is None:
        if time.monotonic() > end:
            raise _busy(folder)
        time.sleep(_RETRY_S)
    try:
        yield
    finally:
        file.close()


def _busy(folder: Path) -> FairlaneError:
    return FairlaneError(ErrorCode.TIMED_OUT, f"another change of {folder} did not end within {LOCK_TIMEOUT_S:g} s")
