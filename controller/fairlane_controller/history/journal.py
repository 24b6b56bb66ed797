# SPDX-License-Identifier: Apache-2.0
"""The journal of a run-state folder: the changes that were made by hand, oldest first, bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.intent import Kind, Plain
from fairlane_controller.state.store import Store


class Record(BaseModel):
    """One change that was made."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: int = Field(ge=1)
    time: str
    "ISO 8601, UTC."
    command: str
    "As it was typed."
    kind: Kind = "change"
    undo: tuple[Plain, ...] = ()
    "Steps that take it back (`steps.py`), in the order in which they are applied; none: it cannot be undone."
    of: int | None = None
    "The change that this one undid or made again."
    undone: bool = False
    "Whether a newer change undid it, or made it again."
    note: str = ""
    "What cannot be taken back, in words."


def read_history(folder: Path) -> list[Record]:
    """The changes that the journal has, oldest first.

    Raises:
        FairlaneError: BAD_FILE, with the change, when one cannot be understood.
    """
    with Store(folder) as store:
        rows = store.journal()
    undone: set[Any] = {cast("Plain", row).get("of") for _, row in rows if isinstance(row, dict)}
    records: list[Record] = []
    for number, row in rows:
        try:
            records.append(Record.model_validate({**row, "id": number, "undone": number in undone}))
        except (TypeError, ValidationError):
            problem = f"{store.path}: journal: change {number}: no change of a journal"
            raise FairlaneError(ErrorCode.BAD_FILE, problem) from None
    return records
