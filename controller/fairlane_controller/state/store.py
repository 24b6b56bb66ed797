# SPDX-License-Identifier: Apache-2.0
"""The one state file of a running topology: an SQLite database (WAL) with documents, and the journal of changes.

A document is a JSON value with a name and a version. Names: `topology` (what the launcher started), `policy/SWITCH/PORT/CLASS`
(settings of the loop), `current/SWITCH` (what a switch had when a loop served it last), `config` (the configuration that was applied
last); programs add their own. Every change is one transaction: a process that is killed leaves it done or not begun, and readers see
whole states only. Only the standard library is needed, so that `make stop` works under the system's Python.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fairlane_controller.documents import DocumentError, parse_json
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.files import reason

STATE_FILE = "state.db"
BUSY_TIMEOUT_S = 5.0
"""How long a change waits for another process's change; each takes milliseconds."""
MAX_CHANGES = 100
"""Changes of the journal that are kept,"""
MAX_JOURNAL_BYTES = 8 * 1024 * 1024
"""and their size; the newest is always kept."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (name TEXT PRIMARY KEY, value TEXT, version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS journal (id INTEGER PRIMARY KEY, record TEXT NOT NULL);
"""
_PUT = """
INSERT INTO documents VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, version = version + 1
"""

Stamp = tuple[int, int]
"""Which file it is, and which version of a document."""
Documents = Mapping[str, Any]
"""Values by name; None removes the document."""


