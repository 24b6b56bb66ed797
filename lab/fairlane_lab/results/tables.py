# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false, reportMissingTypeArgument=false
"""Parquet tables of a run folder: a column has the same type in every experiment, files are written whole, the same rows give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fairlane_lab.definition.names import PARAMETERS, column_kind
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
    """Write a Parquet file of `narrow` numbers, as small as possible, however long that takes; `about` goes into the file's metadata, in place of the table's."""
    draft = path.with_name(f".{path.name}.new")
    table = narrow(table).replace_schema_metadata(None)
    floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    options: dict[str, Any] = {
        "compression": "zstd",
        "compression_level": 19,
        "store_schema": False,  # it would be there twice
        "write_statistics": False,
        "use_dictionary": [name for name in table.column_names if name not in floats],
        "column_encoding": dict.fromkeys(floats, "BYTE_STREAM_SPLIT"),
    }
    with pq.ParquetWriter(draft, table.schema, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(dict(about))
    draft.replace(path)


def narrow(table: pa.Table) -> pa.Table:
    """The table with measured numbers as float32: seven digits, more than any measurement of ours has. Parameters stay as they are."""
    fields = [
        field.with_type(pa.float32()) if pa.types.is_float64(field.type) and field.name not in PARAMETERS else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields, table.schema.metadata))


def widen(table: pa.Table) -> pa.Table:
    """The table with float32 as float64: as the shortest decimal number that float32 holds, so that 0.1 is 0.1 again."""
    for place, field in enumerate(table.schema):
        if pa.types.is_float32(field.type):
            values = pc.cast(pc.cast(table[field.name], pa.string()), pa.float64())
            table = table.set_column(place, field.with_type(pa.float64()), values)
    return table


def as_archived(table: pa.Table) -> pa.Table:
    """The table as an archive gives it again (`write_small`, then `read`)."""
    return widen(narrow(table))


def archived_row(row: Row) -> Row:
    """A row of `runs` as an archive gives it again."""
    return rows_of(as_archived(to_table("runs", [row])))[0]


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
    """A Parquet file's table with float64 for all fractions, None when there is no file."""
    return widen(pq.read_table(path)) if path.exists() else None


def rows_of(table: pa.Table) -> list[Row]:
    """A table's rows, what is not finite as None."""
    return [{name: finite_or_none(value) for name, value in row.items()} for row in table.to_pylist()]


def concatenate(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows; a column that one of them has not is null there. Columns keep the first table's order, new ones follow."""
    return pa.concat_tables(tables, promote_options="default")


def keys_of(path: Path) -> set[RunKey]:
    """The runs in a file; none when there is no file."""
    if not path.exists():
        return set()
    runs = pq.read_table(path, columns=["point", "repeat"]).group_by(["point", "repeat"]).aggregate([])
    return set(zip(runs["point"].to_pylist(), runs["repeat"].to_pylist(), strict=True))


def merge_runs(
    name: str, sources: Sequence[tuple[Path, set[RunKey]]], order: Mapping[str, int], out: Path, params: Sequence[str]
) -> None:
    """Write the wanted runs of several files as one file, sorted by the points' `order` and repeat. The bytes depend on the rows alone."""
    found = [_rows_of(path, wanted) for path, wanted in sources if wanted and path.exists()]
    whole = sorted_columns(name, concatenate([to_table(name, []), *found]), params).combine_chunks()
    places = pa.table(
        {
            "point": pc.index_in(  # pyright: ignore[reportAttributeAccessIssue]
                whole["point"], pa.array(sorted(order, key=order.__getitem__), pa.string())
            ),
            "repeat": whole["repeat"],
            "row": pa.array(range(len(whole)), pa.int64()),
        }
    )
    rows = places.sort_by([(column, "ascending") for column in places.column_names])["row"]
    write(out, whole.take(rows).combine_chunks().replace_schema_metadata())


def _rows_of(path: Path, wanted: set[RunKey]) -> pa.Table:
    table = pq.read_table(path)
    if keys_of(path) <= wanted:
        return table
    keys = zip(table["point"].to_pylist(), table["repeat"].to_pylist(), strict=True)
    return table.filter(pa.array([key in wanted for key in keys], pa.bool_()))


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
    rows = [row for path, wanted in sources for row in read_lines(path) if (row["point"], row["repeat"]) in wanted]
    write_lines(out, sorted(rows, key=lambda row: (order[row["point"]], row["repeat"])))
