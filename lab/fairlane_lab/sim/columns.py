# SPDX-License-Identifier: Apache-2.0
"""The simulator's samples as arrays: one row a sample, columns by the names that netsim gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """`t_s` and the columns beside it, in plain units (a column that is not there is None)."""

    t_s: Values
    _columns: Mapping[str, bytes]

    @classmethod
    def of(cls, series: Mapping[str, bytes]) -> Columns:
        """From `native.Simulation.series()`: little-endian u64."""
        return cls(_values(series.get("t_ns", b"")) / 1e9, series)

    def flow(self, flow: str, what: str) -> Values | None:
        """Of a TCP flow: `cwnd`, `ssthresh` (packets), `srtt_ns`, `received_bytes`, `in_flight` (packets)."""
        return self._get(f"flow/{flow}/{what}")

    def port(self, switch: str, port: int, what: str) -> Values | None:
        """Of a sampled port: `waiting_packets`, `tx_bytes`."""
        return self._get(f"port/{switch}/{port}/{what}")

    def register(self, switch: str, register: str, index: int) -> Values | None:
        """Of a sampled register's element."""
        return self._get(f"register/{switch}/{register}/{index}")

    def window(self, start_s: float, end_s: float) -> NDArray[np.bool_]:
        """Which samples lie in (start, end]."""
        return (self.t_s > start_s + 1e-9) & (self.t_s <= end_s + 1e-9)

    def _get(self, name: str) -> Values | None:
        column = self._columns.get(name)
        return None if column is None else _values(column)


def mean(values: Values | None, chosen: NDArray[np.bool_], *, positive: bool = False) -> float | None:
    """Mean of the chosen samples (`positive`: of those above 0); None when there are none."""
    if values is None:
        return None
    picked = values[chosen]
    if positive:
        picked = picked[picked > 0]
    return float(picked.mean()) if picked.size else None


def rates_bps(t_s: Values, total_bytes: Values) -> Values:
    """bit/s between each sample and the one before it; one fewer than samples."""
    return 8.0 * np.diff(total_bytes) / np.diff(t_s)


def _values(column: bytes) -> Values:
    return np.frombuffer(column, dtype="<u8").astype(np.float64)
