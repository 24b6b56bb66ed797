# SPDX-License-Identifier: Apache-2.0
"""Goodput from a sink's samples: new application bytes received in one wall-clock window common to all flows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import HostsError
from .records import Record

Series = list[tuple[int, int]]


@dataclass(frozen=True)
class FlowGoodput:
    """One connection's goodput in the window."""

    peer: str
    bytes: float
    rate_bps: float


def series_by_peer(records: Iterable[Record]) -> dict[str, Series]:
    """(t_ns, bytes so far) of each connection, by the sender's address and port, in time order."""
    found: dict[str, Series] = {}
    for record in records:
        if "bytes" in record and "peer" in record:
            found.setdefault(record["peer"], []).append((record["t_ns"], record["bytes"]))
    return found


def bytes_at(series: Series, t_ns: int) -> float:
    """Bytes received until `t_ns`, linear between two samples, flat outside of them."""
    index = bisect_right(series, (t_ns, 1 << 62))
    if index == 0:
        return float(series[0][1])
    if index == len(series):
        return float(series[-1][1])
    (t0, b0), (t1, b1) = series[index - 1], series[index]
    return b0 + (b1 - b0) * (t_ns - t0) / (t1 - t0)


def goodput(records: Iterable[Record], from_ns: int, to_ns: int) -> list[FlowGoodput]:
    """Goodput of each connection in [from_ns, to_ns), CLOCK_MONOTONIC. Raises HostsError `option` on an empty window."""
    if to_ns <= from_ns:
        raise HostsError("option", f"the window from {from_ns} to {to_ns} ns is empty")
    window_s = (to_ns - from_ns) / 1e9
    result = list[FlowGoodput]()
    for peer, series in series_by_peer(records).items():
        received = bytes_at(series, to_ns) - bytes_at(series, from_ns)
        result.append(FlowGoodput(peer, received, received * 8 / window_s))
    return result
