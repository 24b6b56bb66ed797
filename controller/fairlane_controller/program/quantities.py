# SPDX-License-Identifier: Apache-2.0
"""Quantities of settings: text with a unit to a number and back (`5ms`, `2Mbit`, `100packets`), each with its JSON schema.

An annotation of a pydantic field; narrower bounds go around it: `Annotated[Duration, Field(gt=0, le=1)]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from annotated_types import Ge, GroupedMetadata, Le
from pydantic import AllowInfNan, BeforeValidator, PlainSerializer, WithJsonSchema

from fairlane_controller.errors import FairlaneError
from fairlane_controller.units import parse_count, parse_rate, parse_size, parse_time

DSCP_NAMES: dict[str, int] = {
    "EF": 46,
    **{f"CS{n}": 8 * n for n in range(8)},
    **{f"AF{c}{d}": 8 * c + 2 * d for c in range(1, 5) for d in range(1, 4)},
}
"""Code points by name (RFC 2474, 2597, 3246)."""


def parse_dscp(text: str | int) -> int | None:
    """The code point of a DSCP.

    Args:
        text: `AF12`, `EF`, `10`, 10, or an empty text for any DSCP.

    Returns:
        0 to 63; None for an empty text.

    Raises:
        ValueError: It is no DSCP; the text says what is allowed.
    """
    word = str(text).strip().upper()
    number = DSCP_NAMES.get(word, int(word) if word.isdecimal() and len(word) < 4 else -1)
    if word and not 0 <= number <= 63:
        raise ValueError(f"{text!r} is no DSCP: must be 0 to 63, AF11 to AF43, CS0 to CS7 or EF")
    return number if word else None


def _read_dscp(value: Any) -> int:
    number = parse_dscp(value)
    if number is None:
        raise ValueError("an empty DSCP matches nothing: must be 0 to 63, AF11 to AF43, CS0 to CS7 or EF")
    return number


def duration_text(seconds: float) -> str:
    """The text of a time in a file.

    Args:
        seconds: The time, 0 or more.

    Returns:
        `250ms`: in the largest unit that needs at most six characters, else in whole nanoseconds.
    """
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        text = f"{seconds / factor:.9f}".rstrip("0").rstrip(".")
        if seconds >= factor and len(text) <= 6:
            return f"{text}{unit}"
    return f"{seconds * 1e9:.0f}ns"


def _read(parse: Callable[[str, str], Any], what: str, value: Any) -> Any:
    """The number of a text with a unit; another value as it is."""
    if isinstance(value, bool):
        raise ValueError(f"{what} {value!r} must be a number or a text with a unit")
    try:
        return parse(value, what) if isinstance(value, str) else value
    except FairlaneError as ex:
        raise ValueError(ex.message) from None


def _read_time(value: Any) -> float:
    if not isinstance(value, str):
        raise ValueError(f"time {value!r} must be a text with a unit; examples: 200us, 5ms, 1.5s")
    return _read(parse_time, "time", value)


@dataclass(frozen=True)
class Quantity(GroupedMetadata):
    """A number that may be a text with a unit, as metadata of a field's type."""

    parse: Callable[[str, str], Any]
    "The number of a text, as `units` has it; its second argument is `what`."
    what: str
    "What the number is, for errors."
    pattern: str
    "Of the text, for the JSON schema."
    example: str
    doc: str
    low: int = 0
    high: float = 0xFFFF_FFFF
    kind: str = "integer"
    "The type of the number in the JSON schema."

    def __iter__(self) -> Iterator[Any]:
        number, text = {"type": self.kind, "minimum": 0}, {"type": "string", "pattern": self.pattern}
        yield BeforeValidator(partial(_read, self.parse, self.what))
        yield Ge(self.low)
        yield Le(self.high)
        yield WithJsonSchema({"anyOf": [number, text], "description": self.doc, "examples": [self.example]})


def _count(unit: str, low: int, doc: str) -> Quantity:
    first, rest = unit[0], unit[1:-1]
    pattern = rf"^\s*[0-9]+\s*([{first}{first.upper()}]{rest}s?)?\s*$"
    return Quantity(lambda text, what: parse_count(text, unit, what), "number", pattern, f"100{unit}", doc, low)


_SIZE = r"^\s*[0-9.]+\s*([kKmMgG][iI]?)?[bB]?\s*$"
_RATE = r"^\s*[0-9.]+\s*[kKmMgGtT]?([bB][iI][tT](/s)?|[bB][pP][sS]|[bB]/s)?\s*$"
_TIME = {
    "type": "string",
    "pattern": r"^\s*[0-9.]+\s*(ns|us|µs|ms|s|m|min)\s*$",
    "description": "A time with its unit",
    "examples": ["250ms", "1s"],
}
_DSCP = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "maximum": 63},
        {"type": "string", "pattern": r"^(\d{1,2}|AF[1-4][1-3]|CS[0-7]|EF)$"},
    ],
    "description": "A DSCP: 0 to 63 or its name",
    "examples": ["AF21", "EF", 46],
}

Duration = Annotated[
    float, BeforeValidator(_read_time), PlainSerializer(lambda value: duration_text(value)), WithJsonSchema(_TIME)
]
"""Seconds of `250ms`."""
Rate = Annotated[float, AllowInfNan(False), Quantity(parse_rate, "rate", _RATE, "2Mbit", "bit/s", 0, 1e13, "number")]
"""Bit/s of `2Mbit`; a bare number is bit/s."""
Size = Annotated[int, Quantity(parse_size, "size", _SIZE, "64KB", "Bytes", 1)]
"""Bytes of `64KB`."""
SizeLimit = Annotated[int, Quantity(parse_size, "size", _SIZE, "64KB", "Bytes; 0: no limit")]
"""As `Size`; 0 is no limit."""
Packets = Annotated[int, _count("packets", 1, "Packets")]
"""Packets of `100packets` or 100."""
PacketLimit = Annotated[int, _count("packets", 0, "Packets; 0: no limit")]
"""As `Packets`; 0 is no limit."""
Cells = Annotated[int, _count("cells", 1, "Cells")]
"""Cells of `100cells` or 100."""
CellLimit = Annotated[int, _count("cells", 0, "Cells; 0: no limit")]
"""As `Cells`; 0 is no limit."""
Dscp = Annotated[
    int,
    BeforeValidator(_read_dscp),
    PlainSerializer(lambda number: {code: name for name, code in DSCP_NAMES.items()}.get(number, number)),
    WithJsonSchema(_DSCP),
]
"""0 to 63 of `AF21`."""
