#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes include/gfr/rate_entries.p4, which is not in git: the tables over time of eq. (2) as straight lines on dyadic pieces.

`make setup` and `make p4` run this.

A piece is [begin, begin + 2^bits) microseconds with begin a multiple of 2^bits, so a longest-prefix match finds it.
Pieces are halved until the line misses the function by at most a given part of its value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

K_US = 500_000
"""Time constant of the time-weighted form."""
DT_BITS = 27
"""Times up to 2^27 us, 134 s."""
BURST_BITS = 6
"""1/T begins at 2^6 us = RATE_BURST_US."""
KEY_BITS = 32
H_MAX_ERROR = 1e-4
"""Relative; twice that can show, where gain and decay err to opposite sides."""
RECIPROCAL_MAX_ERROR = 5e-4

H_FRACTION_BITS = 50
H_SLOPE_BITS = 20
RECIPROCAL_FRACTION_BITS = 24
RECIPROCAL_SLOPE_BITS = 12
SHIFT_OF_RATE = 10
"""l/T in 1/256 bit/s is (cells * 6625000 * reciprocal) >> (SHIFT_OF_RATE + e); 6625000 is 828125 * 2^3."""

OUTPUT = Path(__file__).resolve().parent / "include" / "gfr" / "rate_entries.p4"


@dataclass(frozen=True)
class Piece:
    """value(t) = start - (slope * (t - begin) >> slope's fraction bits) for begin <= t < begin + 2^bits."""

    begin: int
    bits: int
    start: int
    slope: int

    @property
    def width(self) -> int:
        return 1 << self.bits

    def key(self) -> str:
        """As a prefix: value &&& mask."""
        mask = ((1 << KEY_BITS) - 1) ^ (self.width - 1)
        return f"0x{self.begin:08x} &&& 0x{mask:08x}"

    def value(self, t: int, slope_bits: int) -> int:
        return self.start - (self.slope * (t - self.begin) >> slope_bits)


def h(dt_us: float) -> float:
    """(1 - e^(-dt/K)) / dt, per us."""
    return -math.expm1(-dt_us / K_US) / dt_us if dt_us else 1 / K_US


def fit(function: Callable[[float], float], begin: int, bits: int, scale: int, slope_bits: int) -> Piece:
    """The line through the end points (the function is convex), lowered to the middle between chord and tangent."""
    last = begin + (1 << bits) - 1
    first_value, last_value = function(begin), function(last)
    width = max(1, last - begin)
    slope = (first_value - last_value) / width
    gap = max(
        (first_value - slope * (t - begin)) / function(t) - 1 for t in (begin + width * i / 16 for i in range(17))
    )
    start = round(first_value * (1 - gap / 2) * scale)
    return Piece(begin, bits, start, round(slope * (1 - gap / 2) * scale * (1 << slope_bits)))


def worst(piece: Piece, function: Callable[[float], float], scale: int, slope_bits: int) -> float:
    """Largest relative error at integer times of the piece, of 65 looked at."""
    times = {piece.begin + (piece.width - 1) * i // 64 for i in range(65)}
    return max(abs(piece.value(t, slope_bits) / (function(t) * scale) - 1) for t in times)


def cover(
    function: Callable[[float], float], begin: int, bits: int, scale: int, slope_bits: int, max_error: float
) -> Iterator[Piece]:
    """Pieces of [begin, begin + 2^bits), in order."""
    piece = fit(function, begin, bits, scale, slope_bits)
    if worst(piece, function, scale, slope_bits) <= max_error:
        yield piece
    else:
        yield from cover(function, begin, bits - 1, scale, slope_bits, max_error)
        yield from cover(function, begin + (1 << bits - 1), bits - 1, scale, slope_bits, max_error)


def h_pieces() -> list[Piece]:
    """h(dt) in 2^-50 per us, 0 <= dt < 2^27."""
    return list(cover(h, 0, DT_BITS, 1 << H_FRACTION_BITS, H_SLOPE_BITS, H_MAX_ERROR))


def reciprocal_cover(e: int) -> Iterator[Piece]:
    """1/T in 2^-(24 + e) for 2^e <= T < 2^(e+1)."""
    scale = 1 << RECIPROCAL_FRACTION_BITS + e
    return cover(lambda t: 1 / t, 1 << e, e, scale, RECIPROCAL_SLOPE_BITS, RECIPROCAL_MAX_ERROR)


def reciprocal_pieces() -> list[tuple[Piece, int]]:
    """Those pieces, each with its e, 2^6 <= T < 2^27."""
    return [(piece, e) for e in range(BURST_BITS, DT_BITS) for piece in reciprocal_cover(e)]


def text() -> str:
    """The P4 file."""
    first, *others = h_pieces()
    h_lines = [f"    {p.key()} : set_h({p.start}, {p.slope}, 0x{p.width - 1:x});" for p in others]
    reciprocal_lines = [
        f"    {p.key()} : set_reciprocal({p.start}, {p.slope}, 0x{p.width - 1:x}, {SHIFT_OF_RATE + e});"
        for p, e in reciprocal_pieces()
    ]
    out = [
        "// SPDX-License-Identifier" + ": Apache-2.0",  # not this file's own
        "// Entries of the tables of eq. (2), written by p4src/rate_table.py; do not edit.",
        "#ifndef FAIRLANE_GFR_RATE_ENTRIES_P4",
        "#define FAIRLANE_GFR_RATE_ENTRIES_P4",
        "",
        "// The first piece of h, of a busy VC, needs no table.",
        f"#define RATE_H_FIRST_US {first.width}",
        f"#define RATE_H_FIRST_START {first.start}",
        f"#define RATE_H_FIRST_SLOPE {first.slope}",
        "",
    ]
    for name, lines in (("RATE_H", h_lines), ("RATE_RECIPROCAL", reciprocal_lines)):
        out += [f"#define {name}_ENTRIES \\"]
        out += [f"{line} \\" for line in lines[:-1]] + [lines[-1], ""]
    return "\n".join([*out, "#endif", ""])


def write() -> None:
    """Write the file, unless it is there already."""
    wanted = text()
    if not OUTPUT.exists() or OUTPUT.read_text() != wanted:
        OUTPUT.write_text(wanted)


if __name__ == "__main__":
    write()
