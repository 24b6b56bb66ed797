# SPDX-License-Identifier: Apache-2.0
"""Text with a unit to numbers and back, as the commands of links take and show them: rates, times, shares."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"^\s*([0-9]+(?:\.[0-9]*)?(?:e-?[0-9]+)?|\.[0-9]+)\s*([A-Za-zµ%/]*)\s*$")
_RATES = {p + u: f for p, f in (("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9)) for u in ("bit", "bps", "bit/s")}
_TIMES_US = {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6, "min": 60e6}
_LARGEST_FACTOR = 1e9


class UnitError(ValueError):
    """A text that is no such quantity; says what is allowed."""


def _split(text: str, what: str, examples: str) -> tuple[float, str]:
    found = _NUMBER.match(text)
    if found is None:
        raise UnitError(f"{what} {text!r} is not a number with a unit; examples: {examples}")
    number = float(found.group(1))
    if not math.isfinite(number * _LARGEST_FACTOR):
        raise UnitError(f"{what} {text!r} is too large; examples: {examples}")
    return number, found.group(2).lower()


def parse_rate(text: str, what: str = "rate") -> int:
    """Bit/s of `500kbit`, `2Mbit`; a bare number is bit/s. Raises UnitError."""
    examples = "500kbit, 2Mbit, 1.5Gbit (powers of 1000; bits, never bytes)"
    number, unit = _split(text, what, examples)
    factor = 1.0 if not unit else _RATES.get(unit)
    if factor is None:
        raise UnitError(f"{what} {text!r} has an unknown unit; examples: {examples}")
    return round(number * factor)


def parse_time_us(text: str, what: str = "time") -> float:
    """Microseconds of `100ms`, `5s`; zero needs no unit. Raises UnitError."""
    examples = "200us, 100ms, 5s"
    number, unit = _split(text, what, examples)
    factor = 1.0 if not unit and number == 0 else _TIMES_US.get(unit)
    if factor is None:
        raise UnitError(f"{what} {text!r} has {'an unknown' if unit else 'no'} unit; examples: {examples}")
    return number * factor


def parse_share(text: str, what: str = "share") -> float:
    """A probability: `0.01`, `1%`, `1e-5`. Raises UnitError."""
    number, unit = _split(text, what, "0.01, 1%, 1e-5")
    if unit not in ("", "%"):
        raise UnitError(f"{what} {text!r} has an unknown unit; examples: 0.01, 1%, 1e-5")
    share = number / 100 if unit else number
    if not 0 <= share <= 1:
        raise UnitError(f"{what} {text!r} is out of range; allowed: 0 to 1 (100%)")
    return share


def _trim(number: float) -> str:
    text = f"{number:.3f}"
    return text.rstrip("0").rstrip(".")


def format_rate(rate_bps: float) -> str:
    """`2 Mbit/s`."""
    for factor, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if rate_bps >= factor:
            return f"{_trim(rate_bps / factor)} {unit}"
    return f"{_trim(rate_bps)} bit/s"


def format_us(time_us: float) -> str:
    """`290 ms`, `1.5 s`."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if time_us >= factor:
            return f"{_trim(time_us / factor)} {unit}"
    return f"{_trim(time_us)} µs"
