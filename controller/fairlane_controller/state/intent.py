# SPDX-License-Identifier: Apache-2.0
"""What takes a change back, written down before each of its parts is made: so whoever comes after a process that was killed can do it.

Every writer says it here: `switch/changeset.py` for table entries, and who writes something else for that. A loop that is asked by a
command adds to the command's intent. `history/undo.py` ends it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from fairlane_controller.state.store import Store

INTENT = "change"
"""The document: `{"id", "command", "undo": [request, …], "whole"}`."""


@dataclass
class Intent:
    """A change that is being made."""

    command: str = ""
    "As it was typed."
    folder: Path | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    "Of its requests to the loop (`state/ask.py`)."
    announced: list[dict[str, Any]] = field(default_factory=lambda: list[dict[str, Any]]())
    "What this process has announced, in the order in which it is taken back."

    async def announce(self, undo: Sequence[dict[str, Any]], *, whole: bool = False) -> None:
        """Write down what takes the next part back. Raises BAD_FILE.

        Args:
            undo: requests of the history, in the order in which they are applied; each may be applied when its part is not made.
            whole: they take all of the change back, and the loop makes it by one request: when it has, the change is made.
        """
        self.announced[:0] = undo
        if self.folder is None or not undo:
            return

        def add(before: Any) -> dict[str, Any]:
            known = cast("dict[str, Any]", before if isinstance(before, dict) else {})
            earlier: list[Any] = known["undo"] if known.get("id") == self.id else []
            return {"id": self.id, "command": self.command, "undo": [*undo, *earlier], "whole": whole}

        with Store(self.folder) as store:
            await asyncio.to_thread(store.update, INTENT, add)

    async def end(self) -> None:
        """It was made and recorded, or taken back."""
        if self.folder is not None:
            with Store(self.folder) as store:
                if store.get(INTENT) is not None:
                    await asyncio.to_thread(store.put, {INTENT: None})


making: ContextVar[Intent | None] = ContextVar("making", default=None)
"""The change that is being made here; None outside of one, and while one is taken back."""


@contextmanager
def taking_back() -> Generator[None]:
    """Inside, nothing is announced: what takes all of it back is written already, and the disk may be full."""
    token = making.set(None)
    try:
        yield
    finally:
        making.reset(token)


async def announce(undo: Sequence[dict[str, Any]]) -> None:
    """`Intent.announce` of the change that is being made, if one is."""
    intent = making.get()
    if intent is not None:
        await intent.announce(undo)
