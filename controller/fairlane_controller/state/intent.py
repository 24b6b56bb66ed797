# SPDX-License-Identifier: Apache-2.0
"""A change that is being made. Before each of its parts is made, the journal has what takes it back, and the documents are as they are to be.

So whoever comes after a process that was killed can take the change back (`history/undo.py`): the lock's file names it until it has
ended (`state/locks.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from fairlane_controller.errors import FairlaneError
from fairlane_controller.state.locks import ChangeLock
from fairlane_controller.state.store import Store

Plain = dict[str, Any]


@dataclass
class Intent:
    """A change that is being made."""

    command: str = ""
    "As it was typed."
    lock: ChangeLock | None = None
    "None: there is no run-state folder, and nothing is recorded."
    undo: list[Plain] = field(default_factory=list[Plain])
    "What takes it back (`history/steps.py`), in the order in which it is applied."
    note: str = ""
    "What cannot be taken back, in words."
    of: int | None = None
    "The change that this one undoes."
    number: int | None = None
    "Of the journal, once something was announced."
    before: dict[str, Any] = field(default_factory=dict[str, Any])
    "Documents that it has replaced, as they were."
    _recorded: Plain | None = None
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    "Several switches are written at once."

    async def announce(
        self,
        undo: Sequence[Plain] = (),
        documents: Mapping[str, Any] | None = None,
        back: Mapping[str, Any] | None = None,
    ) -> None:
        """Write down what takes the next part back, and the documents as they are to be, in one transaction. Raises BAD_FILE.

        Args:
            undo: steps, each of which may be applied when its part is not made.
            documents: new values by name; None removes one. What they were is one more step of the undo.
            back: what the undo puts instead of what they were.
        """
        if self.lock is None:
            return
        documents, back = documents or {}, back or {}
        async with self._writing:
            with Store(self.lock.folder) as store:
                now = {name: store.get(name) for name in documents}
                new = {name: value for name, value in documents.items() if value != now[name]}
                self.before = {**{name: now[name] for name in new}, **self.before}
                put = {name: back.get(name, now[name]) for name in new}
                self.undo[:0] = [*undo, *([{"op": "put", "documents": put}] if put else [])]
                if self.undo:
                    await asyncio.to_thread(self._write, store, new)

    def _write(self, store: Store, documents: Mapping[str, Any]) -> None:
        assert self.lock is not None
        number, record = self.number or store.last_change + 1, self.record
        if self.number is None:
            self.lock.begin(number)
        try:
            store.record(number, record, documents)
        except FairlaneError:
            if self.number is None:  # nothing was begun
                self.lock.end()
            raise
        self.number, self._recorded = number, record

    @property
    def record(self) -> Plain:
        """As the journal has it."""
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        record: Plain = {"time": now, "command": self.command, "undo": list(self.undo)}
        return {**record, "of": self.of, "note": self.note}

    async def keep(self, documents: Mapping[str, Any] | None = None) -> None:
        """The change was made: the journal has it, unless it has neither an undo nor a note; and `documents` are put. Raises BAD_FILE."""
        if self.lock is None:
            return
        has_content = bool(self.undo or self.note) or self.of is not None
        recorded = self._recorded or {}
        if has_content and (documents or recorded.get("undo") != self.undo or recorded.get("note") != self.note):
            with Store(self.lock.folder) as store:
                await asyncio.to_thread(self._write, store, documents or {})
        elif not has_content and self.number is not None:
            await self.forget()
        self.lock.end()

    async def forget(self) -> None:
        """The change was taken back: the journal has not got it, and the documents are as they were. Raises BAD_FILE."""
        if self.lock is not None and self.number is not None:
            with Store(self.lock.folder) as store:
                await asyncio.to_thread(store.forget, self.number, self.before)
            self.lock.end()


making: ContextVar[Intent | None] = ContextVar("making", default=None)
"""The change that is being made here; None outside of one, and while one is taken back."""


@contextmanager
def announced() -> Generator[None]:
    """Inside, nothing is announced: what takes it back is written already."""
    token = making.set(None)
    try:
        yield
    finally:
        making.reset(token)


async def announce(
    undo: Sequence[Plain], documents: Mapping[str, Any] | None = None, back: Mapping[str, Any] | None = None
) -> None:
    """`Intent.announce` of the change that is being made, if one is."""
    intent = making.get()
    if intent is not None:
        await intent.announce(undo, documents, back)
