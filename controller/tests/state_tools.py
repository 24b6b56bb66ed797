# SPDX-License-Identifier: Apache-2.0
"""What a state file holds, for tests; and files of ours with something hostile in them."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.state.store import STATE_FILE, Store


def documents(folder: Path) -> dict[str, Any]:
    """All documents by name; none where there is no file."""
    with Store(folder) as store:
        return store.all("")


def contents(folder: Path) -> tuple[dict[str, Any], list[tuple[int, Any]]]:
    """Documents and journal."""
    with Store(folder) as store:
        return store.all(""), store.journal()


def put_text(folder: Path, name: str, text: object) -> None:
    """A document whose value is `text`, whatever it is; `journal` is a record of the journal."""
    with Store(folder) as store:
        store.put({})
    with contextlib.closing(sqlite3.connect(folder / STATE_FILE)) as connection, connection:
        if name == "journal":
            connection.execute("INSERT OR REPLACE INTO journal VALUES (1, ?)", (text,))
        else:
            connection.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, 99)", (name, text))


def count_transactions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The changes of state files from now on, by the method of `Store` that makes each."""
    made: list[str] = []
    for name in ("put", "record", "forget"):
        real = getattr(Store, name)

        def count(store: Store, *arguments: Any, real: Any = real, name: str = name) -> None:
            made.append(name)
            real(store, *arguments)

        monkeypatch.setattr(Store, name, count)
    return made
