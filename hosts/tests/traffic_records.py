# SPDX-License-Identifier: Apache-2.0
"""JSON lines of `fairlane-traffic`, read back."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file."""
    return map(json.loads, path.read_text().splitlines())


def read_summary(path: Path) -> Record:
    """The summary of a file, which is its last record."""
    return next(record["summary"] for record in read_records(path) if "summary" in record)


def goodput(records: Iterable[Record], from_ns: int, to_ns: int) -> dict[str, float]:
    """Goodput of each connection of a sink in a window that is common to all.

    Args:
        records: Of the sink's file.
        from_ns: CLOCK_MONOTONIC.
        to_ns: CLOCK_MONOTONIC, above `from_ns`.

    Returns:
        bit/s by the sender's address and port.
    """
    series = dict[str, list[tuple[int, int]]]()
    for record in records:
        if "peer" in record:
            series.setdefault(record["peer"], []).append((record["t_ns"], record["bytes"]))
    return {
        peer: (_bytes_at(points, to_ns) - _bytes_at(points, from_ns)) * 8e9 / (to_ns - from_ns)
        for peer, points in series.items()
    }


def _bytes_at(points: list[tuple[int, int]], t_ns: int) -> float:
    """Linear between two samples, flat outside of them."""
    index = bisect_right(points, t_ns, key=lambda point: point[0])
    (t0, b0), (t1, b1) = points[max(0, index - 1)], points[min(index, len(points) - 1)]
    return b0 + (b1 - b0) * (t_ns - t0) / (t1 - t0) if t1 > t0 else float(b0)
