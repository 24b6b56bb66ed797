# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false, reportMissingTypeArgument=false
"""Parquet tables of a run folder: a column has the same type in every experiment, files are written whole, the same rows give the same bytes.
And results as they come in (`Store`): each batch a folder of such files that appears whole, merged into the run folder's tables at the end.

    parts/00003/{runs,flows,…}.parquet   finished runs, in the order in which they finished
    runs.parquet, flows.parquet, …       after `merge`: all runs, sorted; the parts are gone

Whatever interrupts it, every batch that was written is there, and a run counts as done when it is in `runs`.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from fairlane_controller.documents import write_whole

from fairlane_lab.definition.names import PARAMETERS, column_kind, split_metric
from fairlane_lab.measures import finite_or_none
from fairlane_lab.recording import read_lines
from fairlane_lab.results.rows import KEY, TABLES, Row, RunRows, natural
from fairlane_lab.run_result import RunError

DETERMINISTIC = tuple(name for name in TABLES if name != "timing")
"""A seed gives these (and events.jsonl) byte for byte; `timing` holds what differs."""
RunKey = tuple[str, int]
"""(point, repeat)."""
_TYPES = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64()}


def to_table(name: str, rows: Sequence[Row]) -> pa.Table:
    """Rows as the table `name`; columns in the order in which rows bring them, after the key. A column's type is of its name alone."""
    columns = dict.fromkeys((*KEY, *(column for row in rows for column in row), *TABLES[name]))
    schema = pa.schema([(column, _TYPES[column_kind(split_metric(column)[0])]) for column in columns])
    return pa.table({field.name: pa.array([_cast(row.get(field.name), field.type) for row in rows], type=field.type) for field in schema}, schema=schema)  # fmt: skip


def _cast(value: Any, kind: pa.DataType) -> Any:
    value = finite_or_none(value)
    return round(value) if value is not None and pa.types.is_integer(kind) else value


def write(path: Path, table: pa.Table) -> None:
    """Write a Parquet file whole or not at all."""
    write_whole(path, lambda draft: pq.write_table(table, draft, compression="zstd"))


def write_small(path: Path, table: pa.Table, about: Mapping[str, str]) -> None:
    """Write a Parquet file of `narrow` numbers, as small as possible, however long that takes; `about` goes into the file's metadata, in place of the table's."""
    table = _narrow(table).replace_schema_metadata(None)
    floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    options: dict[str, Any] = {
        "compression": "zstd",
        "compression_level": 19,
        "store_schema": False,  # it would be there twice
        "write_statistics": False,
        "use_dictionary": [name for name in table.column_names if name not in floats],
        "column_encoding": dict.fromkeys(floats, "BYTE_STREAM_SPLIT"),
    }

    def fill(draft: Path) -> None:
        with pq.ParquetWriter(draft, table.schema, **options) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata(dict(about))

    write_whole(path, fill)


def _narrow(table: pa.Table) -> pa.Table:
    """The table with measured numbers as float32: seven digits, more than any measurement of ours has. Parameters stay as they are."""
    fields = [
        field.with_type(pa.float32()) if pa.types.is_float64(field.type) and field.name not in PARAMETERS else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields, table.schema.metadata))


def _widen(table: pa.Table) -> pa.Table:
    """The table with float32 as float64: as the shortest decimal number that float32 holds, so that 0.1 is 0.1 again."""
    for place, field in enumerate(table.schema):
        if pa.types.is_float32(field.type):
            values = pc.cast(pc.cast(table[field.name], pa.string()), pa.float64())
            table = table.set_column(place, field.with_type(pa.float64()), values)
    return table


def as_archived(table: pa.Table) -> pa.Table:
    """The table as an archive gives it again (`write_small`, then `read`)."""
    return _widen(_narrow(table))


def archived_row(row: Row) -> Row:
    """A row of `runs` as an archive gives it again."""
    return rows_of(as_archived(to_table("runs", [row])))[0]


def read(path: Path, columns: Sequence[str] | None = None, filters: Any = None) -> pa.Table | None:
    """A Parquet file's table (of its rows those of `filters`, as pyarrow's) with float64 for all fractions, None when there is no file. Raises RunError for a damaged one."""
    if not path.exists():
        return None
    try:
        return _widen(pq.read_table(path, columns=columns, filters=filters))
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:  # no right to read it, too many open files
            raise
        text = f"{path} is damaged ({str(error).splitlines()[0].rstrip('.')})"
        raise RunError(f"{text}: move {path.parent} away, and the same command makes its runs again") from None


def rows_of(table: pa.Table | None) -> list[Row]:
    """A table's rows, what is not finite as None; none without a table."""
    rows = [] if table is None else table.to_pylist()
    return [{name: finite_or_none(value) for name, value in row.items()} for row in rows]