class Store:
    """The state file of a run-state folder; without a folder a database in memory. Usable from several threads.

    The file is opened when it is needed, and again when another one has taken its place. Raises FairlaneError: BAD_FILE where it cannot
    be read, written or understood, TIMED_OUT where another process does not finish its change.
    """

    def __init__(self, folder: Path | None) -> None:
        self.path = None if folder is None else folder / STATE_FILE
        self._writer = _Connection(self.path, creates=True)
        self._reader = self._writer if self.path is None else _Connection(self.path, creates=False)
        "Of its own, so that who reads does not wait for a change of another thread, which may wait for another process's."

    # ---- documents ---------------------------------------------------------------------------------------------

    def get(self, name: str) -> Any:
        """The document of that name; None when there is none."""
        rows = self._read("SELECT name, value FROM documents WHERE name = ? AND value IS NOT NULL", (name,))
        return self._parsed(*rows[0]) if rows else None

    def all(self, prefix: str) -> dict[str, Any]:
        """The documents whose names begin with `prefix`, by the rest of their names."""
        query = "SELECT name, value FROM documents WHERE substr(name, 1, ?) = ? AND value IS NOT NULL ORDER BY name"
        rows = self._read(query, (len(prefix), prefix))
        return {str(name)[len(prefix) :]: self._parsed(name, value) for name, value in rows}

    def put(self, documents: Documents) -> None:
        """Replace documents, all or none."""
        with self._writing() as connection:
            _put(connection, documents)

    def update(self, name: str, change: Callable[[Any], Any]) -> None:
        """Replace a document by the result of `change`, atomically: no other writer comes in between."""
        with self._writing() as connection:
            row = connection.execute("SELECT name, value FROM documents WHERE name = ?", (name,)).fetchone()
            _put(connection, {name: change(None if row is None or row[1] is None else self._parsed(*row))})

    def stamp(self, prefix: str = "") -> Stamp:
        """Another value after each change of a document whose name begins with `prefix`."""
        query = "SELECT COALESCE(SUM(version), 0) FROM documents WHERE substr(name, 1, ?) = ?"
        rows = self._read(query, (len(prefix), prefix))
        return self._reader.inode or 0, int(rows[0][0]) if rows else 0

    # ---- the journal ---------------------------------------------------------------------------------------------

    def journal(self) -> list[tuple[int, Any]]:
        """(id, record) of the changes that are kept, oldest first."""
        rows = self._read("SELECT id, record FROM journal ORDER BY id")
        return [(int(number or 0), self._parsed(f"change {number}", record)) for number, record in rows]

    @property
    def last_change(self) -> int:
        """The number of the newest change of the journal; 0 when there is none."""
        return next((int(number) for (number,) in self._read("SELECT MAX(id) FROM journal") if number), 0)

    def record(self, number: int, record: Any, documents: Documents | None = None) -> None:
        """Put a change into the journal, or in place of that of the same number, with documents, in one transaction; old changes are dropped."""
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO journal VALUES (?, ?)", (number, _text(record)))
            _put(connection, documents or {})
            lengths: list[tuple[int, int | None]] = connection.execute("SELECT id, length(record) FROM journal ORDER BY id DESC").fetchall()  # fmt: skip
            size = 0
            for newer, (old, length) in enumerate(lengths):
                size += length or 0
                if newer and (newer >= MAX_CHANGES or size > MAX_JOURNAL_BYTES):
                    connection.execute("DELETE FROM journal WHERE id <= ?", (old,))
                    break

    def forget(self, number: int, documents: Documents) -> None:
        """Remove a change that was taken back from the journal, and put documents, in one transaction."""
        with self._writing() as connection:
            connection.execute("DELETE FROM journal WHERE id = ?", (number,))
            _put(connection, documents)

    # ---- the file --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        self._reader.close()
        self._writer.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, query: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query; none when there is no file."""
        table = query.partition(" FROM ")[2].split()[0]
        with self._reader.guard, self._faults("read", table):
            connection = self._reader.opened()
            if connection is not None:
                try:
                    return connection.execute(query, arguments).fetchall()
                except sqlite3.OperationalError as ex:
                    self._reader.close()
                    if "no such table" in str(ex):  # it is being made
                        return []
                    if not self._is_settled():
                        raise
                with contextlib.closing(_connect(self.path, "mode=ro&immutable=1")) as settled:
                    return settled.execute(query, arguments).fetchall()
            return []

    def _is_settled(self) -> bool:
        """Whether the file holds everything, and can be read where nothing may be made beside it (another user, a full disk)."""
        return self.path is not None and _may(self.path, os.R_OK) and not Path(f"{self.path}-wal").exists()

    @contextlib.contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """One transaction."""
        with self._writer.guard, self._faults("write"):
            connection = self._writer.opened()
            assert connection is not None
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # SQLite has done so already after some errors
                    connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _faults(self, verb: str, table: str = "") -> Generator[None]:
        try:
            yield
        except UnicodeDecodeError as ex:  # SQLite's own words, which name a table, or an index, by a damaged name
            text = ex.object.decode("utf-8", "backslashreplace")
            raise FairlaneError(ErrorCode.BAD_FILE, f"cannot {verb} {self.path}: {self._reason(text, verb)}") from None
        except sqlite3.Error as ex:
            text = str(ex)
            if "decode to UTF-8" in text:
                text = f"table {table or 'documents'}: a text is no UTF-8"
            if "locked" in text:
                raise FairlaneError(
                    ErrorCode.TIMED_OUT, f"{self.path}: another process was writing for {BUSY_TIMEOUT_S:g} s"
                ) from None
            raise FairlaneError(ErrorCode.BAD_FILE, f"cannot {verb} {self.path}: {self._reason(text, verb)}") from None

    def _reason(self, text: str, verb: str) -> str:
        assert self.path is not None
        there = self.path if self.path.exists() else self.path.parent
        if not _may(there, os.R_OK if verb == "read" else os.W_OK):
            return reason(PermissionError(13, os.strerror(13)))
        if "full" in text or "I/O" in text or "unable to open" in text:
            try:
                free = os.statvfs(self.path.parent).f_bavail
            except OSError as ex:
                return reason(ex)
            if "full" in text or free < 16:  # SQLite's shared memory takes eight pages
                return os.strerror(28)
        return f"{text}: mend it, or remove it and start the topology again"

    def _parsed(self, name: object, text: object) -> Any:
        try:
            if not isinstance(text, str):
                raise DocumentError("it is no text")
            return parse_json(text)
        except DocumentError as ex:
            raise FairlaneError(ErrorCode.BAD_FILE, f"{self.path}: {str(name)[:80]}: {ex}") from None


class _Connection:
    """The connection to the file that is there now, opened when it is needed; its user holds `guard`."""

    def __init__(self, path: Path | None, *, creates: bool) -> None:
        """`creates`: it is for changes, and makes the file and its tables."""
        self.guard = threading.RLock()
        self.inode: int | None = None
        self._path = path
        self._creates = creates
        self._open: sqlite3.Connection | None = None

    def opened(self) -> sqlite3.Connection | None:
        """None where there is no file and none is to be made."""
        inode = _inode(self._path)
        if inode != self.inode:
            self.close()
        if self._open is None:
            if inode is None and not self._creates:
                return None
            may_write = self._path is None or _may(self._path, os.W_OK)
            connection = _connect(self._path, f"mode={'rwc' if self._creates else 'rw' if may_write else 'ro'}")
            try:
                if self._creates:
                    connection.execute("PRAGMA journal_mode = WAL")
                    connection.execute(
                        "PRAGMA synchronous = NORMAL"
                    )  # whole after a crash of ours; no wait for the disk
                    connection.executescript(_SCHEMA)
            except BaseException:
                connection.close()
                raise
            self._open, self.inode = connection, _inode(self._path)
        return self._open

    def close(self) -> None:
        """It is opened again when it is needed."""
        with self.guard:
            connection, self._open = self._open, None
            if connection is not None:
                connection.close()


def _connect(path: Path | None, how: str) -> sqlite3.Connection:
    name = ":memory:" if path is None else f"file:{quote(str(path))}?{how}"
    return sqlite3.connect(name, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, uri=path is not None)  # fmt: skip


def _put(connection: sqlite3.Connection, documents: Documents) -> None:
    first = time.time_ns() // 1000  # another one in a file that is made anew
    rows = [(name, None if value is None else _text(value), first) for name, value in documents.items()]
    connection.executemany(_PUT, rows)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), default=str)


def _inode(path: Path | None) -> int | None:
    try:
        return None if path is None else path.stat().st_ino
    except OSError:
        return None


def _may(path: Path, what: int) -> bool:
    return os.access(path, what, effective_ids=True)
