# SPDX-License-Identifier: Apache-2.0
"""Text to numbers and back, with units: rates in bit/s, times in seconds, sizes in bytes."""

from __future__ import annotations

import math
import re

from fairlane_controller.errors import ErrorCode, FairlaneError

_NUMBER = re.compile(r"^\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-zµ/]*)\s*$")

_SI = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_RATE_UNITS: dict[str, float] = {f"{p}{u}": f for p, f in _SI.items() for u in ("bit", "bps", "bit/s", "b/s")}
_RATE_UNITS[""] = 1.0
_TIME_UNITS: dict[str, float] = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_SIZE_UNITS: dict[str, float] = {
    "": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30,
}  # fmt: skip

RATE_EXAMPLES = "512kbit, 2Mbit, 2Mbps, 1.5Gbit (k, M, G are powers of 1000; bits, never bytes)"
TIME_EXAMPLES = "200us, 5ms, 1.5s, 5m (minutes)"
SIZE_EXAMPLES = "1000, 1000B, 64KB (1000), 64KiB (1024)"


def _split(text: str, what: str, examples: str) -> tuple[float, str]:
    found = _NUMBER.match(text)
    if not found:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{what} {text!r} is not a number with a unit; examples: {examples}")
    return float(found.group(1)), found.group(2)


def _scale(text: str, what: str, units: dict[str, float], examples: str) -> float:
    number, unit = _split(text, what, examples)
    factor = units.get(unit.lower())
    if factor is None:
        need = "unit" if not unit else f"unit {unit!r}"
        problem = "has no unit" if not unit else f"has an unknown {need}"
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{what} {text!r} {problem}; examples: {examples}")
    value = number * factor
    if not math.isfinite(value):
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{what} {text!r} is too large; examples: {examples}")
    return value


def parse_rate(text: str, what: str = "rate") -> float:
    """Bits per second of `2Mbit`, `2Mbps`, `512 kbit`; a bare number is bit/s.

    `Mbps` is megabit per second here, unlike in tc(8) where it is megabyte. Raises BAD_INPUT.
    """
    return _scale(text, what, _RATE_UNITS, RATE_EXAMPLES)


def parse_time(text: str, what: str = "time") -> float:
    """Seconds of `5ms`, `200us`, `1.5s`; a unit is required, but zero needs none. Raises BAD_INPUT."""
    if text.strip() in ("0", "0.0"):
        return 0.0
    return _scale(text, what, _TIME_UNITS, TIME_EXAMPLES)


def parse_size(text: str, what: str = "size") -> int:
    """Bytes of `1000`, `64KB` (1000), `64KiB` (1024). Raises BAD_INPUT when it is no whole number of bytes."""
    value = _scale(text, what, _SIZE_UNITS, SIZE_EXAMPLES)
    if value != int(value):
        raise FairlaneError(
            ErrorCode.BAD_INPUT, f"{what} {text!r} is not a whole number of bytes; examples: {SIZE_EXAMPLES}"
        )
    return int(value)


def plain_value(text: str) -> int | str:
    """A value as TOML has it: a whole number, true, false, or else the text."""
    return {"true": True, "false": False}.get(text, int(text) if text.isdecimal() else text)


_COUNT_UNITS = {"packets": ("", "packet", "packets", "pkt", "pkts"), "cells": ("", "cell", "cells")}


def parse_count(text: str, unit: str, what: str = "number") -> int:
    """A whole number of `unit` (packets or cells): `50`, `50packets`, `100 cells`. Raises BAD_INPUT."""
    examples = f"50, 50{unit}"
    number, found = _split(text, what, examples)
    if found.lower() not in _COUNT_UNITS[unit]:
        raise FairlaneError(
            ErrorCode.BAD_INPUT, f"{what} {text!r} must be in {unit}, not {found!r}; examples: {examples}"
        )
    if number != int(number):
        raise FairlaneError(
            ErrorCode.BAD_INPUT, f"{what} {text!r} is not a whole number of {unit}; examples: {examples}"
        )
    return int(number)


def counted(number: int, noun: str, several: str = "") -> str:
    """`1 entry`, `2 entries`, `0 switches`; `several` where the plural follows no rule."""
    if number == 1:
        return f"1 {noun}"
    if not several:
        several = (
            f"{noun[:-1]}ies"
            if noun[-1] == "y" and noun[-2] not in "aeiou"
            else noun + ("es" if noun[-2:] in ("ch", "sh", "ss") else "s")
        )
    return f"{number} {several}"


def _trim(number: float, digits: int) -> str:
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded(number: float | None, digits: int = 3) -> float | None:
    """The number with so many significant digits: what a measured value over a second is worth."""
    return None if number is None else float(f"{number:.{digits}g}")


def format_per_s(number: float | None, unit: str = "") -> str:
    """`3.2/s`, `1.5k/s`; `-` for None, `0` for none at all."""
    if number is None:
        return "-"
    if number == 0:
        return "0"
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= factor:
            return f"{_trim(number / (factor if prefix != 'k' else 1e3), 2)}{prefix}{unit}/s"
    return f"{_trim(number, 1 if number >= 0.1 else 3)}{unit}/s"


def format_rate(rate_bps: float | None) -> str:
    """`2 Mbit/s`, `512 kbit/s`; `-` for None."""
    if rate_bps is None:
        return "-"
    for factor, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if abs(rate_bps) >= factor * 0.9995:
            return f"{_trim(rate_bps / factor, 3)} {unit}"
    return f"{_trim(rate_bps, 1)} bit/s"


def format_time(seconds: float | None) -> str:
    """`5 ms`, `12.34 ms`, `1.5 s`; `-` for None."""
    if seconds is None:
        return "-"
    if seconds == 0:
        return "0 s"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")):
        if abs(seconds) >= factor * 0.9995:
            return f"{_trim(seconds / factor, 3)} {unit}"
    return f"{seconds:.3g} s"


def format_size(size_bytes: float | None) -> str:
    """`1000 B`, `64 kB`, `1.5 MB` (powers of 1000); `-` for None."""
    if size_bytes is None:
        return "-"
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e4, "kB")):
        if abs(size_bytes) >= factor:
            divisor = 1e3 if unit == "kB" else factor
            return f"{_trim(size_bytes / divisor, 2)} {unit}"
    return f"{_trim(size_bytes, 1)} B"