def concatenate(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows; a column that one of them has not is null there. Columns keep the first table's order, new ones follow."""
    return pa.concat_tables(tables, promote_options="default")


def keys_of(path: Path) -> set[RunKey]:
    """The runs in a file; none when there is no file."""
    table = read(path, ["point", "repeat"])
    if table is None:
        return set()
    return set(zip(table["point"].to_pylist(), table["repeat"].to_pylist(), strict=True))


def merge_files(name: str, sources: Iterable[tuple[Path, set[RunKey]]], points: Sequence[str], out: Path) -> None:
    """Write the wanted runs of several files as one file, sorted by point and repeat. The bytes depend on the rows alone.

    Columns: the key, parameters in the lab's order, then the rest: sorted by name in `runs`, in their own order elsewhere.
    """
    found = [_wanted(table, keys) for path, keys in sources if keys and (table := read(path)) is not None]
    whole = concatenate([to_table(name, []), *found])
    first = [*KEY, *(column for column in PARAMETERS if column in whole.column_names and column not in KEY)]
    rest = [column for column in whole.column_names if column not in first]
    whole = whole.select([*first, *(sorted(rest) if name == "runs" else rest)]).combine_chunks()
    place = pc.index_in(whole["point"], pa.array(points, pa.string()))  # pyright: ignore[reportAttributeAccessIssue]
    row = pa.array(range(len(whole)), pa.int64())
    keys = pa.table({"point": place, "repeat": whole["repeat"], "row": row})
    order = keys.sort_by([(column, "ascending") for column in keys.column_names])["row"]
    write(out, whole.take(order).combine_chunks().replace_schema_metadata())


def _wanted(table: pa.Table, keys: set[RunKey]) -> pa.Table:
    runs = zip(table["point"].to_pylist(), table["repeat"].to_pylist(), strict=True)
    return table.filter(pa.array([run in keys for run in runs], pa.bool_()))


def write_lines(path: Path, rows: Iterable[Row]) -> None:
    """Write a JSON-lines file whole or not at all."""
    text = "".join(json.dumps(row, default=str) + "\n" for row in rows)
    write_whole(path, lambda draft: draft.write_text(text))


BATCH_RUNS = 256
BATCH_S = 5.0
EVENTS = "events.jsonl"


class Store:
    """The results of one folder. One process writes at a time."""

    def __init__(self, folder: Path, points: Sequence[str] = ()) -> None:
        """`points`: the order in which points are sorted; others come after them."""
        self.folder = folder
        self._points = list(points)
        self._waiting: list[RunRows] = []
        self._flushed_s = time.monotonic()
        self._parts = folder / "parts"

    def add(self, rows: RunRows) -> None:
        """Take a finished run; written with the next batch."""
        self._waiting.append(rows)
        if len(self._waiting) >= BATCH_RUNS or time.monotonic() - self._flushed_s > BATCH_S:
            self.flush()

    def flush(self) -> None:
        """Write what waits, as one batch that appears whole."""
        self._flushed_s = time.monotonic()
        if not self._waiting:
            return
        number = 1 + max((int(part.name) for part in self._folders()[1:]), default=0)
        draft = self._parts / f".{number:05d}-{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            for name in TABLES:
                if rows := [row for run in self._waiting for row in run[name]]:
                    write(draft / f"{name}.parquet", to_table(name, rows))
            write_lines(draft / EVENTS, (event for run in self._waiting for event in run["events"]))
            draft.replace(self._parts / f"{number:05d}")
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        self._waiting = []

    def finished_runs(self) -> set[RunKey]:
        """(point, repeat) of every run that is on the disk. Raises RunError where a file is damaged."""
        return {key for folder in self._folders() for key in keys_of(folder / "runs.parquet")}

    def merge(self) -> None:
        """Write what waits, and make one sorted table of each kind from all that there is, each run once. Raises RunError, OSError."""
        self.flush()
        seen: set[RunKey] = set()
        sources: dict[Path, set[RunKey]] = {}
        for folder in self._folders():
            sources[folder] = keys_of(folder / "runs.parquet") - seen
            seen |= sources[folder]
        points = list(dict.fromkeys([*self._points, *sorted({point for point, _ in seen}, key=natural)]))
        place = {point: number for number, point in enumerate(points)}
        events = [
            event
            for folder, wanted in sources.items()
            for event in read_lines(folder / EVENTS)
            if (event["point"], event["repeat"]) in wanted
        ]
        write_lines(self.folder / EVENTS, sorted(events, key=lambda event: (place[event["point"]], event["repeat"])))
        for name in sorted(TABLES, key="runs".__eq__):  # runs last: it says what is done
            file = f"{name}.parquet"
            merge_files(name, [(folder / file, keys) for folder, keys in sources.items()], points, self.folder / file)
        shutil.rmtree(self._parts, ignore_errors=True)

    def _folders(self) -> list[Path]:
        """The run folder, then its parts."""
        parts = self._parts.iterdir() if self._parts.is_dir() else ()
        return [self.folder, *sorted(part for part in parts if part.name.isdigit())]
