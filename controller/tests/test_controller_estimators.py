# SPDX-License-Identifier: Apache-2.0
"""Quantile windows in virtual time: robust to what only adds, quick when the thing itself changes."""

from __future__ import annotations

import math
import random

import pytest
from fairlane_controller.measure.estimators import QuantileWindow, Shift
from hypothesis import given
from hypothesis import strategies as st


def test_empty_window_says_nothing() -> None:
    window = QuantileWindow(0.5, 10)
    assert window.estimate(0.0) is None
    window.add(0.0, 1.0)
    assert window.estimate(10.1) is None


def test_age_and_count() -> None:
    window = QuantileWindow(0.5, 10)
    for i in range(5):
        window.add(float(i), 3.0)
    got = window.estimate(6.0)
    assert got is not None
    assert (got.value, got.count, got.age_s, got.uncertainty) == (3.0, 5, 2.0, 0.0)


def test_two_observations_have_no_interval() -> None:
    window = QuantileWindow(0.5, 10)
    window.add(0.0, 1.0)
    window.add(0.1, 2.0)
    got = window.estimate(0.2)
    assert got is not None
    assert math.isinf(got.uncertainty)


def test_delayed_acks_do_not_move_a_low_quantile() -> None:
    rng = random.Random(1)
    window = QuantileWindow(0.25, 10)
    for i in range(200):
        delayed = 0.040 if rng.random() < 0.4 else 0.0
        window.add(i * 0.05, 0.0070 + rng.random() * 0.0002 + delayed)
    got = window.estimate(10.0)
    assert got is not None
    assert got.value == pytest.approx(0.0071, rel=0.02)
    assert got.uncertainty < 0.0005


@pytest.mark.parametrize("factor", [0.2, 0.8, 1.3, 5.0])
def test_a_change_shows_after_shift_count_observations(factor: float) -> None:
    window = QuantileWindow(0.5, 60, shift_count=4, shift_ratio=0.15)
    for i in range(100):
        window.add(i * 0.2, 2.0e6)
    shifts = [window.add(20 + i * 0.2, 2.0e6 * factor) for i in range(4)]
    got = window.estimate(21.0)
    assert got is not None
    assert got.value == pytest.approx(2.0e6 * factor)
    assert shifts == [None, None, None, Shift(2.0e6, 2.0e6 * factor, 20.0, 4)]


def test_noise_is_no_change() -> None:
    rng = random.Random(2)
    window = QuantileWindow(0.5, 60, shift_count=4, shift_ratio=0.15)
    for i in range(2000):
        assert window.add(i * 0.02, 2.0e6 * (1 + rng.uniform(-0.1, 0.1))) is None


@given(st.lists(st.floats(min_value=0.001, max_value=1000), min_size=1, max_size=60), st.floats(0.0, 1.0))
def test_the_estimate_is_one_of_the_observations(values: list[float], quantile: float) -> None:
    window = QuantileWindow(quantile, 1e9, shift_count=0)
    for i, value in enumerate(values):
        window.add(float(i), value)
    got = window.estimate(float(len(values)))
    assert got is not None
    assert got.value in values
    below = sum(v <= got.value for v in values)
    assert below >= quantile * len(values) - 1e-6


def test_memory_is_bounded() -> None:
    window = QuantileWindow(0.5, 1e9, max_samples=100)
    for i in range(1000):
        window.add(float(i), 1.0)
    got = window.estimate(1000.0)
    assert got is not None
    assert got.count == 100


@pytest.mark.parametrize(("value", "weight"), [(math.nan, 1.0), (math.inf, 1.0), (1.0, 0.0), (1.0, -1.0)])
def test_unusable_observations_are_refused(value: float, weight: float) -> None:
    with pytest.raises(ValueError, match="not usable"):
        QuantileWindow(0.5, 10).add(0.0, value, weight)
