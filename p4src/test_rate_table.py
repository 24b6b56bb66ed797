# SPDX-License-Identifier: Apache-2.0
"""The tables of eq. (2): without a gap, within their bound."""

from __future__ import annotations

import rate_table


def test_pieces_of_h_follow_each_other_within_the_bound() -> None:
    end = 0
    for piece in rate_table.h_pieces():
        assert piece.begin == end
        end += piece.width
        error = rate_table.worst(piece, rate_table.h, 1 << rate_table.H_FRACTION_BITS, rate_table.H_SLOPE_BITS)
        assert error <= rate_table.H_MAX_ERROR
        assert max(piece.start, piece.slope) < 1 << 32
        assert piece.start * (piece.begin + piece.width) < 1 << 60  # dt * h, and room
    assert end == 1 << rate_table.DT_BITS


def test_pieces_of_the_reciprocal_follow_each_other_within_the_bound() -> None:
    end = 1 << rate_table.BURST_BITS
    for piece, e in rate_table.reciprocal_pieces():
        assert piece.begin == end
        assert piece.begin >> e == 1
        end += piece.width
        scale = 1 << rate_table.RECIPROCAL_FRACTION_BITS + e
        error = rate_table.worst(piece, lambda t: 1 / t, scale, rate_table.RECIPROCAL_SLOPE_BITS)
        assert error <= rate_table.RECIPROCAL_MAX_ERROR
        assert piece.slope < 1 << 32
        assert piece.start <= 1 << rate_table.RECIPROCAL_FRACTION_BITS
    assert end == 1 << rate_table.DT_BITS
