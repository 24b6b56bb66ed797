# SPDX-License-Identifier: Apache-2.0
"""Time series of snapshots as CSV, Parquet or JSON lines: one row a port, object or drop reason and time. What is in a file stays readable when the export is ended early."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError, unknown_name
from fairlane_controller.live.model import PORT_COLUMNS, Snapshot

SUFFIXES = (".csv", ".parquet", ".jsonl")
ROW_GROUP = 5_000
"""Rows of a Parquet file that are written together."""
_OF = {"switch": str, "port": int}
_DROP: dict[str, type] = {**_OF, "object": str, "reason": str, "packets": int, "per_s": float, "by": str}

Columns = Mapping[str, type]


def kinds_of(snapshot: Snapshot) -> list[str]:
    """The kinds of rows that there are: ports, drops, and the plurals of the programs' kinds."""
    return ["ports", "drops", *(kind.many for kind in snapshot.kinds)]


def columns_of(kind: str, snapshot: Snapshot) -> Columns:
    """All columns of a kind and their types (None is always possible), `time_s` (Unix time) first. Raises UNKNOWN_NAME."""
    if kind == "ports":
        columns = _OF | {one.name: one.python_type for one in (*PORT_COLUMNS, *snapshot.columns)}
        columns |= {f"measured_{one.name}{end}": float for one in snapshot.measured for end in ("", "_age_s")}
    elif kind == "drops":
        columns = _DROP
    else:
        found = next((one for one in snapshot.kinds if one.many == kind), None)
        if found is None:
            raise unknown_name("kind of rows", kind, kinds_of(snapshot))
        columns = {**_OF, found.name: str, **{one.name: one.python_type for one in found.columns}}
    return {"time_s": float, **columns}


def rows_of(kind: str, snapshot: Snapshot) -> list[dict[str, Any]]:
    """The rows of one snapshot, with the columns of `columns_of`."""
    rows: list[dict[str, Any]] = snapshot.to_json()[kind]
    for row in rows if kind == "ports" else ():
        measured: dict[str, Any] = row["measured"] or {}
        for name in (one.name for one in snapshot.measured if measured.get(one.name)):
            row |= {f"measured_{name}": measured[name]["value"], f"measured_{name}_age_s": measured[name]["age_s"]}
    time_s = {"time_s": round(snapshot.time_s, 6)}
    return [{name: _flat(row.get(name)) for name in columns_of(kind, snapshot)} | time_s for row in rows]


def _flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (Mapping, list)) else value


def check_file(file: Path) -> None:
    """BAD_INPUT unless the suffix is one that we write and the folder is there."""
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise FairlaneError(
            ErrorCode.BAD_INPUT, f"{file}: the suffix says the format: {', '.join(SUFFIXES)}, not {suffix or 'none'!r}"
        )
    if not file.absolute().parent.is_dir():
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{file}: there is no folder {file.absolute().parent}")


def open_writers(file: Path, kinds: Sequence[str], first: Snapshot, *, overwrite: bool) -> list[Writer]:
    """The files of an export: `.jsonl` one, whole snapshots; `.csv` and `.parquet` one a kind, `NAME-KIND` when there are several.

    `first` says which columns there are. Raises BAD_INPUT for another suffix and for a file that is there (unless `overwrite`),
    UNKNOWN_NAME for another kind.
    """
    check_file(file)
    make = {".jsonl": JsonLines, ".csv": CsvFile, ".parquet": ParquetFile}[file.suffix.lower()]
    columns = {kind: columns_of(kind, first) for kind in kinds}
    several = len(kinds) > 1 and make is not JsonLines
    paths = {file.with_name(f"{file.stem}-{kind}{file.suffix}") if several else file: kind for kind in kinds}
    there = next((path for path in paths if path.exists()), None)
    if there is not None and not overwrite:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{there} is there already: another name, or --overwrite")
    made: list[Writer] = []
    try:
        for path, kind in paths.items():
            made.append(make(path, kind, columns[kind]))
    except OSError as ex:
        for writer in made:
            writer.close()
        raise _cannot_write(file, ex) from None
    return made


def _cannot_write(path: Path, error: OSError) -> FairlaneError:
    return FairlaneError(ErrorCode.BAD_FILE, f"cannot write {path}: {error.strerror or error}")


class Writer:
    """One file with the rows of a kind; this one writes none."""

    def __init__(self, path: Path, kind: str, columns: Columns) -> None:
        self.path, self.kind, self.columns = path, kind, columns
        self.rows = 0
        "Written so far."

    def add(self, snapshot: Snapshot) -> None:
        """Add a snapshot; raises BAD_FILE."""
        try:
            self.rows += self.write(snapshot)
        except OSError as ex:
            raise _cannot_write(self.path, ex) from None

    def write(self, snapshot: Snapshot) -> int:
        """Write a snapshot's rows; returns how many. Raises OSError."""
        raise NotImplementedError

    def close(self) -> None:
        """End the file."""
        raise NotImplementedError


class JsonLines(Writer):
    """One snapshot a line, on the disk at once."""

    def __init__(self, path: Path, kind: str, columns: Columns) -> None:
        super().__init__(path, kind, columns)
        self.file = path.open("w", encoding="utf-8", newline="")

    def write(self, snapshot: Snapshot) -> int:
        """One line."""
        self.file.write(json.dumps(snapshot.to_json(), default=str) + "\n")
        self.file.flush()
        return 1

    def close(self) -> None:
        """End the file."""
        self.file.close()


class CsvFile(JsonLines):
    """RFC 4180 with a header; an empty cell is what is not known."""

    def __init__(self, path: Path, kind: str, columns: Columns) -> None:
        super().__init__(path, kind, columns)
        self._csv = csv.DictWriter(self.file, list(columns))
        self._csv.writeheader()

    def write(self, snapshot: Snapshot) -> int:
        """Its rows."""
        rows = rows_of(self.kind, snapshot)
        self._csv.writerows(rows)
        self.file.flush()
        return len(rows)


class ParquetFile(Writer):
    """Typed columns; the file can be read after `close` only. Needs pyarrow."""

    def __init__(self, path: Path, kind: str, columns: Columns) -> None:
        super().__init__(path, kind, columns)
        try:
            pyarrow: Any = importlib.import_module("pyarrow")
            parquet: Any = importlib.import_module("pyarrow.parquet")
        except ImportError:
            raise FairlaneError(
                ErrorCode.BAD_INPUT, f"{path}: Parquet needs the Python package pyarrow; .csv and .jsonl need nothing"
            ) from None
        types: dict[type, Any] = {
            str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()
        }  # fmt: skip
        self._schema: Any = pyarrow.schema([(name, types[kind_of]) for name, kind_of in columns.items()])
        self._table: Any = pyarrow.Table
        self._writer: Any = parquet.ParquetWriter(str(path), self._schema)
        self._waiting: list[dict[str, Any]] = []

    def write(self, snapshot: Snapshot) -> int:
        """Its rows, on the disk when there are enough of them."""
        rows = rows_of(self.kind, snapshot)
        self._waiting += rows
        if len(self._waiting) >= ROW_GROUP:
            self._flush()
        return len(rows)

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(self._table.from_pylist(self._waiting, self._schema))
        self._waiting = []

    def close(self) -> None:
        """Write what waits, and the file's end."""
        try:
            self._flush()
        except OSError as ex:
            raise _cannot_write(self.path, ex) from None
        finally:
            self._writer.close()
