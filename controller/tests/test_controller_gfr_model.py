# SPDX-License-Identifier: Apache-2.0
"""The GFR equations against the numbers of the GFR paper and of docs/p4.md."""

from __future__ import annotations

import pytest
from fairlane_controller.errors import FairlaneError
from fairlane_controller.programs.gfr import model as gfr
from hypothesis import given
from hypothesis import strategies as st

LINE_BPS = 51_840_000


@pytest.mark.parametrize(
    ("packet_bytes", "cells"), [(0, 1), (40, 1), (41, 2), (88, 2), (89, 3), (952, 20), (953, 21), (1000, 21), (1500, 32)]
)  # fmt: skip
def test_cells_as_aal5_packs_them(packet_bytes: int, cells: int) -> None:
    assert gfr.cells_of_packet(packet_bytes) == cells
    assert gfr.cells_of_frame(packet_bytes + 14) == cells


def test_a_runt_is_a_cell() -> None:
    assert gfr.cells_of_frame(0) == gfr.cells_of_frame(6) == 1


@pytest.mark.parametrize(
    ("mcr", "mss", "cells", "ideal"),
    [
        # algorithms: peer to peer in the paper's cells and with real ones, parking lot, equal MCR with an MSS mix
        ((2, 4, 6, 8, 10), 960, 20, (5.77, 7.58, 9.39, 11.20, 13.01)),
        ((3, 6, 9, 3, 6, 9), 960, 20, (5.11, 7.82, 10.54, 5.11, 7.82, 10.54)),
    ],
)
def test_ideal_goodputs_of_the_paper(
    mcr: tuple[int, ...], mss: int, cells: int, ideal: tuple[float, ...]
) -> None:  # fmt: skip
    shares = gfr.guaranteed_shares([rate * 1e6 for rate in mcr], LINE_BPS)
    assert sum(shares) == pytest.approx(LINE_BPS)
    goodputs = [gfr.ideal_goodput_bps(w, mss, cells) / 1e6 for w in shares]
    assert goodputs == pytest.approx(ideal, abs=0.006)


@pytest.mark.parametrize("mcr", [(2, 4, 6, 8, 10), (3, 6, 9, 3, 6, 9)])
def test_ideal_totals_in_paper_and_in_real_cells(mcr: tuple[int, ...]) -> None:
    shares = gfr.guaranteed_shares([rate * 1e6 for rate in mcr], LINE_BPS)
    assert sum(gfr.ideal_goodput_bps(w, 960, 20) for w in shares) / 1e6 == pytest.approx(46.95, abs=0.005)
    real = gfr.cells_of_packet(1000)
    assert sum(gfr.ideal_goodput_bps(w, 960, real) for w in shares) / 1e6 == pytest.approx(44.71, abs=0.005)


def test_ideal_total_of_the_mss_mix() -> None:
    shares = gfr.guaranteed_shares([6e6] * 6, LINE_BPS)
    real = [
        gfr.ideal_goodput_bps(w, m, gfr.cells_of_packet(m + 40))
        for w, m in zip(shares, (960, 3480, 7680) * 2, strict=True)
    ]
    assert sum(real) / 1e6 == pytest.approx(45.78, abs=0.015)


def test_an_equal_split_already_scores_high() -> None:
    shares = gfr.guaranteed_shares([2e6, 4e6, 6e6, 8e6, 10e6], LINE_BPS)
    assert gfr.jain_index([LINE_BPS / 5] * 5, shares) == pytest.approx(0.92, abs=0.002)


def test_jain_index() -> None:
    assert gfr.jain_index([3, 3, 3]) == 1.0
    assert gfr.jain_index([1, 0, 0, 0]) == 0.25
    assert gfr.jain_index([0, 0]) == gfr.jain_index([]) == 0.0
    assert gfr.jain_index([2, 4], [1, 2]) == 1.0
    with pytest.raises(FairlaneError, match="ideal rate 0 is out of range"):
        gfr.jain_index([1, 1], [0, 1])


def test_shares_follow_weights_of_the_rest() -> None:
    assert gfr.guaranteed_shares([1e6, 1e6], 8e6, [1, 2]) == pytest.approx([3e6, 5e6])
    assert gfr.guaranteed_shares([], 1e6) == []
    with pytest.raises(FairlaneError, match="weight 0 is out of range: it must be greater than 0"):
        gfr.guaranteed_shares([1e6], 2e6, [0])
    with pytest.raises(FairlaneError, match=r"the sum of all MCR 3000000 is out of range: .* 0 and 2000000 bit/s"):
        gfr.guaranteed_shares([1e6, 2e6], 2e6)


