# SPDX-License-Identifier: Apache-2.0
"""Quantities of settings: text with a unit to a number and back (`5ms`, `2Mbit`, `100packets`), each with its JSON schema.

An annotation of a pydantic field; narrower bounds go around it: `Annotated[Duration, Field(gt=0, le=1)]`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from fairlane_controller.errors import FairlaneError
from fairlane_controller.units import parse_rate, parse_size, parse_time

_T = TypeVar("_T")
_COUNTED = re.compile(r"^\s*(\d+)\s*([A-Za-z]+)\s*$")


DSCP_NAMES: dict[str, int] = {
    "EF": 46,
    **{f"CS{n}": 8 * n for n in range(8)},
    **{f"AF{c}{d}": 8 * c + 2 * d for c in range(1, 5) for d in range(1, 4)},
}
"""RFC 2474, 2597, 3246."""


def parse_dscp(text: str | int) -> int | None:
    """`AF12`, `EF`, `10` or "" (any, None). Raises ValueError that says what is allowed."""
    if isinstance(text, str):
        word = text.strip().upper()
        if not word:
            return None
        if word in DSCP_NAMES:
            return DSCP_NAMES[word]
        if not word.isdecimal():
            raise ValueError(f"{text!r} is no DSCP: must be 0 to 63, AF11 to AF43, CS0 to CS7 or EF")
        text = int(word)
    if not 0 <= text <= 63:
        raise ValueError(f"DSCP {text} is out of range: must be 0 to 63")
    return text


def _parse(parser: Callable[[str, str], _T], text: str, what: str) -> _T:
    try:
        return parser(text, what)
    except FairlaneError as ex:
        raise ValueError(ex.message) from None


def _seconds(value: Any) -> float:
    if isinstance(value, str):
        return _parse(parse_time, value, "time")
    raise ValueError(f"time {value!r} must be a text with a unit; examples: 200us, 5ms, 1.5s")


def _rate(value: Any) -> float:
    if isinstance(value, str):
        return _parse(parse_rate, value, "rate")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"rate {value!r} must be a number of bit/s or a text such as 2Mbit")
    return float(value)


def _bytes(value: Any) -> int:
    if isinstance(value, str):
        return _parse(parse_size, value, "size")
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"size {value!r} must be a number of bytes or a text; examples: 1000, 64KB, 64KiB")
    return value


def _counted(unit: str) -> BeforeValidator:
    """`100packets` or 100."""

    def parse(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        found = _COUNTED.match(value)
        if found is None or found[2].lower() not in (unit, f"{unit}s"):
            raise ValueError(f"{value!r} must be a number of {unit}s; examples: 100, 100{unit}s")
        return int(found[1])

    return BeforeValidator(parse)


def _dscp(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError(f"DSCP {value!r} must be 0 to 63 or a name: AF11 to AF43, CS0 to CS7, EF")
    number = parse_dscp(str(value))
    if number is None:
        raise ValueError("an empty DSCP matches nothing: must be 0 to 63, AF11 to AF43, CS0 to CS7 or EF")
    return number


def duration_text(seconds: float) -> str:
    """`250ms`: what a file has for it."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        text = f"{seconds / factor:.9f}".rstrip("0").rstrip(".")
        if seconds >= factor and len(text) <= 6:
            return f"{text}{unit}"
    return f"{seconds * 1e9:.0f}ns"


def _dscp_text(number: int) -> str | int:
    return next((name for name, value in DSCP_NAMES.items() if value == number), number)


def _text_schema(pattern: str, what: str, examples: list[str]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "description": what, "examples": examples})


def _number_or_text(pattern: str, what: str, examples: list[str], kind: str = "integer") -> WithJsonSchema:
    either = [{"type": kind, "minimum": 0}, {"type": "string", "pattern": pattern}]
    return WithJsonSchema({"anyOf": either, "description": what, "examples": examples})


_SIZE_PATTERN = r"^\s*[0-9.]+\s*([kKmMgG][iI]?)?[bB]?\s*$"
_PACKETS_PATTERN = r"^\s*[0-9]+\s*[pP]ackets?\s*$"
_CELLS_PATTERN = r"^\s*[0-9]+\s*[cC]ells?\s*$"
_RATE_PATTERN = r"^\s*[0-9.]+\s*[kKmMgGtT]?([bB][iI][tT](/s)?|[bB][pP][sS]|[bB]/s)?\s*$"

Duration = Annotated[
    float,
    BeforeValidator(_seconds),
    PlainSerializer(lambda value: duration_text(value)),
    _text_schema(r"^\s*[0-9.]+\s*(ns|us|µs|ms|s|m|min)\s*$", "A time with its unit", ["250ms", "1s"]),
]
"""Seconds of `250ms`."""
Rate = Annotated[
    float,
    BeforeValidator(_rate),
    Field(ge=0, le=1e13),
    _number_or_text(_RATE_PATTERN, "bit/s", ["2Mbit", "2Mbps"], "number"),
]
"""Bit/s of `2Mbit`; a bare number is bit/s."""
Size = Annotated[
    int,
    BeforeValidator(_bytes),
    Field(ge=1, le=0xFFFF_FFFF),
    _number_or_text(_SIZE_PATTERN, "Bytes", ["64KB"]),
]
"""Bytes of `64KB`."""
SizeLimit = Annotated[
    int,
    BeforeValidator(_bytes),
    Field(ge=0, le=0xFFFF_FFFF),
    _number_or_text(_SIZE_PATTERN, "Bytes; 0: no limit", ["64KB"]),
]
"""As `Size`; 0 is no limit."""
Packets = Annotated[
    int,
    _counted("packet"),
    Field(ge=1, le=0xFFFF_FFFF),
    _number_or_text(_PACKETS_PATTERN, "Packets", ["100packets"]),
]
"""Packets of `100packets` or 100."""
Cells = Annotated[
    int,
    _counted("cell"),
    Field(ge=1, le=0xFFFF_FFFF),
    _number_or_text(_CELLS_PATTERN, "Cells", ["100cells"]),
]
"""Cells of `100cells` or 100."""
CellLimit = Annotated[
    int,
    _counted("cell"),
    Field(ge=0, le=0xFFFF_FFFF),
    _number_or_text(_CELLS_PATTERN, "Cells; 0: no limit", ["100cells"]),
]
"""As `Cells`; 0 is no limit."""
PacketLimit = Annotated[
    int,
    _counted("packet"),
    Field(ge=0, le=0xFFFF_FFFF),
    _number_or_text(_PACKETS_PATTERN, "Packets; 0: no limit", ["100packets"]),
]
"""As `Packets`; 0 is no limit."""
Dscp = Annotated[
    int,
    BeforeValidator(_dscp),
    PlainSerializer(_dscp_text),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": 63},
                {"type": "string", "pattern": r"^(\d{1,2}|AF[1-4][1-3]|CS[0-7]|EF)$"},
            ],
            "description": "A DSCP: 0 to 63 or its name",
            "examples": ["AF21", "EF", 46],
        }
    ),
]
"""0 to 63 of `AF21`."""
