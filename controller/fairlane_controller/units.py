# SPDX-License-Identifier: Apache-2.0
"""Text to numbers and back, with units: rates in bit/s, times in seconds, sizes in bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from fairlane_controller.errors import bad_input

_NUMBER = re.compile(r"^\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-zµ/]*)\s*$")
_BYTES_PER_S = re.compile(r"B(/s|ps)\s*$")

_SI = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_RATE_UNITS = {"": 1.0} | {f"{p}{u}": f for p, f in _SI.items() for u in ("bit", "bps", "bit/s", "b/s")}
_TIME_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}  # fmt: skip
_SIZE_UNITS = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_COUNT_UNITS = {"packets": ("", "packet", "packets", "pkt", "pkts"), "cells": ("", "cell", "cells")}

RATE_EXAMPLES = "512kbit, 2Mbit, 2Mbps, 1.5Gbit (k, M, G are powers of 1000; bits, never bytes)"
TIME_EXAMPLES = "200us, 5ms, 1.5s, 5m (minutes)"
SIZE_EXAMPLES = "1000, 1000B, 64KB (1000), 64KiB (1024)"


def _parse(text: str, what: str, units: Mapping[str, float], kind: str, examples: str, whole: bool = False) -> float:
    found = _NUMBER.match(text)
    factor = units.get(found[2].lower()) if found else None
    value = float(found[1]) * factor if found and factor is not None else math.inf
    if not math.isfinite(value) or (whole and value != int(value)):
        raise bad_input(f"{what} {text!r} is not {kind}; examples: {examples}")
    return value


def parse_rate(text: str, what: str = "rate", *, needs_unit: bool = False) -> float:
    """Bits per second of `2Mbit`, `2Mbps`, `512 kbit`; a bare number is bit/s.

    `Mbps` is megabit per second here, unlike in tc(8) where it is megabyte. `MB/s` and `MBps` are refused.

    Args:
        text: The number with its unit.
        what: Names the value in an error.
        needs_unit: Refuse a number alone, but for 0.

    Raises:
        FairlaneError: BAD_INPUT.
    """
    units = {**_RATE_UNITS, "": math.inf} if needs_unit and text.strip() != "0" else _RATE_UNITS
    if _BYTES_PER_S.search(text):
        units = {}
    return _parse(text, what, units, "a number with a unit", RATE_EXAMPLES)


def parse_time(text: str, what: str = "time") -> float:
    """Seconds of `5ms`, `200us`, `1.5s`; a unit is required, but zero needs none. Raises BAD_INPUT."""
    if text.strip() in ("0", "0.0"):
        return 0.0
    return _parse(text, what, _TIME_UNITS, "a number with a unit", TIME_EXAMPLES)


def parse_size(text: str, what: str = "size") -> int:
    """Bytes of `1000`, `64KB` (1000), `64KiB` (1024). Raises BAD_INPUT."""
    return int(_parse(text, what, _SIZE_UNITS, "a whole number of bytes", SIZE_EXAMPLES, whole=True))


def parse_count(text: str, unit: str, what: str = "number") -> int:
    """A whole number of `unit` (packets or cells): `50`, `50packets`, `100 cells`. Raises BAD_INPUT."""
    units = dict.fromkeys(_COUNT_UNITS[unit], 1.0)
    return int(_parse(text, what, units, f"a whole number of {unit}", f"50, 50{unit}", whole=True))


def plain_value(text: str) -> int | str:
    """A value as TOML has it: a whole number, true, false, or else the text."""
    return {"true": True, "false": False}.get(text, int(text) if text.isdecimal() else text)


def counted(number: int, noun: str) -> str:
    """`1 entry`, `2 entries`, `0 switches`."""
    if number == 1:
        return f"1 {noun}"
    if noun[-1] == "y" and noun[-2] not in "aeiou":
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}{'es' if noun.endswith(('ch', 'sh', 'ss')) else 's'}"


def rounded(number: float | None, digits: int = 3) -> float | None:
    """The number with so many significant digits: the precision of a value that was measured for a second."""
    return None if number is None else float(f"{number:.{digits}g}")


def _format(number: float | None, scales: Mapping[str, tuple[float, float]], digits: int) -> str:
    """The number in the first scale (unit: least number, its factor) that it reaches, else in the last; `-` for None."""
    if number is None:
        return "-"
    unit, factor = next(
        ((unit, factor) for unit, (least, factor) in scales.items() if abs(number) >= least * 0.9995),
        ("", 1.0),
    )
    text = f"{number / factor:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}{unit}"


_RATES = {" Gbit/s": (1e9, 1e9), " Mbit/s": (1e6, 1e6), " kbit/s": (1e3, 1e3), " bit/s": (0, 1)}
_TIMES = {" s": (1.0, 1.0), " ms": (1e-3, 1e-3), " us": (1e-6, 1e-6), " ns": (1e-12, 1e-9)}
_SIZES = {" GB": (1e9, 1e9), " MB": (1e6, 1e6), " kB": (1e4, 1e3), " B": (0, 1)}
_PER_S = {"G": (1e9, 1e9), "M": (1e6, 1e6), "k": (1e4, 1e3), "": (0, 1)}


def format_per_s(number: float | None, unit: str = "") -> str:
    """`3.2/s`, `15k/s`; `-` for None, `0` for none at all."""
    if not number:
        return "-" if number is None else "0"
    return f"{_format(number, _PER_S, 3 if number < 0.1 else 2)}{unit}/s"


def format_rate(rate_bps: float | None) -> str:
    """`2 Mbit/s`, `512 kbit/s`; `-` for None."""
    return _format(rate_bps, _RATES, 3)


def format_time(seconds: float | None) -> str:
    """`5 ms`, `12.34 ms`, `1.5 s`; `-` for None."""
    return _format(seconds, _TIMES, 3) if seconds or seconds is None else "0 s"


def format_size(size_bytes: float | None) -> str:
    """`1000 B`, `64 kB`, `1.5 MB` (powers of 1000); `-` for None."""
    return _format(size_bytes, _SIZES, 2)
