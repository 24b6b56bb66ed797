# SPDX-License-Identifier: Apache-2.0
"""What the page's history keeps of a snapshot: few numbers a port and flow, so that ten minutes of it are a small file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlane_controller.live.model import PortRow, Snapshot

FLOWS_A_PORT = 12
"""Lines of flows (or VCs) that a port's charts show: those that send most."""
FLOWS_IN_TABLES = 200
"""Rows of flows that the newest snapshot has."""


def point_of(snapshot: Snapshot) -> dict[str, Any]:
    """`{"t", "ports": {"s1:3": {…}}}` of the managed ports; None is a gap."""
    return {
        "t": round(snapshot.time_s, 3),
        "ports": {f"{row.switch}:{row.port}": _port(snapshot, row) for row in snapshot.managed_ports},
    }


def _port(snapshot: Snapshot, row: PortRow) -> dict[str, Any]:
    cells = row.scheme is not None
    drops = {
        drop.reason: round(drop.per_s, 2)
        for drop in snapshot.drops
        if drop.switch == row.switch and drop.port == row.port and drop.per_s is not None
    }
    if cells and row.drops_per_s is not None:
        drops["vcs"] = round(row.drops_per_s, 2)
    vcs = sorted(snapshot.vcs_of(row), key=lambda vc: -(vc.goodput_bps or 0.0))
    return {
        "waiting": row.waiting_cells if cells else row.waiting_packets,
        "tx": _whole(row.tx_bps),
        "rate": _whole(row.rate_bps),
        "bw": _whole(_value(row.measured, "bw_bps")),
        "t_res": _value(row.measured, "t_res_s"),
        "n_c": _value(row.measured, "n_c"),
        "lbo": row.lbo_cells,
        "hbo": row.hbo_cells,
        "thresholds": {
            str(p.traffic_class): p.qthresh_packets if p.scheme == "qthresh" else None for p in row.policies
        },
        "drops": drops,
        # flow: [waiting, threshold, goodput, drops/s]; VC: [waiting, w_i, goodput, drops/s, r_i]
        "flows": {
            flow.flow: [flow.waiting_packets, flow.qthresh_packets, _whole(flow.goodput_bps), _short(flow.drops_per_s)]
            for flow in snapshot.flows_of(row)[:FLOWS_A_PORT]
        },
        "vcs": {
            vc.vc: [vc.waiting_cells, _whole(vc.w_bps), _whole(vc.goodput_bps), _short(vc.drops_per_s), _whole(vc.rate_bps)]
            for vc in vcs[:FLOWS_A_PORT]
        },
    }  # fmt: skip


def picture_of(snapshot: Snapshot) -> dict[str, Any]:
    """The newest snapshot whole, but for flows beyond the first ones."""
    said = snapshot.to_json()
    if len(snapshot.flows) > FLOWS_IN_TABLES:
        most = sorted(snapshot.flows, key=lambda flow: -(flow.goodput_bps or 0.0))[:FLOWS_IN_TABLES]
        said["flows"] = [flow.to_json() for flow in most]
    said["flows_in_all"] = len(snapshot.flows)
    return said


def _value(measured: Mapping[str, Any] | None, key: str) -> float | None:
    got: Any = measured.get(key) if measured else None
    return got.get("value") if isinstance(got, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
