# SPDX-License-Identifier: Apache-2.0
"""Snapshots as flat rows with fixed columns, units in their names: one row a port, object (flow, VC) or drop reason and time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from fairlane_controller.errors import unknown_name
from fairlane_controller.live.model import PortRow, Snapshot
from fairlane_controller.program.rows import Column

_PORT: dict[str, type] = {
    "switch": str, "port": int, "interface": str, "managed": bool, "rate_bps": float, "tx_bps": float, "utilisation": float,
    "waiting_packets": int, "waiting_bytes": int, "capacity_packets": int, "drops_per_s": float, "dropped_packets": int,
    "sent_packets": int, "sent_bytes": int,
}  # fmt: skip
_DROP: dict[str, type] = {
    "switch": str, "port": int, "object": str, "reason": str, "packets": int, "per_s": float, "by": str,
}  # fmt: skip


def kinds_of(snapshot: Snapshot) -> list[str]:
    """The kinds of rows that there are: ports, drops, and the plurals of the programs' kinds."""
    return ["ports", "drops", *(kind.many for kind in snapshot.kinds)]


def columns_of(kind: str, snapshot: Snapshot) -> dict[str, type]:
    """All columns of a kind and their types (None is always possible), `time_s` (Unix time) first. Raises UNKNOWN_NAME."""
    if kind == "ports":
        columns = {**_PORT, **_types(snapshot.columns), **_measured(snapshot)}
    elif kind == "drops":
        columns = _DROP
    else:
        found = next((one for one in snapshot.kinds if one.many == kind), None)
        if found is None:
            raise unknown_name("kind of rows", kind, kinds_of(snapshot))
        columns = {"switch": str, "port": int, found.name: str, **_types(found.columns)}
    return {"time_s": float, **columns}


def rows_of(kind: str, snapshot: Snapshot) -> list[dict[str, Any]]:
    """The rows of one snapshot, with the columns of `columns_of`."""
    document, columns = snapshot.to_json(), columns_of(kind, snapshot)
    rows = [_port(snapshot, row) for row in snapshot.ports] if kind == "ports" else document[kind]
    return [{**{name: _flat(row.get(name)) for name in columns}, "time_s": round(snapshot.time_s, 6)} for row in rows]


def _types(columns: Iterable[Column]) -> dict[str, type]:
    return {column.name: column.python_type for column in columns}


def _measured(snapshot: Snapshot) -> dict[str, type]:
    return {f"measured_{one.name}{end}": float for one in snapshot.measured for end in ("", "_age_s")}


def _port(snapshot: Snapshot, row: PortRow) -> dict[str, Any]:
    plain = row.to_json()
    for name in (one.name for one in snapshot.measured):
        found = (row.measured or {}).get(name)
        plain[f"measured_{name}"] = float(found["value"]) if found else None
        plain[f"measured_{name}_age_s"] = float(found["age_s"]) if found else None
    return plain


def _flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (Mapping, list)) else value
