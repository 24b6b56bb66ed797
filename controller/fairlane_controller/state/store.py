# SPDX-License-Identifier: Apache-2.0
"""The one state file of a running topology: an SQLite database (WAL) with documents, and the journal of changes.

A document is a JSON value with a name and a version. Names: `topology` (what the launcher started), `policy/SWITCH/PORT/CLASS`
(settings of the loop), `current/SWITCH` (what a switch had when a loop served it last), `config` (the configuration that was applied
last); programs add their own. Every change is one transaction: a process that is killed leaves it done or not begun, and readers see
whole states only. Only the standard library is needed, so that `make stop` works under the system's Python.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sqlite3
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fairlane_controller.documents import DocumentError, inode_of, parse_json
from fairlane_controller.errors import ErrorCode, bad_file
from fairlane_controller.state.files import reason

STATE_FILE = "state.db"
BUSY_TIMEOUT_S = 5.0
"""How long a change waits for another process's change; each takes milliseconds."""
MAX_CHANGES = 100
"""Changes that the journal has,"""
MAX_JOURNAL_BYTES = 8 * 1024 * 1024
"""and their size; the newest always stays."""

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS documents (name TEXT PRIMARY KEY, value TEXT, version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS journal (id INTEGER PRIMARY KEY, record TEXT NOT NULL);
"""
# NORMAL: whole after a crash of ours, without a wait for the disk.
_PUT = """
INSERT INTO documents VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, version = version + 1
"""
_PRUNE = """
DELETE FROM journal WHERE id IN (
    SELECT id FROM (SELECT id, ROW_NUMBER() OVER newest AS number, SUM(LENGTH(record)) OVER newest AS size FROM journal
        WINDOW newest AS (ORDER BY id DESC)) WHERE number > 1 AND (number > ? OR size > ?))
"""

Stamp = int
"""A version of documents."""
Documents = Mapping[str, Any]
"""Values by name; None removes the document."""


class Store:
    """The state file of a run-state folder; without a folder a database in memory. Usable from several threads.

    Reads go through one connection, which is opened again when another file has taken the place of the first; each change has a
    connection of its own, so that who reads never waits for who writes.

    Raises:
        FairlaneError: BAD_FILE where the file cannot be read, written or understood; TIMED_OUT where another process does not finish
            its change.
    """

    def __init__(self, folder: Path | None) -> None:
        self.path = None if folder is None else folder / STATE_FILE
        self._guard = threading.RLock()
        "Held by who uses the connection."
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        if self.path is None:
            self._connection = self._open("memory")
            self._connection.executescript(_SCHEMA)

    # ---- documents ---------------------------------------------------------------------------------------------

    def get(self, name: str) -> Any:
        """The document of that name; None when there is none."""
        rows = self._read("SELECT value FROM documents WHERE name = ? AND value IS NOT NULL", (name,))
        return self._parsed(name, *rows[0]) if rows else None

    def all(self, prefix: str) -> dict[str, Any]:
        """The documents whose names begin with `prefix`, by the rest of their names."""
        query = "SELECT name, value FROM documents WHERE substr(name, 1, ?) = ? AND value IS NOT NULL ORDER BY name"
        rows = [(str(name), value) for name, value in self._read(query, (len(prefix), prefix))]
        return {name[len(prefix) :]: self._parsed(name, value) for name, value in rows}

    def put(self, documents: Documents) -> None:
        """Replace documents, all or none."""
        with self._writing() as connection:
            _put(connection, documents)

    def stamp(self, prefix: str = "") -> Stamp:
        """Another value after each change of a document whose name begins with `prefix`."""
        query = "SELECT COALESCE(SUM(version), 0) FROM documents WHERE substr(name, 1, ?) = ?"
        return next((int(total) for (total,) in self._read(query, (len(prefix), prefix))), 0)

    # ---- the journal ---------------------------------------------------------------------------------------------

    def journal(self) -> list[tuple[int, Any]]:
        """(id, record) of the changes, oldest first."""
        rows = self._read("SELECT id, record FROM journal ORDER BY id")
        return [(int(number or 0), self._parsed(f"change {number}", record)) for number, record in rows]

    @property
    def last_change(self) -> int:
        """The number of the newest change of the journal; 0 when there is none."""
        return next((int(number) for (number,) in self._read("SELECT MAX(id) FROM journal") if number), 0)

    def record(self, number: int, record: Any, documents: Documents | None = None) -> None:
        """Put a change into the journal, or in place of that of the same number, with documents, in one transaction; old changes go."""
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO journal VALUES (?, ?)", (number, _text(record)))
            _put(connection, documents or {})
            connection.execute(_PRUNE, (MAX_CHANGES, MAX_JOURNAL_BYTES))

    def forget(self, number: int, documents: Documents) -> None:
        """Remove a change that was taken back from the journal, and put documents, in one transaction."""
        with self._writing() as connection:
            connection.execute("DELETE FROM journal WHERE id = ?", (number,))
            _put(connection, documents)

    # ---- the file --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        with self._guard:
            if self._connection is not None and self.path is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, query: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query; none when there is no file, or it is being made."""
        with self._guard, self._faults("read"):
            inode = self.path and inode_of(self.path)
            if inode != self._inode:
                self.close()
            if self.path is not None and inode is None:
                return []
            try:
                if self._connection is None and self.path is not None:
                    self._connection, self._inode = self._open("rw" if _may(self.path, os.W_OK) else "ro"), inode
                assert self._connection is not None
                return self._connection.execute(query, arguments).fetchall()
            except sqlite3.OperationalError as ex:
                self.close()
                if "no such table" in str(ex):
                    return []
                if self.path is None or not _may(self.path, os.R_OK) or Path(f"{self.path}-wal").exists():
                    raise
            # It has everything, and can be read where nothing may be made beside it (another user, a full disk).
            with contextlib.closing(self._open("ro&immutable=1")) as whole:
                return whole.execute(query, arguments).fetchall()

    @contextlib.contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """One transaction."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._faults("write"))
            if self.path is None:
                stack.enter_context(self._guard)
            connection = self._connection if self.path is None else None
            if connection is None:
                connection = stack.enter_context(contextlib.closing(self._open("rwc")))
                connection.executescript(_SCHEMA)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # SQLite has done so already after some errors
                    connection.execute("ROLLBACK")
                raise

    def _open(self, mode: str) -> sqlite3.Connection:
        name = ":memory:" if self.path is None else f"file:{quote(str(self.path))}?mode={mode}"
        return sqlite3.connect(name, BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, uri=True)

    @contextlib.contextmanager
    def _faults(self, verb: str) -> Generator[None]:
        """Every fault of the file as a FairlaneError."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as ex:
            # The latter: SQLite's own words with a damaged name, or a damaged text.
            text = ex.object.decode("utf-8", "backslashreplace") if isinstance(ex, UnicodeDecodeError) else str(ex)
            if "locked" in text:
                raise ErrorCode.TIMED_OUT(
                    f"{self.path}: another process was writing for {BUSY_TIMEOUT_S:g} s"
                ) from None
            raise bad_file(f"cannot {verb} {self.path}: {self._reason(text, verb)}") from None

    def _reason(self, text: str, verb: str) -> str:
        assert self.path is not None
        there = self.path if self.path.exists() else self.path.parent
        if not _may(there, os.R_OK if verb == "read" else os.W_OK):
            return reason(PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
        if "full" in text or "I/O" in text or "unable to open" in text:
            try:
                free = os.statvfs(self.path.parent).f_bavail
            except OSError as ex:
                return reason(ex)
            if "full" in text or free < 16:  # SQLite's shared memory takes eight pages
                return os.strerror(errno.ENOSPC)
        return f"{text}: mend it, or remove it and start the topology again"

    def _parsed(self, name: str, text: object) -> Any:
        try:
            if not isinstance(text, str):
                raise DocumentError("it is no text")
            return parse_json(text)
        except DocumentError as ex:
            raise bad_file(f"{self.path}: {name[:80]}: {ex}") from None


def _put(connection: sqlite3.Connection, documents: Documents) -> None:
    first = time.time_ns() // 1000  # another one in a file that is made anew
    rows = [(name, None if value is None else _text(value), first) for name, value in documents.items()]
    connection.executemany(_PUT, rows)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), default=str)


def _may(path: Path, what: int) -> bool:
    return os.access(path, what, effective_ids=True)
