# SPDX-License-Identifier: Apache-2.0
"""The journal of a run-state folder: the changes that were made by hand, oldest first, bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.intent import INTENT, Intent
from fairlane_controller.state.store import Documents, Store

Request = dict[str, Any]
Kind = Literal["change", "undo", "redo", "elsewhere"]
"""`elsewhere`: a change of something that no undo takes back (a link, a host); recorded so that `undo` can say that it passes over it."""


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


@dataclass
class Change(Intent):
    """A change that is being made; the caller says how it is undone."""

    undo: list[Request] = field(default_factory=lambda: list[Request]())
    note: str = ""
    kind: Kind = "change"
    of: int | None = None
    "The change that this one undoes or makes again."
    recorded: Record | None = None
    "Set when it ended well and there was something to record."


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


def append(folder: Path, change: Change) -> None:
    """Add a change behind the others. Raises BAD_FILE."""
    with Store(folder) as store:
        record(store, change)


def record(store: Store, change: Change, documents: Documents | None = None) -> None:
    """As `append`, and put documents in the same transaction."""
    before = _records(store)
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    number = before[-1].id + 1 if before else 1
    made = Record(id=number, time=now, command=change.command, kind=change.kind, undo=tuple(change.undo), of=change.of, note=change.note)  # fmt: skip
    undone = [one.model_copy(update={"undone": True}) for one in before if one.id == change.of]
    store.record({one.id: one.to_json() for one in (*undone, made)}, {**(documents or {}), INTENT: None})
    change.recorded = made
