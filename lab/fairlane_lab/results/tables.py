# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false, reportMissingTypeArgument=false
"""Parquet tables of a run folder: a column has the same type in every experiment, files are written whole, the same rows give the same bytes."""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fairlane_lab.definition.names import column_kind
from fairlane_lab.known import finite_or_none
from fairlane_lab.results.folder import read_lines
from fairlane_lab.results.rows import KEY, Row

TABLES: Mapping[str, tuple[str, ...]] = {
    "runs": (*KEY, "configuration", "virtual_s", "packets"),
    "flows": (*KEY, "flow", "group", "variant", "weight", "greedy", "goodput_bps", "share", "retransmits", "timeouts", "cwnd_packets", "srtt_ms"),
    "ports": (*KEY, "switch", "port", "port_rate_bps", "throughput_bps", "utilisation", "drops", "queue_packets"),
    "vcs": (*KEY, "vc", "mcr_bps", "w_bps", "ideal_bps", "goodput_bps", "ratio", "mcr_met", "mcr_met_5s", "active_s"),
    "transfers": (*KEY, "flow", "group", "start_s", "bytes", "completion_s", "retransmits"),
    "series": (*KEY, "t_s", "flow", "metric", "value"),
    "timing": (*KEY, "wall_s", "about"),
}  # fmt: skip
"""Table → the columns that it has even without rows; parameters and metrics come between and after."""

DETERMINISTIC = ("runs", "flows", "ports", "vcs", "transfers", "series")
"""A seed gives these (and events.jsonl) byte for byte; `timing` holds what differs."""

RunKey = tuple[str, int]
"""(point, repeat)."""
RunPlace = tuple[int, int]
"""(the point's place in the order, repeat)."""
ROW_GROUP = 1 << 17
READ_ROWS = 1 << 14
"""Of one file, rows in memory at a time."""

_TYPES = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64()}


def column_type(name: str) -> pa.DataType:
    """The type of a column, by its name alone; `retransmits[reno]` is of `retransmits`'s."""
    return _TYPES[column_kind(name.split("[")[0])]


def to_table(name: str, rows: Sequence[Row]) -> pa.Table:
    """Rows as the table `name`; columns in the order in which rows bring them, after the key."""
    columns = dict.fromkeys((*KEY, *(column for row in rows for column in row), *TABLES[name]))
    fields = [(column, column_type(column)) for column in columns]
    data = {column: pa.array([_cast(row.get(column), kind) for row in rows], type=kind) for column, kind in fields}
    return pa.table(data, schema=pa.schema(fields))


def _cast(value: Any, kind: pa.DataType) -> Any:
    value = finite_or_none(value)
    if value is None:
        return None
    return round(value) if pa.types.is_integer(kind) else value


def write(path: Path, table: pa.Table) -> None:
    """Write a Parquet file whole or not at all."""
    draft = path.with_name(f".{path.name}.new")
    pq.write_table(table, draft, compression="zstd")
    draft.replace(path)


def write_small(path: Path, table: pa.Table, about: Mapping[str, str]) -> None:
    """As `write`, as small as possible, however long that takes; `about` goes into the file's metadata, in place of the table's."""
    draft = path.with_name(f".{path.name}.new")
    floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    options: dict[str, Any] = {
        "compression": "zstd",
        "compression_level": 19,
        "store_schema": False,  # it would be there twice
        "use_dictionary": [name for name in table.column_names if name not in floats],
        "column_encoding": dict.fromkeys(floats, "BYTE_STREAM_SPLIT"),
    }
    with pq.ParquetWriter(draft, table.schema.remove_metadata(), **options) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata(dict(about))
    draft.replace(path)


def find_damage(path: Path, whole: bool = False) -> str | None:
    """Why a Parquet file cannot be read, in words; None where it can be, or is not there. Its end says where all is; with `whole` all is read.

    Raises OSError where that is not for what is in it: no right to read it, too many open files.
    """
    try:
        if path.exists() and whole:
            pq.read_table(path)
        elif path.exists():
            pq.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        return "it is empty" if not path.stat().st_size else str(error).splitlines()[0].rstrip(".")
    return None


def read(path: Path) -> pa.Table | None:
    """A Parquet file's table, None when there is no file."""
    return pq.read_table(path) if path.exists() else None


