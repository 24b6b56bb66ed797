# SPDX-License-Identifier: Apache-2.0
"""The GFR equations against the numbers of the GFR paper and of docs/p4.md."""

from __future__ import annotations

import pytest
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
    assert gfr.jain_index([LINE_BPS / 5 / share for share in shares]) == pytest.approx(0.92, abs=0.002)


def test_jain_index() -> None:
    assert gfr.jain_index([3, 3, 3]) == 1.0
    assert gfr.jain_index([1, 0, 0, 0]) == 0.25
    assert gfr.jain_index([0, 0]) == gfr.jain_index([]) == 0.0


def test_shares_follow_weights_of_the_rest() -> None:
    assert gfr.guaranteed_shares([1e6, 1e6], 8e6, [1, 2]) == pytest.approx([3e6, 5e6])
    assert gfr.guaranteed_shares([], 1e6) == []


@given(ratio=st.floats(1e-4, 0.9999), total=st.floats(1e5, 1e11))
def test_fixed_point_of_shares_is_within_half_a_unit(ratio: float, total: float) -> None:
    words = gfr.share_words(max(1.0, ratio * total), total)
    true = max(1.0, ratio * total) / total
    assert words["share"] == pytest.approx(true * 65_536, abs=0.51)
    assert words["inv_share"] == pytest.approx(65_536 / true, abs=0.51)
    assert words["inv_rest"] == pytest.approx(65_536 / (1 - true), rel=1e-6, abs=0.51)
    assert 1 <= words["weight"] <= gfr.WEIGHT_MAX


def test_fixed_point_saturates() -> None:
    alone = gfr.share_words(LINE_BPS, LINE_BPS)
    whole = {"w": LINE_BPS, "weight": LINE_BPS, "share": 65_536, "inv_share": 65_536, "inv_rest": gfr.MAX_32}
    assert alone == whole
    assert gfr.share_words(1, 1e12)["inv_share"] == gfr.MAX_32


def test_a_vc_to_which_nothing_is_left_has_a_bit_a_second() -> None:
    assert gfr.share_words(0.0, 1e6) == gfr.share_words(1.0, 1e6)


def test_the_meter_s_rate_is_mcr_on_the_line() -> None:
    frame = 1014  # a segment of 960 bytes
    meter, marked = gfr.police_meters(2e6, 10e6, 200, frame, LINE_BPS)
    line_bits_a_byte = gfr.cells_of_frame(frame) * 53 * 8 / frame
    assert meter.cir * line_bits_a_byte == pytest.approx(2e6, rel=1e-5)
    assert meter.pir * line_bits_a_byte == pytest.approx(10e6, rel=1e-5)
    assert meter.cburst / frame * gfr.cells_of_frame(frame) == pytest.approx(200, rel=1e-3)
    assert meter.pburst == pytest.approx(meter.pir * 0.01, abs=1)
    assert (marked.cir, marked.cburst) == (marked.pir, marked.pburst) == (meter.pir, meter.pburst)


@given(packet=st.integers(28, 9000))
def test_a_full_line_is_never_above_a_pcr_of_its_own_rate(packet: int) -> None:
    meter, _ = gfr.police_meters(2e6, LINE_BPS, 200, 1514, LINE_BPS)
    assert gfr.frame_rate_bytes(LINE_BPS, packet + 14) <= meter.pir


def test_a_slow_peak_still_lets_two_frames_follow_each_other() -> None:
    assert gfr.police_meters(1e4, 1e5, 200, 1514, LINE_BPS)[0].pburst == 3028
