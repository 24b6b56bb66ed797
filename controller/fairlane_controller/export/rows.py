# SPDX-License-Identifier: Apache-2.0
"""Snapshots as flat rows with fixed columns, units in their names: one row a port, flow, VC or drop reason and time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlane_controller.live.model import FlowRow, PortRow, Snapshot, VcRow
from fairlane_controller.live.vc_state import served

Cell = Any
Kind = str

MEASURED = ("bw_bps", "t_res_s", "tau_s", "t_ack_s", "l_d_bytes", "n_c")


@dataclass(frozen=True)
class Table:
    """One kind of rows."""

    columns: Mapping[str, type]
    "Name and type (str, int, float, bool) of each column behind `time_s`; None is always possible."
    rows: Callable[[Snapshot], list[dict[str, Cell]]]


def _ports(snapshot: Snapshot) -> list[dict[str, Cell]]:
    return [_port(row) for row in snapshot.ports]


def _port(row: PortRow) -> dict[str, Cell]:
    first = row.policies[0] if row.policies else None
    flat: dict[str, Cell] = {name: getattr(row, name) for name in _PORT if hasattr(row, name)}
    flat |= {
        "traffic_class": first.traffic_class if first else None,
        "scheme": first.scheme if first else row.scheme,
        "qthresh_packets": first.qthresh_packets if first else None,
        "weight": first.weight if first else None,
        "mode": first.mode if first else None,
        "policies": json.dumps([policy.to_json() for policy in row.policies]) if len(row.policies) > 1 else None,
    }
    for name in MEASURED:
        found = (row.measured or {}).get(name)
        flat[f"measured_{name}"] = float(found["value"]) if found else None
        flat[f"measured_{name}_age_s"] = float(found["age_s"]) if found else None
    return flat


_PORT: dict[str, type] = {
    "switch": str, "port": int, "interface": str, "managed": bool, "rate_bps": float, "tx_bps": float, "utilisation": float,
    "waiting_packets": int, "waiting_bytes": int, "waiting_cells": int, "capacity_packets": int, "capacity_cells": int,
    "drops_per_s": float, "dropped_packets": int, "sent_packets": int, "sent_bytes": int, "traffic_class": int, "scheme": str,
    "qthresh_packets": int, "weight": float, "mode": str, "policies": str, "active_vcs": int, "collisions": int,
    **{name: float for measured in MEASURED for name in (f"measured_{measured}", f"measured_{measured}_age_s")},
}  # fmt: skip

_FLOW: dict[str, type] = {
    "switch": str, "port": int, "traffic_class": int, "flow": str, "slot": int, "protocol": str, "src": str, "src_port": int,
    "dst": str, "dst_port": int, "vid": int, "waiting_packets": int, "qthresh_packets": int, "weight": float, "packets": int, "bytes": int,
    "dropped_packets": int, "dropped_bytes": int, "offered_bps": float, "goodput_bps": float, "drops_per_s": float, "idle_s": float,
}  # fmt: skip

_VC: dict[str, type] = {
    "switch": str, "port": int, "vc": str, "slot": int, "mcr_bps": float, "w_bps": float, "rate_bps": float, "waiting_cells": int,
    "arrived_packets": int, "accepted_packets": int, "refused_packets": int, "offered_bps": float, "goodput_bps": float,
    "drops_per_s": float, "active": bool, "mcr_met": str, "verdicts": str,
}  # fmt: skip

_DROP: dict[str, type] = {
    "switch": str, "port": int, "reason": str, "packets": int, "per_s": float, "by": str,
}  # fmt: skip


def _flow(row: FlowRow) -> dict[str, Cell]:
    return {name: getattr(row, name) for name in _FLOW}


def _vc(row: VcRow) -> dict[str, Cell]:
    met = served(row)
    flat: dict[str, Cell] = {name: getattr(row, name) for name in _VC if hasattr(row, name)}
    verdicts = {name: dict(cells) for name, cells in row.verdicts.items()}
    return flat | {"mcr_met": met.value if met else None, "verdicts": json.dumps(verdicts)}


TABLES: dict[Kind, Table] = {
    "ports": Table(_PORT, _ports),
    "flows": Table(_FLOW, lambda snapshot: [_flow(row) for row in snapshot.flows]),
    "vcs": Table(_VC, lambda snapshot: [_vc(row) for row in snapshot.vcs]),
    "drops": Table(_DROP, lambda snapshot: [{n: getattr(row, n) for n in _DROP} for row in snapshot.drops]),
}


def columns_of(kind: Kind) -> dict[str, type]:
    """All columns of a kind, `time_s` (Unix time) first."""
    return {"time_s": float, **TABLES[kind].columns}


def rows_of(kind: Kind, snapshot: Snapshot) -> list[dict[str, Cell]]:
    """The rows of one snapshot."""
    return [{"time_s": round(snapshot.time_s, 6), **row} for row in TABLES[kind].rows(snapshot)]
