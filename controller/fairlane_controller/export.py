# SPDX-License-Identifier: Apache-2.0
"""Time series of snapshots as CSV, Parquet or JSON lines: one row a port, object or drop reason and time."""

from __future__ import annotations

import contextlib
import csv
import importlib
import json
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

from fairlane_controller.errors import bad_file, bad_input, find_by_name
from fairlane_controller.live.model import DROP_COLUMNS, PORT_COLUMNS, Snapshot
from fairlane_controller.program.rows import Column

ROW_GROUP = 5_000
"""Rows of a Parquet file that are written together."""
_PLACE = (Column("switch", "switch"), Column("port", "port", value_type=int))

Columns = Mapping[str, type]
Rows = list[dict[str, Any]]
Write = Callable[[Rows], object]


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


def rows_of(columns: Columns, rows: Rows, snapshot: Snapshot) -> Rows:
    """Rows of a snapshot as plain data, with these columns."""
    for row in rows:
        row["time_s"] = round(snapshot.time_s, 6)
        measured: dict[str, Any] = row.get("measured") or {}
        for name in (one.name for one in snapshot.measured if measured.get(one.name)):
            row |= {f"measured_{name}": measured[name]["value"], f"measured_{name}_age_s": measured[name]["age_s"]}
    return [{name: _flat(row.get(name)) for name in columns} for row in rows]


def _flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (Mapping, list)) else value


@contextlib.contextmanager
def csv_file(path: Path, columns: Columns) -> Generator[Write]:
    """RFC 4180 with a header, on the disk at once; an empty cell is what is not known."""
    with path.open("w", encoding="utf-8", newline="", buffering=1) as file:
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()
        yield writer.writerows


@contextlib.contextmanager
def json_lines(path: Path, _columns: Columns) -> Generator[Write]:
    """A row a line, on the disk at once."""
    with path.open("w", encoding="utf-8", buffering=1) as file:
        yield lambda rows: file.writelines(json.dumps(row, default=str) + "\n" for row in rows)


@contextlib.contextmanager
def parquet_file(path: Path, columns: Columns) -> Generator[Write]:
    """Typed columns; the file can be read after its end only. Needs pyarrow."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise bad_input(f"{path}: Parquet needs the Python package pyarrow; .csv and .jsonl need nothing") from None
    types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
    schema = arrow.schema([(name, types[one]) for name, one in columns.items()])
    waiting: Rows = []

    def write(rows: Rows, least: int = ROW_GROUP) -> None:
        waiting.extend(rows)
        if len(waiting) >= least:
            writer.write_table(arrow.Table.from_pylist(waiting, schema))
            waiting.clear()

    with parquet.ParquetWriter(str(path), schema) as writer:
        try:
            yield write
        finally:
            write([], least=1)


FORMATS = {".csv": csv_file, ".parquet": parquet_file, ".jsonl": json_lines}


class Export(contextlib.ExitStack):
    """The files of an export, by their paths with how many rows they have; they end with the `with` block, however it ends."""

    def __init__(self, file: Path, kinds: list[str], first: Snapshot, *, overwrite: bool = False) -> None:
        """Begin the files.

        Args:
            file: Its name; its suffix is the format.
            kinds: Of rows. `.jsonl` is one file of whole snapshots, the others one a kind, `NAME-KIND` when there are several.
            first: Says which columns there are.
            overwrite: Replace a file that is there.

        Raises:
            FairlaneError: BAD_INPUT for another suffix and for a file that is there, UNKNOWN_NAME for another kind, BAD_FILE.
        """
        super().__init__()
        self.rows: dict[Path, int] = {}
        self._files: list[tuple[Path, str, Columns, Write]] = []
        if file.suffix not in FORMATS:
            raise bad_input(f"{file}: the suffix says the format: {', '.join(FORMATS)}, not {file.suffix or 'none'!r}")
        columns: dict[str, Columns] = {kind: columns_of(kind, first) for kind in kinds}
        if file.suffix == ".jsonl":
            columns = {"": {}}
        for kind in columns:
            path = file.with_name(f"{file.stem}-{kind}{file.suffix}") if len(columns) > 1 else file
            if path.exists() and not overwrite:
                raise bad_input(f"{path} is there already: another name, or --overwrite")
            self.rows[path] = 0
        with _reported(file):
            for path, (kind, names) in zip(self.rows, columns.items(), strict=True):
                self.enter_context(_reported(path))  # the end of a file writes too
                write = self.enter_context(FORMATS[file.suffix](path, names))
                self._files.append((path, kind, names, write))

    def add(self, snapshot: Snapshot) -> None:
        """Add a snapshot; raises BAD_FILE."""
        plain = snapshot.to_json()
        for path, kind, columns, write in self._files:
            rows = rows_of(columns, plain[kind], snapshot) if kind else [plain]
            with _reported(path):
                write(rows)
            self.rows[path] += len(rows)


@contextlib.contextmanager
def _reported(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as ex:
        raise bad_file(f"cannot write {path}: {ex.strerror or ex}") from None
