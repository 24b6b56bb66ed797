# SPDX-License-Identifier: Apache-2.0
"""Quantities of settings: text with a unit to a number and back (`5ms`, `2Mbit`, `100packets`), each with its JSON schema.

An annotation of a pydantic field; narrower bounds go around it: `Annotated[Duration, Field(gt=0, le=1)]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Quantity(GroupedMetadata):
    """A number that may be a text with a unit, as metadata of a field's type."""

    parse: Callable[[str, str], Any]
    "The number of a text, as `units` has it; its second argument is `what`."
    what: str
    "What the number is, for errors."
    example: str
    doc: str
    low: int = 0
    high: float = 0xFFFF_FFFF
    kind: str = "integer"
    "The type of the number in the JSON schema; empty: it must be a text."

    def read(self, value: Any) -> Any:
        """The number of a text with a unit; another value as it is, where a number is allowed."""
        if isinstance(value, bool) or not (self.kind or isinstance(value, str)):
            numbers = "a number or " if self.kind else ""
            raise ValueError(f"{self.what} {value!r} must be {numbers}a text with a unit, such as {self.example}")
        try:
            return self.parse(value, self.what) if isinstance(value, str) else value
        except FairlaneError as ex:
            raise ValueError(ex.message) from None

    def __iter__(self) -> Iterator[Any]:
        text: dict[str, Any] = {"type": "string"}
        schema = {"anyOf": [{"type": self.kind, "minimum": 0}, text]} if self.kind else text
        yield BeforeValidator(self.read)
        yield Ge(self.low)
        yield Le(self.high)
        yield WithJsonSchema({**schema, "description": self.doc, "examples": [self.example]})


def _count(unit: str, low: int, doc: str) -> Quantity:
    return Quantity(lambda text, what: parse_count(text, unit, what), "number", f"100{unit}", doc, low)


_DSCP = {
    "anyOf": [{"type": "integer", "minimum": 0, "maximum": 63}, {"type": "string"}],
    "description": "A DSCP: 0 to 63 or its name",
    "examples": ["AF21", "EF", 46],
}

Duration = Annotated[
    float,
    Quantity(parse_time, "time", "250ms", "A time with its unit", high=math.inf, kind=""),
    PlainSerializer(lambda value: duration_text(value)),
]
"""Seconds of `250ms`."""
Rate = Annotated[float, AllowInfNan(False), Quantity(parse_rate, "rate", "2Mbit", "bit/s", 0, 1e13, "number")]
"""Bit/s of `2Mbit`; a bare number is bit/s."""
Size = Annotated[int, Quantity(parse_size, "size", "64KB", "Bytes", 1)]
"""Bytes of `64KB`."""
SizeLimit = Annotated[int, Quantity(parse_size, "size", "64KB", "Bytes; 0: no limit")]
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
    BeforeValidator(parse_dscp),
    PlainSerializer(lambda number: {code: name for name, code in DSCP_NAMES.items()}.get(number, number)),
    WithJsonSchema(_DSCP),
]
"""0 to 63 of `AF21`."""