@pytest.mark.parametrize(
    ("qt", "q", "over"),
    [
        (0, 200, False), (0, 201, True),  # below LBO the threshold is LBO/N
        (1000, 200, False), (1000, 201, True), (2000, 400, False), (2000, 401, True),
        (3000, 600, False), (4000, 600, False), (4000, 601, True),  # above HBO it is HBO/N
    ],
)  # fmt: skip
def test_threshold_at_its_boundaries(qt: int, q: int, over: bool) -> None:
    assert gfr.over_threshold(q, qt, 1000, 3000, 5) is over
    assert (q > gfr.threshold_cells(qt, 1000, 3000, 5)) is over


@given(
    q=st.integers(0, 65_535), qt=st.integers(0, 65_535), lbo=st.integers(0, 30_000), span=st.integers(1, 30_000), n=st.integers(1, 4096)
)  # fmt: skip
def test_the_threshold_without_division_is_the_paper_s(q: int, qt: int, lbo: int, span: int, n: int) -> None:
    bounded = min(max(qt, lbo), lbo + span)
    assert gfr.over_threshold(q, qt, lbo, lbo + span, n) == (q * n > bounded)
    assert gfr.threshold_cells(qt, lbo, lbo + span, n) == bounded / n


@given(ratio=st.floats(1e-4, 0.9999), total=st.floats(1e5, 1e11))
def test_fixed_point_of_shares_is_within_half_a_unit(ratio: float, total: float) -> None:
    words = gfr.share_words(max(1.0, ratio * total), total, total)
    true = max(1.0, ratio * total) / total
    assert words.share == pytest.approx(true * 65_536, abs=0.51)
    assert words.inv_share == pytest.approx(65_536 / true, abs=0.51)
    assert words.inv_rest == pytest.approx(65_536 / (1 - true), rel=1e-6, abs=0.51)
    assert 1 <= words.weight <= gfr.WEIGHT_MAX


def test_fixed_point_saturates_and_refuses() -> None:
    alone = gfr.share_words(LINE_BPS, LINE_BPS, LINE_BPS)
    assert (alone.share, alone.inv_share, alone.inv_rest, alone.weight) == (65_536, 65_536, gfr.MAX_32, LINE_BPS)
    assert gfr.share_words(1, 1e12, 1e12).inv_share == gfr.MAX_32
    with pytest.raises(FairlaneError, match="w_i 0 is out of range"):
        gfr.share_words(0, 1e6, 1e6)
    assert gfr.inverse_span(1000, 3000) == 2_147_484
    assert gfr.inverse_span(1000, 1001) == gfr.MAX_32
    with pytest.raises(FairlaneError, match="LBO 3000 is out of range: it must be between 0 and 2999 cells"):
        gfr.inverse_span(3000, 3000)
    assert gfr.fixed_8("z", 0.8) == 205
    with pytest.raises(FairlaneError, match=r"alpha 1.5 is out of range: it must be between 0 and 1"):
        gfr.fixed_8("alpha", 1.5, 1.0)


def test_the_meter_s_rate_is_mcr_on_the_line() -> None:
    frame = 1014  # a segment of 960 bytes
    settings = gfr.police_settings(2e6, 10e6, 200, frame, LINE_BPS)
    assert gfr.line_rate_bps(settings.cir_bytes_per_s, frame) == pytest.approx(2e6, rel=1e-5)
    assert gfr.line_rate_bps(settings.pir_bytes_per_s, frame) == pytest.approx(10e6, rel=1e-5)
    assert settings.cburst_bytes / frame * gfr.cells_of_frame(frame) == pytest.approx(200, rel=1e-3)
    assert settings.pburst_bytes == pytest.approx(settings.pir_bytes_per_s * 0.01, abs=1)
    marked = gfr.police_marked_settings(settings)
    assert (marked.cir_bytes_per_s, marked.cburst_bytes) == (marked.pir_bytes_per_s, marked.pburst_bytes)
    assert marked.pir_bytes_per_s == settings.pir_bytes_per_s


@given(packet=st.integers(28, 9000))
def test_a_full_line_is_never_above_a_pcr_of_its_own_rate(packet: int) -> None:
    settings = gfr.police_settings(2e6, LINE_BPS, 200, 1514, LINE_BPS)
    assert gfr.frame_rate_bytes(LINE_BPS, packet + 14) <= settings.pir_bytes_per_s


def test_a_slow_peak_still_lets_two_frames_follow_each_other() -> None:
    assert gfr.police_settings(1e4, 1e5, 200, 1514, LINE_BPS).pburst_bytes == 3028


def test_drain_time() -> None:
    assert gfr.drain_time_s(4000, LINE_BPS) == pytest.approx(0.0327, abs=1e-4)
