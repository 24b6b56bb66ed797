# SPDX-License-Identifier: Apache-2.0
"""The journal of a run-state folder: the changes that were made by hand, oldest first, bounded."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.store import Documents, Store

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

    def to_json(self) -> dict[str, Any]:
        """Plain data, as the journal has it."""
        return self.model_dump(mode="json", exclude_defaults=True)


INTENT = "change"
"""The document of the change that is being made: what takes it back, for whoever comes when its maker has not ended it."""


@dataclass
class Change:
    """A change that is being made; the caller says how it is undone."""

    command: str = ""
    folder: Path | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    "Of its requests to the loop (`state/ask.py`)."
    undo: list[Request] = field(default_factory=lambda: list[Request]())
    note: str = ""
    recorded: Record | None = None
    "Set when it ended well and there was something to record."

    async def begin(self, undo: Sequence[Request]) -> None:
        """Write down, before more is done, what takes all of it back. Raises BAD_FILE."""
        if self.folder is not None:
            intent = {"id": self.id, "command": self.command, "undo": list(undo)}
            with Store(self.folder) as store:
                await asyncio.to_thread(store.put, {INTENT: intent})

    async def end(self) -> None:
        """It was made and recorded, or taken back."""
        if self.folder is not None:
            with Store(self.folder) as store:
                if store.get(INTENT) is not None:
                    await asyncio.to_thread(store.put, {INTENT: None})


def read_history(folder: Path) -> list[Record]:
    """The changes that are kept, oldest first; BAD_FILE, with the change, when they cannot be understood."""
    with Store(folder) as store:
        return _records(store)


def _records(store: Store) -> list[Record]:
    records: list[Record] = []
    for number, row in store.journal():
        try:
            data = cast("Mapping[str, Any]", row if isinstance(row, Mapping) else {})
            records.append(Record.model_validate({**data, "id": number}))
        except ValidationError:
            raise FairlaneError(
                ErrorCode.BAD_FILE, f"{store.path}: journal: change {number}: no change of a journal"
            ) from None
    return records


def append(folder: Path, command: str, change: Change, kind: Kind = "change", of: int | None = None) -> None:
    """Add a change behind the others. Raises BAD_FILE."""
    with Store(folder) as store:
        record(store, command, change, kind, of)


def record(
    store: Store,
    command: str,
    change: Change,
    kind: Kind = "change",
    of: int | None = None,
    documents: Documents | None = None,
) -> None:
    """As `append`, and put documents in the same transaction."""
    before = _records(store)
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    number = before[-1].id + 1 if before else 1
    made = Record(id=number, time=now, command=command, kind=kind, undo=tuple(change.undo), of=of, note=change.note)
    undone = [one.model_copy(update={"undone": True}) for one in before if one.id == of]
    store.record({one.id: one.to_json() for one in (*undone, made)}, {**(documents or {}), INTENT: None})
    change.recorded = made
