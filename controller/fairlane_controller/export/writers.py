# SPDX-License-Identifier: Apache-2.0
"""Files that grow with every snapshot: what is in them stays readable when the export is ended early."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.export.rows import columns_of, rows_of
from fairlane_controller.live.model import Snapshot

SUFFIXES = (".csv", ".parquet", ".jsonl")
ROW_GROUP = 5_000
"""Rows of a Parquet file that are kept until they are written together."""


class Writer(Protocol):
    """One file."""

    path: Path
    rows: int
    "Written so far."

    def add(self, snapshot: Snapshot) -> None:
        """Add a snapshot; raises BAD_FILE."""
        ...

    def close(self) -> None:
        """End the file."""
        ...


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
    suffix = file.suffix.lower()
    for kind in kinds:
        columns_of(kind, first)
    several = len(kinds) > 1 and suffix != ".jsonl"
    paths = [file.with_name(f"{file.stem}-{kind}{file.suffix}") for kind in kinds] if several else [file]
    there = [path for path in paths if path.exists()]
    if there and not overwrite:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{there[0]} is there already: another name, or --overwrite")
    made: list[Writer] = []
    try:
        if suffix == ".jsonl":
            made.append(JsonLines(file))
        else:
            make = CsvFile if suffix == ".csv" else ParquetFile
            for path, kind in zip(paths, kinds, strict=True):
                made.append(make(path, kind, columns_of(kind, first)))
    except OSError as ex:
        for writer in made:
            writer.close()
        raise _cannot_write(file, ex) from None
    return made


def _cannot_write(path: Path, error: OSError) -> FairlaneError:
    return FairlaneError(ErrorCode.BAD_FILE, f"cannot write {path}: {error.strerror or error}")


class JsonLines:
    """One snapshot a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self._file = path.open("w", encoding="utf-8")

    def add(self, snapshot: Snapshot) -> None:
        """One line, on the disk at once."""
        try:
            self._file.write(json.dumps(snapshot.to_json(), default=str) + "\n")
            self._file.flush()
        except OSError as ex:
            raise _cannot_write(self.path, ex) from None
        self.rows += 1

    def close(self) -> None:
        """End the file."""
        self._file.close()


class CsvFile:
    """RFC 4180 with a header; an empty cell is what is not known."""

    def __init__(self, path: Path, kind: str, columns: Mapping[str, type]) -> None:
        self.path = path
        self.rows = 0
        self._kind = kind
        self._file = path.open("w", encoding="utf-8", newline="")
        self._csv = csv.DictWriter(self._file, list(columns), extrasaction="ignore")
        self._csv.writeheader()

    def add(self, snapshot: Snapshot) -> None:
        """Its rows, on the disk at once."""
        rows = rows_of(self._kind, snapshot)
        try:
            self._csv.writerows(rows)
            self._file.flush()
        except OSError as ex:
            raise _cannot_write(self.path, ex) from None
        self.rows += len(rows)

    def close(self) -> None:
        """End the file."""
        self._file.close()


class ParquetFile:
    """Typed columns; the file can be read after `close` only. Needs pyarrow."""

    def __init__(self, path: Path, kind: str, columns: Mapping[str, type]) -> None:
        try:
            pyarrow: Any = importlib.import_module("pyarrow")
            parquet: Any = importlib.import_module("pyarrow.parquet")
        except ImportError:
            raise FairlaneError(
                ErrorCode.BAD_INPUT, f"{path}: Parquet needs the Python package pyarrow; .csv and .jsonl need nothing"
            ) from None
        self.path = path
        self.rows = 0
        self._kind = kind
        self._pyarrow = pyarrow
        types: dict[type, Any] = {
            str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()
        }  # fmt: skip
        self._schema: Any = pyarrow.schema([(name, types[kind_of]) for name, kind_of in columns.items()])
        self._writer: Any = parquet.ParquetWriter(str(path), self._schema)
        self._waiting: list[dict[str, Any]] = []

    def add(self, snapshot: Snapshot) -> None:
        """Its rows, written when there are enough of them."""
        rows = rows_of(self._kind, snapshot)
        self._waiting += rows
        self.rows += len(rows)
        if len(self._waiting) >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        try:
            self._writer.write_table(self._pyarrow.Table.from_pylist(self._waiting, self._schema))
        except OSError as ex:
            raise _cannot_write(self.path, ex) from None
        self._waiting = []

    def close(self) -> None:
        """Write what waits, and the file's end."""
        try:
            self._flush()
        finally:
            self._writer.close()
