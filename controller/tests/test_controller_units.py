# SPDX-License-Identifier: Apache-2.0
"""Units in and out, and what is said about those that are wrong."""

from __future__ import annotations

import pytest
from fairlane_controller.errors import FairlaneError
from fairlane_controller.units import counted, format_rate, format_size, format_time, parse_rate, parse_size, parse_time
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "value"),
    [("2Mbit", 2e6), ("2Mbps", 2e6), ("512 kbit", 512e3), ("2000000", 2e6), ("1.5Gbit/s", 1.5e9), (".5mbit", 5e5)],
)
def test_rates(text: str, value: float) -> None:
    assert parse_rate(text) == pytest.approx(value)


@pytest.mark.parametrize(("text", "value"), [("5ms", 5e-3), ("200us", 2e-4), ("1.5s", 1.5), ("0", 0.0), ("3 µs", 3e-6)])
def test_times(text: str, value: float) -> None:
    assert parse_time(text) == pytest.approx(value)


@pytest.mark.parametrize(("text", "value"), [("1000", 1000), ("64KB", 64_000), ("64KiB", 65_536), ("1500B", 1500)])
def test_sizes(text: str, value: int) -> None:
    assert parse_size(text) == value


@pytest.mark.parametrize(
    "text", ["", "fast", "2Zbit", "2MB", "2MB/s", "2MBps", "-1Mbit", "1e6", "2 M bit", "9" * 400 + "Gbit"]
)
def test_a_bad_rate_is_refused_with_examples(text: str) -> None:
    with pytest.raises(FairlaneError, match=r"--rate .*examples: 512kbit"):
        parse_rate(text, "--rate")


def test_a_time_needs_a_unit() -> None:
    with pytest.raises(FairlaneError, match="--delay '5' is not a number with a unit; examples: 200us, 5ms"):
        parse_time("5", "--delay")


def test_a_size_is_a_whole_number_of_bytes() -> None:
    with pytest.raises(FairlaneError, match="whole number of bytes"):
        parse_size("0.5B")


@given(st.floats(min_value=1, max_value=9e11))
def test_a_printed_rate_can_be_read_again(rate_bps: float) -> None:
    assert parse_rate(format_rate(rate_bps)) == pytest.approx(rate_bps, rel=1e-3, abs=0.1)


@given(st.floats(min_value=1e-9, max_value=1e4))
def test_a_printed_time_can_be_read_again(seconds: float) -> None:
    assert parse_time(format_time(seconds)) == pytest.approx(seconds, rel=1e-3)


def test_nothing_is_a_dash() -> None:
    assert (format_rate(None), format_time(None), format_size(None)) == ("-", "-", "-")


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "switch", "1 switch"), (2, "switch", "2 switches"), (0, "entry", "0 entries"), (1, "entry", "1 entry"), (3, "key", "3 keys"),
        (2, "VC", "2 VCs"),
    ],
)  # fmt: skip
def test_one_is_not_several(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text
