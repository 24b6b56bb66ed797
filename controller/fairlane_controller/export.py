# SPDX-License-Identifier: Apache-2.0
"""Time series of snapshots as CSV, Parquet or JSON lines: one row a port, object or drop reason and time. What is in a file stays readable when the export is ended early."""

from __future__ import annotations

import csv
import functools
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError, find_by_name
from fairlane_controller.live.model import DROP_COLUMNS, PORT_COLUMNS, Snapshot
from fairlane_controller.program.rows import Column

ROW_GROUP = 5_000
"""Rows of a Parquet file that are written together."""
_PLACE = (Column("switch", "switch"), Column("port", "port", value_type=int))

Columns = Mapping[str, type]
Rows = list[dict[str, Any]]


def columns_of(kind: str, snapshot: Snapshot) -> Columns:
    """The columns of a kind of rows.

    Args:
        kind: ports, drops, or the plural of a kind of objects: flows.
        snapshot: Whose programs.

    Returns:
        Their names and types (None is always possible), `time_s` (Unix time) first.

    Raises:
        FairlaneError: UNKNOWN_NAME for another kind.
    """
    measured = [f"measured_{one.name}{end}" for one in snapshot.measured for end in ("", "_age_s")]
    kinds = {
        "ports": (*PORT_COLUMNS, *snapshot.columns, *(Column(name, name, value_type=float) for name in measured)),
        "drops": DROP_COLUMNS,
        **{kind.many: (Column(kind.name, kind.name), *kind.columns) for kind in snapshot.kinds},
    }
    columns = (*_PLACE, *find_by_name("kind of rows", kind, kinds))
    return {"time_s": float, **{one.name: one.python_type for one in columns}}


def rows_of(kind: str, columns: Columns, snapshot: Snapshot) -> Rows:
    """The rows of one snapshot, with these columns."""
    rows: Rows = snapshot.to_json()[kind]
    for row in rows:
        row["time_s"] = round(snapshot.time_s, 6)
        measured: dict[str, Any] = row.get("measured") or {}
        for name in (one.name for one in snapshot.measured if measured.get(one.name)):
            row |= {f"measured_{name}": measured[name]["value"], f"measured_{name}_age_s": measured[name]["age_s"]}
    return [{name: _flat(row.get(name)) for name in columns} for row in rows]


def _flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (Mapping, list)) else value


def check_file(file: Path) -> None:
    """BAD_INPUT unless the suffix is one that we write and the folder is there."""
    if file.suffix.lower() not in FORMATS:
        text = f"{file}: the suffix says the format: {', '.join(FORMATS)}, not {file.suffix or 'none'!r}"
        raise FairlaneError(ErrorCode.BAD_INPUT, text)
    if not file.absolute().parent.is_dir():
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{file}: there is no folder {file.absolute().parent}")


def open_writers(file: Path, kinds: Sequence[str], first: Snapshot, *, overwrite: bool) -> list[Writer]:
    """The files of an export.

    Args:
        file: Its name; its suffix is the format.
        kinds: Of rows. `.jsonl` is one file of whole snapshots, the others one a kind, `NAME-KIND` when there are several.
        first: Says which columns there are.
        overwrite: Replace a file that is there.

    Raises:
        FairlaneError: BAD_INPUT for another suffix and for a file that is there, UNKNOWN_NAME for another kind, BAD_FILE.
    """
    check_file(file)
    make = FORMATS[file.suffix.lower()]
    columns = {kind: columns_of(kind, first) for kind in kinds}
    several = len(kinds) > 1 and make is not JsonLines
    paths = {kind: file.with_name(f"{file.stem}-{kind}{file.suffix}") if several else file for kind in kinds}
    if make is JsonLines:
        paths = {kinds[0]: file}
    for path in paths.values():
        if path.exists() and not overwrite:
            raise FairlaneError(ErrorCode.BAD_INPUT, f"{path} is there already: another name, or --overwrite")
    try:
        return [make(path, kind, columns[kind]) for kind, path in paths.items()]
    except OSError as ex:
        raise _cannot_write(file, ex) from None


def _cannot_write(path: Path, error: OSError) -> FairlaneError:
    return FairlaneError(ErrorCode.BAD_FILE, f"cannot write {path}: {error.strerror or error}")


class Writer:
    """A CSV file with the rows of a kind, on the disk at once (RFC 4180 with a header; an empty cell is what is not known)."""

    def __init__(self, path: Path, kind: str, columns: Columns) -> None:
        self.path, self.kind, self.columns = path, kind, columns
        self.rows = 0
        "Written so far."
        self.open()

    def open(self) -> None:
        """Begin the file."""
        self._file = self.path.open("w", encoding="utf-8", newline="")
        self._csv = csv.DictWriter(self._file, list(self.columns))
        self._csv.writeheader()

    def add(self, snapshot: Snapshot) -> None:
        """Add the rows of a snapshot; raises BAD_FILE."""
        try:
            self.rows += self.write(snapshot)
        except OSError as ex:
            raise _cannot_write(self.path, ex) from None

    def write(self, snapshot: Snapshot) -> int:
        """Write a snapshot's rows; returns how many."""
        rows = rows_of(self.kind, self.columns, snapshot)
        self._csv.writerows(rows)
        self._file.flush()
        return len(rows)

    def close(self) -> None:
        """End the file."""
        self._file.close()


class JsonLines(Writer):
    """One snapshot a line, on the disk at once."""

    def open(self) -> None:
        """Begin the file."""
        self._file = self.path.open("w", encoding="utf-8")

    def write(self, snapshot: Snapshot) -> int:
        """One line."""
        self._file.write(json.dumps(snapshot.to_json(), default=str) + "\n")
        self._file.flush()
        return 1


class ParquetFile(Writer):
    """Typed columns; the file can be read after `close` only. Needs pyarrow."""

    def open(self) -> None:
        """Begin the file."""
        try:
            arrow: Any = importlib.import_module("pyarrow")
            parquet: Any = importlib.import_module("pyarrow.parquet")
        except ImportError:
            text = f"{self.path}: Parquet needs the Python package pyarrow; .csv and .jsonl need nothing"
            raise FairlaneError(ErrorCode.BAD_INPUT, text) from None
        types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
        schema = arrow.schema([(name, types[one]) for name, one in self.columns.items()])
        self._table: Any = functools.partial(arrow.Table.from_pylist, schema=schema)
        self._writer: Any = parquet.ParquetWriter(str(self.path), schema)
        self._waiting: Rows = []

    def write(self, snapshot: Snapshot) -> int:
        """Write a snapshot's rows, on the disk when there are enough of them."""
        rows = rows_of(self.kind, self.columns, snapshot)
        self._waiting += rows
        if len(self._waiting) >= ROW_GROUP:
            self._flush()
        return len(rows)

    def _flush(self) -> None:
        rows, self._waiting = self._waiting, []
        if rows:
            self._writer.write_table(self._table(rows))

    def close(self) -> None:
        """Write what waits, and the file's end."""
        try:
            self._flush()
        except OSError as ex:
            raise _cannot_write(self.path, ex) from None
        finally:
            self._writer.close()


FORMATS = {".csv": Writer, ".parquet": ParquetFile, ".jsonl": JsonLines}
