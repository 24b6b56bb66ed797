# SPDX-License-Identifier: Apache-2.0
"""The journal of a run-state folder: the changes that were made by hand, oldest first, bounded."""

from __future__ import annotations

from collections.abc import Mapping
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
    """The changes that are kept, oldest first; BAD_FILE, with the change, when they cannot be understood."""
    with Store(folder) as store:
        rows = store.journal()
    records: list[Record] = []
    for number, row in rows:
        try:
            data = cast("Mapping[str, Any]", row if isinstance(row, Mapping) else {})
            records.append(Record.model_validate({**data, "id": number}))
        except ValidationError:
            problem = f"{store.path}: journal: change {number}: no change of a journal"
            raise FairlaneError(ErrorCode.BAD_FILE, problem) from None
    undone = {one.of for one in records}
    return [one.model_copy(update={"undone": one.id in undone}) for one in records]
