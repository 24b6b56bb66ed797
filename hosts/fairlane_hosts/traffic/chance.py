# SPDX-License-Identifier: Apache-2.0
"""The chance of an application: seeded, and number for number the one of the simulator (switch/crates/netsim, chance.rs).

xoshiro256++ (Blackman & Vigna), its state filled by SplitMix64 from a hash of the run's seed and the flow's name.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

_MASK = (1 << 64) - 1
_SIZES = {
    "web_search": (
        (0.0, 0.15, 0.2, 0.3, 0.4, 0.53, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0),
        (6.0, 6.0, 13.0, 19.0, 33.0, 53.0, 133.0, 667.0, 1_333.0, 3_333.0, 6_667.0, 20_000.0),
    ),
    "data_mining": (
        (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0),
        (1.0, 1.0, 2.0, 3.0, 7.0, 267.0, 2_107.0, 66_667.0, 666_667.0),
    ),
}
"""Shares of flows, and the sizes (packets) that they are no larger than; sources: chance.rs."""


class Chance:
    """The numbers of the flow `name` in a run with `seed`."""

    def __init__(self, seed: int, name: str) -> None:
        # FNV-1a over the seed's eight bytes and the name.
        value = 0xCBF2_9CE4_8422_2325
        for byte in (seed & _MASK).to_bytes(8, "little") + b"flow/" + name.encode():
            value = ((value ^ byte) * 0x0100_0000_01B3) & _MASK
        self._state: list[int] = []
        for _ in range(4):
            value, word = _split_mix(value)
            self._state.append(word)

    def _next(self) -> int:
        s = self._state
        result = (_rotate((s[0] + s[3]) & _MASK, 23) + s[0]) & _MASK
        t = (s[1] << 17) & _MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = _rotate(s[3], 45)
        return result

    def draw(self, distribution: str, mean: float, shape: float) -> float:
        """A positive number with this mean: one draw, whatever the distribution; `shape` (above 1) is Pareto's."""
        unit = ((self._next() >> 11) + 1) / (1 << 53)
        if distribution == "fixed":
            return mean
        if distribution == "exponential":
            return -mean * math.log(unit)
        if distribution in _SIZES:
            return mean * _quantile(*_SIZES[distribution], unit)
        # P(X > x) = (x_min / x)^shape; the mean is shape · x_min / (shape - 1).
        return mean * (shape - 1) / shape / unit ** (1 / shape)


def _quantile(shares: Sequence[float], sizes: Sequence[float], u: float) -> float:
    """The size below which a share `u` of the flows is, straight lines between the points, where their mean is 1."""
    parts = [(b - a) * (x + y) / 2 for (a, b), (x, y) in zip(pairwise(shares), pairwise(sizes), strict=True)]
    above = max(1, bisect_left(shares, u))
    (u0, u1), (x0, x1) = shares[above - 1 : above + 1], sizes[above - 1 : above + 1]
    return (x0 + (x1 - x0) * (u - u0) / (u1 - u0)) / sum(parts)


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK


def _split_mix(state: int) -> tuple[int, int]:
    """SplitMix64: the next state and its output."""
    state = (state + 0x9E37_79B9_7F4A_7C15) & _MASK
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & _MASK
    return state, z ^ (z >> 31)
