# SPDX-License-Identifier: Apache-2.0
"""The file `history.jsonl` of a run-state folder: one change a line, oldest first, bounded, written by one process at a time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairlane_controller.documents import parse_json
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.files import Replacement, text_of
from fairlane_controller.state.locks import take_lock

HISTORY_FILE = "history.jsonl"
HISTORY_LOCK_FILE = "history.lock"
MAX_RECORDS = 100
"""Older changes are forgotten,"""
MAX_BYTES = 8 * 1024 * 1024
"""and so are those beyond this size; the newest always stays."""
LOCK_TIMEOUT_S = 30.0
ROOM_BYTES = 64 * 1024
"""What a change may add to the file; more is written too, as far as the disk has room."""
_RETRY_S = 0.02

Request = dict[str, Any]
Kind = Literal["change", "undo", "redo"]


class Record(BaseModel):
    """One change that was made."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: int = Field(ge=1)
    time: str
    "ISO 8601, UTC."
    command: str
    "As it was typed."
    kind: Kind = "change"
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
        lines = text_of(path).splitlines()
    except FileNotFoundError:
        return []
    records: list[Record] = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(Record.model_validate(parse_json(line)))
        except (ValueError, ValidationError):
            raise FairlaneError(
                ErrorCode.BAD_FILE, f"{path}, line {number}: no change of a history; remove the line, or the file"
            ) from None
    return records


class Journal:
    """The file, read, with room for one more change taken on the disk; a context manager, whose caller has the lock.

    So a change is refused before it is made when it could not be kept. The room is also what a change needs that is taken
    back (`give_room_back`): the other files of the folder, once more. Raises BAD_FILE.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records = read_history(folder)
        self._path = folder / HISTORY_FILE
        try:
            kept = [path.stat().st_size for path in (self._path, *folder.glob("*.json")) if path.is_file()]
            self._file = Replacement(self._path, sum(kept) + ROOM_BYTES)
        except OSError as ex:
            raise FairlaneError(
                ErrorCode.BAD_FILE, f"cannot write {self._path}: {ex.strerror}; nothing was changed"
            ) from None

    def append(self, command: str, change: Change, kind: Kind = "change", of: int | None = None) -> Record:
        """Add a change behind the others, once. Raises BAD_FILE."""
        number = self.records[-1].id + 1 if self.records else 1
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        made = Record(id=number, time=now, command=command, kind=kind, undo=tuple(change.undo), of=of, note=change.note)
        before = [one.model_copy(update={"undone": True}) if one.id == of else one for one in self.records]
        try:
            self._file.put(_newest([*before, made]))
            self._file.commit()
        except OSError as ex:
            raise FairlaneError(ErrorCode.BAD_FILE, f"cannot write {self._path}: {ex.strerror}") from None
        change.recorded = made
        return made

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _newest(records: list[Record]) -> str:
    """The newest of them that the file keeps, as its text."""
    lines = [json.dumps(record.model_dump(mode="json", exclude_defaults=True)) + "\n" for record in records]
    kept, size = 0, 0
    for line in reversed(lines[-MAX_RECORDS:]):
        size += len(line)
        if kept and size > MAX_BYTES:
            break
        kept += 1
    return "".join(lines[len(lines) - kept :])


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


def _busy(folder: Path) -> FairlaneError:
    return FairlaneError(ErrorCode.TIMED_OUT, f"another change of {folder} did not end within {LOCK_TIMEOUT_S:g} s")
