# SPDX-License-Identifier: Apache-2.0
"""Quantities of settings: text with a unit to a number and back (`5ms`, `2Mbit`, `100packets`), each with its JSON schema.

An annotation of a pydantic field; narrower bounds go around it: `Annotated[Duration, Field(gt=0, le=1)]`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from annotated_types import Ge, GroupedMetadata, Le
from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from fairlane_controller.errors import FairlaneError
from fairlane_controller.units import parse_rate, parse_size, parse_time

_T = TypeVar("_T")
_U32 = 0xFFFF_FFFF
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


@dataclass(frozen=True)
class Quantity(GroupedMetadata):
    """A number that may be a text with a unit."""

    parse: Callable[[Any], Any]
    pattern: str
    "Of the text."
    doc: str
    examples: tuple[str, ...]
    low: float
    high: float
    kind: str = "integer"

    def __iter__(self) -> Iterator[Any]:
        number, text = {"type": self.kind, "minimum": 0}, {"type": "string", "pattern": self.pattern}
        yield BeforeValidator(self.parse)
        yield Ge(self.low)
        yield Le(self.high)
        yield WithJsonSchema({"anyOf": [number, text], "description": self.doc, "examples": list(self.examples)})


def _size(low: int, doc: str) -> Quantity:
    return Quantity(_bytes, r"^\s*[0-9.]+\s*([kKmMgG][iI]?)?[bB]?\s*$", doc, ("64KB",), low, _U32)


def _count(unit: str, low: int, doc: str) -> Quantity:
    """`100packets` or 100."""

    def parse(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        found = _COUNTED.match(value)
        if found is None or found[2].lower() not in (unit, f"{unit}s"):
            raise ValueError(f"{value!r} must be a number of {unit}s; examples: 100, 100{unit}s")
        return int(found[1])

    first = unit[0]
    pattern = rf"^\s*[0-9]+\s*[{first}{first.upper()}]{unit[1:]}s?\s*$"
    return Quantity(parse, pattern, doc, (f"100{unit}s",), low, _U32)


_RATE = r"^\s*[0-9.]+\s*[kKmMgGtT]?([bB][iI][tT](/s)?|[bB][pP][sS]|[bB]/s)?\s*$"
_TIME = {
    "type": "string",
    "pattern": r"^\s*[0-9.]+\s*(ns|us|µs|ms|s|m|min)\s*$",
    "description": "A time with its unit",
    "examples": ["250ms", "1s"],
}

Duration = Annotated[
    float, BeforeValidator(_seconds), PlainSerializer(lambda value: duration_text(value)), WithJsonSchema(_TIME)
]
"""Seconds of `250ms`."""
Rate = Annotated[float, Quantity(_rate, _RATE, "bit/s", ("2Mbit", "2Mbps"), 0, 1e13, "number")]
"""Bit/s of `2Mbit`; a bare number is bit/s."""
Size = Annotated[int, _size(1, "Bytes")]
"""Bytes of `64KB`."""
SizeLimit = Annotated[int, _size(0, "Bytes; 0: no limit")]
"""As `Size`; 0 is no limit."""
Packets = Annotated[int, _count("packet", 1, "Packets")]
"""Packets of `100packets` or 100."""
PacketLimit = Annotated[int, _count("packet", 0, "Packets; 0: no limit")]
"""As `Packets`; 0 is no limit."""
Cells = Annotated[int, _count("cell", 1, "Cells")]
"""Cells of `100cells` or 100."""
CellLimit = Annotated[int, _count("cell", 0, "Cells; 0: no limit")]
"""As `Cells`; 0 is no limit."""
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