def concatenate(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows; a column that one of them has not is null there. Columns keep the first table's order, new ones follow."""
    return pa.concat_tables(tables, promote_options="default")


def run_keys(table: pa.Table) -> list[tuple[str, int]]:
    """(point, repeat) of every row."""
    return list(zip(table["point"].to_pylist(), table["repeat"].to_pylist(), strict=True))


def keys_of(path: Path) -> set[RunKey]:
    """The runs in a file; none when there is no file."""
    return set(_keys_in(path)) if path.exists() else set()


def _keys_in(path: Path) -> list[RunKey]:
    """The runs in a file, in its order."""
    found: dict[RunKey, None] = {}
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(READ_ROWS, columns=["point", "repeat"]):
            found |= dict.fromkeys(run_keys(pa.Table.from_batches([batch])))
    return list(found)


def merge_runs(
    name: str, sources: Sequence[tuple[Path, set[RunKey]]], order: Mapping[str, int], out: Path, params: Sequence[str]
) -> None:
    """Write the wanted runs of several files, each sorted by `order` and repeat, as one file that is sorted so too.

    Of each file some thousand rows are in memory at a time, so there may be any number of runs. The bytes depend on the rows alone.
    """
    there = [(path, wanted) for path, wanted in sources if wanted and path.exists()]
    empty = concatenate([to_table(name, []), *(pq.read_schema(path).empty_table() for path, _ in there)])
    schema = sorted_columns(name, empty, params).schema.remove_metadata()

    def place(run: tuple[RunKey, pa.Table]) -> RunPlace:
        return order[run[0][0]], run[0][1]

    def stream(path: Path, wanted: set[RunKey]) -> Iterable[tuple[RunKey, pa.Table]]:
        runs = (run for run in _runs_in(path) if run[0] in wanted)
        places = [(order[point], repeat) for point, repeat in _keys_in(path)]
        return runs if places == sorted(places) else sorted(runs, key=place)  # it has another selection's order

    streams = [stream(path, wanted) for path, wanted in there]
    draft = out.with_name(f".{out.name}.new")
    with pq.ParquetWriter(draft, schema, compression="zstd") as writer:
        for group in _row_groups(rows for _, rows in heapq.merge(*streams, key=place)):
            writer.write_table(_as_schema(group, schema), ROW_GROUP * 2)
    draft.replace(out)


def _row_groups(pieces: Iterable[pa.Table]) -> Iterator[list[pa.Table]]:
    """The pieces in groups of at least ROW_GROUP rows, but for the last."""
    waiting: list[pa.Table] = []
    count = 0
    for rows in pieces:
        waiting.append(rows)
        count += len(rows)
        if count >= ROW_GROUP:
            yield waiting
            waiting, count = [], 0
    if waiting:
        yield waiting


def _runs_in(path: Path) -> Iterator[tuple[RunKey, pa.Table]]:
    """Each run's rows, which stand together in the file."""
    waiting: list[pa.Table] = []
    last: RunKey | None = None
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(READ_ROWS):
            rows = pa.Table.from_batches([batch])
            keys = run_keys(rows)
            begin = 0
            for key, group in itertools.groupby(keys):
                count = sum(1 for _ in group)
                if last is not None and key != last:
                    yield last, pa.concat_tables(waiting)
                    waiting = []
                waiting.append(rows.slice(begin, count))
                last, begin = key, begin + count
    if last is not None:
        yield last, pa.concat_tables(waiting)


def _as_schema(pieces: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    return concatenate([schema.empty_table(), *pieces]).select(schema.names).cast(schema).combine_chunks()


def sorted_columns(name: str, table: pa.Table, params: Sequence[str]) -> pa.Table:
    """Key, parameters in the lab's order, then the rest: the rest sorted by name in `runs`, in their own order elsewhere."""
    first = [*KEY, *(column for column in params if column in table.column_names and column not in KEY)]
    rest = [column for column in table.column_names if column not in first]
    return table.select([*first, *(sorted(rest) if name == "runs" else rest)])


def write_lines(path: Path, rows: Iterable[Row]) -> None:
    """Write a JSON-lines file whole or not at all."""
    draft = path.with_name(f".{path.name}.new")
    with draft.open("w") as file:
        file.writelines(json.dumps(row, sort_keys=False, default=str) + "\n" for row in rows)
    draft.replace(path)


def merge_lines(sources: Sequence[tuple[Path, set[RunKey]]], order: Mapping[str, int], out: Path) -> None:
    """`merge_runs` for JSON-lines files; a run's lines stay in their order."""

    def place(row: Row) -> RunPlace:
        return order[row["point"]], row["repeat"]

    def stream(path: Path, wanted: set[RunKey]) -> Iterable[Row]:
        def rows() -> Iterator[Row]:
            return (row for row in read_lines(path) if (row["point"], row["repeat"]) in wanted)

        places = [key for key, _ in itertools.groupby(map(place, rows()))]
        return rows() if places == sorted(places) else sorted(rows(), key=place)

    write_lines(out, heapq.merge(*(stream(path, wanted) for path, wanted in sources), key=place))
