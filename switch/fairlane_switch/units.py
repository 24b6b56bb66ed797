# SPDX-License-Identifier: Apache-2.0
"""What the commands of links take and show beyond `fairlane_controller.units`: times in µs, as the wire has them, and shares."""

from __future__ import annotations

from fairlane_controller.errors import ErrorCode, bad_input
from fairlane_controller.units import format_time, parse_time

_SHARES = "0.01, 1%, 1e-5"


def parse_time_us(text: str, what: str = "time") -> float:
    """Microseconds of `100ms`, `5s`, in whole ns; zero needs no unit. Raises FairlaneError BAD_INPUT."""
    return round(parse_time(text, what) * 1e6, 3)


def format_us(time_us: float) -> str:
    """`290 ms`, `1.5 s`."""
    return format_time(time_us / 1e6)


def parse_share(text: str, what: str = "share") -> float:
    """A probability: `0.01`, `1%`, `1e-5`. Raises FairlaneError BAD_INPUT or OUT_OF_RANGE."""
    number, percent = text.strip(), 1
    if number.endswith("%"):
        number, percent = number[:-1].rstrip(), 100
    try:
        share = float(number) / percent
    except ValueError:
        message = f"{what} {text!r} is not a probability; examples: {_SHARES}"
        raise bad_input(message) from None
    if not 0 <= share <= 1:
        message = f"{what} {text!r} is out of range; allowed: 0 to 1 (100%)"
        raise ErrorCode.OUT_OF_RANGE(message)
    return share
