# SPDX-License-Identifier: Apache-2.0
"""Equations (5) to (9): the paper's links, the algebra between the equations, bounds and refusals."""

from __future__ import annotations

import math

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.qthresh import model as qthresh
from hypothesis import given
from hypothesis import strategies as st

RATES = st.floats(min_value=1e4, max_value=1e11)
T_RES = st.floats(min_value=0.0, max_value=10.0)
PACKETS = st.floats(min_value=40.0, max_value=9000.0)
CONNECTIONS = st.integers(min_value=1, max_value=10_000)


def test_equation_5_and_6_on_the_papers_first_link() -> None:
    assert qthresh.transmission_time_s(512e3, 1000) == pytest.approx(0.015625)
    assert qthresh.response_time_s(0.005, 0.001) == pytest.approx(0.011)


def test_equation_7_is_a_strict_bound() -> None:
    # T_res = 2 T_D exactly: W > 3, so 4.
    assert qthresh.smallest_window(8e6, 0.002, 1000) == 4
    assert qthresh.smallest_window(8e6, 0.0, 1000) == 2


def test_equation_8_by_hand() -> None:
    # 2 Mbit/s, 1000 bytes: T_D = 4 ms; T_res = 8 ms; two flows: 8 / 8 + 2.
    assert qthresh.best_window(2e6, 0.008, 1000, 2) == pytest.approx(3.0)


def test_exact_full_window_by_hand() -> None:
    # (8 + 4) / (2 * 4) = 1.5 packets each.
    assert qthresh.full_window(2e6, 0.008, 1000, 2) == 2
    assert qthresh.full_window(2e6, 0.004, 1000, 2) == 1


@pytest.mark.parametrize(
    ("rate_bps", "delay_s", "lowest", "highest"),
    [(512e3, 0.005, 5, 6), (1.5e6, 0.002, 5, 6), (2e6, 0.002, 6, 6), (5e6, 0.002, 6, 8)],
)
def test_default_k_gives_the_best_measured_values(rate_bps: float, delay_s: float, lowest: int, highest: int) -> None:
    # Behind the queue: 2 tau, two access links of 1 ms, the data packet's time on the 10 Mbit/s access link.
    t_res_s = qthresh.response_time_s(delay_s, 2 * 0.001 + 8 * 1000 / 10e6)
    plan = qthresh.plan(rate_bps, t_res_s, 1000, 2)
    assert lowest <= plan.qthresh_packets <= highest


@given(RATES, T_RES, PACKETS, CONNECTIONS)
def test_w_best_is_one_to_two_packets_more_than_the_full_window(
    rate_bps: float, t_res_s: float, packet_bytes: float, connections: int
) -> None:
    more = (
        qthresh.best_window(rate_bps, t_res_s, packet_bytes, connections)
        - (qthresh.packets_in_flight(rate_bps, t_res_s, packet_bytes) + 1) / connections
    )
    assert 1.0 - 1e-6 <= more <= 2.0 + 1e-6


@given(RATES, T_RES, PACKETS)
def test_smallest_window_exceeds_its_bound_by_at_most_one(rate_bps: float, t_res_s: float, packet_bytes: float) -> None:
    bound = qthresh.packets_in_flight(rate_bps, t_res_s, packet_bytes) + 1.0
    window = qthresh.smallest_window(rate_bps, t_res_s, packet_bytes)
    assert bound < window <= bound + 1.0


@given(RATES, T_RES, PACKETS, CONNECTIONS, st.floats(min_value=0.1, max_value=20), st.integers(2, 65_535))
def test_threshold_stays_in_its_bounds(
    rate_bps: float, t_res_s: float, packet_bytes: float, connections: int, weight: float, capacity: int
) -> None:
    plan = qthresh.plan(rate_bps, t_res_s, packet_bytes, connections, weight=weight, capacity_packets=capacity)
    assert qthresh.QTHRESH_MIN_PACKETS <= plan.qthresh_packets <= capacity


@given(RATES, st.tuples(T_RES, T_RES), PACKETS, CONNECTIONS)
def test_longer_response_never_lowers_the_threshold(
    rate_bps: float, t_res_s: tuple[float, float], packet_bytes: float, connections: int
) -> None:
    short, long = sorted(t_res_s)
    low = qthresh.plan(rate_bps, short, packet_bytes, connections).qthresh_packets
    assert low <= qthresh.plan(rate_bps, long, packet_bytes, connections).qthresh_packets


@given(st.floats(min_value=2, max_value=1000), st.floats(min_value=1.0, max_value=10))
def test_weight_multiplies(w_best: float, weight: float) -> None:
    one = qthresh.threshold(w_best, k=1.0)
    assert qthresh.threshold(w_best, k=1.0, weight=weight) == pytest.approx(one * weight)


def test_a_data_plane_that_counts_the_packet_in_service_needs_one_more() -> None:
    waiting = qthresh.plan(2e6, 0.008, 1000, 2)
    in_service = qthresh.plan(2e6, 0.008, 1000, 2, counts_in_service=True)
    assert in_service.qthresh_packets == waiting.qthresh_packets + 1


@given(st.floats(min_value=0, max_value=1e6))
def test_rounding_is_to_the_nearest_and_halves_go_up(value: float) -> None:
    assert abs(qthresh.round_half_up(value) - value) <= 0.5
    assert qthresh.round_half_up(math.floor(value) + 0.5) == math.floor(value) + 1


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((0.0, 0.01, 1000, 2), "rate_bps"),
        ((-1.0, 0.01, 1000, 2), "rate_bps"),
        ((math.nan, 0.01, 1000, 2), "rate_bps"),
        ((1e6, -0.01, 1000, 2), "delay_s|t_res"),
        ((1e6, 0.01, 0, 2), "packet_bytes"),
        ((1e6, 0.01, 1000, 0), "connections"),
    ],
)
def test_impossible_inputs_are_refused_by_name(arguments: tuple[float, float, float, float], names: str) -> None:
    with pytest.raises(FairlaneError, match=names) as caught:
        qthresh.plan(*arguments)
    assert caught.value.code is ErrorCode.OUT_OF_RANGE
    assert caught.value.exit_code == 2
