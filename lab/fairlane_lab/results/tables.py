# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false, reportMissingTypeArgument=false
"""Parquet tables of a run folder: a column has the same type in every experiment, files are written whole, the same rows give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fairlane_lab.definition.names import column_kind
from fairlane_lab.known import finite_or_none
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


def read(path: Path) -> pa.Table | None:
    """A Parquet file's table, None when there is no file."""
    return pq.read_table(path) if path.exists() else None


def concatenate(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows; a column that one of them has not is null there. Columns keep the first table's order, new ones follow."""
    return pa.concat_tables(tables, promote_options="default")


def run_keys(table: pa.Table) -> list[tuple[str, int]]:
    """(point, repeat) of every row."""
    return list(zip(table["point"].to_pylist(), table["repeat"].to_pylist(), strict=True))


def only_runs(table: pa.Table, wanted: Iterable[tuple[str, int]]) -> pa.Table:
    """The rows of the wanted runs."""
    keep = set(wanted)
    return table.filter(pa.array([key in keep for key in run_keys(table)], type=pa.bool_()))


def sort_runs(table: pa.Table, order: Mapping[str, int]) -> pa.Table:
    """Rows by their point's place in `order`, then repeat; a run's rows keep their order."""
    if table.num_rows == 0:
        return table
    keys = run_keys(table)
    places = np.array([order[point] for point, _ in keys], dtype=np.int64)
    repeats = np.array([repeat for _, repeat in keys], dtype=np.int64)
    indices = np.lexsort((np.arange(len(keys)), repeats, places))
    return table.take(pa.array(indices)).combine_chunks()


def sorted_columns(name: str, table: pa.Table, params: Sequence[str]) -> pa.Table:
    """Key, parameters in the lab's order, then the rest: the rest sorted by name in `runs`, in their own order elsewhere."""
    first = [*KEY, *(column for column in params if column in table.column_names and column not in KEY)]
    rest = [column for column in table.column_names if column not in first]
    return table.select([*first, *(sorted(rest) if name == "runs" else rest)])


def write_lines(path: Path, rows: Iterable[Row]) -> None:
    """Write a JSON-lines file whole or not at all."""
    draft = path.with_name(f".{path.name}.new")
    draft.write_text("".join(json.dumps(row, sort_keys=False, default=str) + "\n" for row in rows))
    draft.replace(path)
