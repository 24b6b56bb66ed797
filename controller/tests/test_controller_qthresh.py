# SPDX-License-Identifier: Apache-2.0
"""Equations (5), (8) and (9): the paper's links, the algebra between the equations, bounds."""

from __future__ import annotations

import math

import pytest
from fairlane_controller.programs.qthresh.model import (
    QTHRESH_MIN_PACKETS,
    QthreshPlan,
    round_half_up,
)
from hypothesis import given
from hypothesis import strategies as st

RATES = st.floats(min_value=1e4, max_value=1e11)
T_RES = st.floats(min_value=0.0, max_value=10.0)
PACKETS = st.floats(min_value=40.0, max_value=9000.0)
CONNECTIONS = st.integers(min_value=1, max_value=10_000)


def test_equation_5_on_the_papers_first_link() -> None:
    assert QthreshPlan(512e3, 0.0, 1000, 1).t_d_s == pytest.approx(0.015625)


def test_equation_8_by_hand() -> None:
    # 2 Mbit/s, 1000 bytes: T_D = 4 ms; T_res = 8 ms; two flows: 8 / 8 + 2.
    assert QthreshPlan(2e6, 0.008, 1000, 2).w_best_packets == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("rate_bps", "delay_s", "lowest", "highest"),
    [(512e3, 0.005, 5, 6), (1.5e6, 0.002, 5, 6), (2e6, 0.002, 6, 6), (5e6, 0.002, 6, 8)],
)
def test_default_k_gives_the_best_measured_values(rate_bps: float, delay_s: float, lowest: int, highest: int) -> None:
    # Behind the queue: 2 tau, two access links of 1 ms, the data packet's time on the 10 Mbit/s access link.
    t_res_s = 2 * delay_s + 2 * 0.001 + 8 * 1000 / 10e6
    assert lowest <= QthreshPlan(rate_bps, t_res_s, 1000, 2).qthresh_packets <= highest


@given(RATES, T_RES, PACKETS, CONNECTIONS)
def test_w_best_is_one_to_two_packets_more_than_the_full_window(
    rate_bps: float, t_res_s: float, packet_bytes: float, connections: int
) -> None:
    plan = QthreshPlan(rate_bps, t_res_s, packet_bytes, connections)
    more = plan.w_best_packets - (plan.path_packets + 1) / connections
    assert 1.0 - 1e-6 <= more <= 2.0 + 1e-6


@given(RATES, T_RES, PACKETS, CONNECTIONS, st.floats(min_value=0.1, max_value=20), st.integers(2, 65_535))
def test_threshold_stays_in_its_bounds(
    rate_bps: float, t_res_s: float, packet_bytes: float, connections: int, weight: float, capacity: int
) -> None:
    plan = QthreshPlan(rate_bps, t_res_s, packet_bytes, connections, weight=weight, capacity_packets=capacity)
    assert QTHRESH_MIN_PACKETS <= plan.qthresh_packets <= capacity


@given(RATES, st.tuples(T_RES, T_RES), PACKETS, CONNECTIONS)
def test_longer_response_never_lowers_the_threshold(
    rate_bps: float, t_res_s: tuple[float, float], packet_bytes: float, connections: int
) -> None:
    low, high = (QthreshPlan(rate_bps, one, packet_bytes, connections).qthresh_packets for one in sorted(t_res_s))
    assert low <= high


@given(T_RES, st.floats(min_value=1.0, max_value=10))
def test_weight_multiplies(t_res_s: float, weight: float) -> None:
    one, more = (QthreshPlan(1e6, t_res_s, 1000, 2, 1.0, each).qthresh_exact_packets for each in (1.0, weight))
    assert more == pytest.approx(one * weight)


@given(st.floats(min_value=0, max_value=1e6))
def test_rounding_is_to_the_nearest_and_halves_go_up(value: float) -> None:
    assert abs(round_half_up(value) - value) <= 0.5
    assert round_half_up(math.floor(value) + 0.5) == math.floor(value) + 1
