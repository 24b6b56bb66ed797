# SPDX-License-Identifier: Apache-2.0
"""Types of arguments and options, given to typer as `parser=`: times with units, and ports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import typer

from fairlane_controller.errors import bad_input, out_of_range
from fairlane_controller.units import parse_time

_PLACE = re.compile(r"(?P<switch>[A-Za-z_][A-Za-z0-9_.-]*):(?P<port>[A-Za-z0-9_.-]+)")


class Seconds(float):
    """A time in seconds, which a help shows with its unit."""

    def __str__(self) -> str:
        return f"{float(self):g}s"


def time_option(name: str, *letters: str, help: str, at_least: float = 0.0, at_most: float = 86_400.0 * 7) -> Any:
    """An option that takes a time with a unit; the value is `Seconds`. BAD_INPUT without a unit, OUT_OF_RANGE beyond the limits (seconds)."""

    def parse(value: Any) -> Seconds:
        if isinstance(value, Seconds):  # a default
            return value
        seconds = parse_time(value, name)
        if not at_least <= seconds <= at_most:
            raise out_of_range(name, value, Seconds(at_least) if at_least else 0, Seconds(at_most))
        return Seconds(seconds)

    return typer.Option(name, *letters, help=help, metavar="TIME", parser=parse)


@dataclass(frozen=True)
class PortRef:
    """A port as people name it: `s1:3` or `s1:s1-eth3`; or `3` where the switch is named otherwise, or there is only one."""

    switch: str | None
    name: str
    "Its number, or the interface's name."

    @property
    def number(self) -> int:
        """BAD_INPUT for the name of an interface: most commands know numbers alone."""
        if not self.name.isdecimal():
            raise bad_input(f"port {self.name!r}: must be a number here, e.g. {self.switch or 's1'}:3")
        return int(self.name)


def parse_port(text: str) -> PortRef:
    """`s1:3` or `3`; BAD_INPUT."""
    place = _PLACE.fullmatch(text)
    if place is not None:
        return PortRef(place["switch"], place["port"])
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", text):
        raise bad_input(f"port {text!r}: must be SWITCH:PORT, e.g. s1:3; or 3 with --switch")
    return PortRef(None, text)


def split_port(words: list[str] | None, count: int = 1) -> tuple[PortRef | None, list[str]]:
    """`[PORT] WORD…` with at most `count` words behind the port: a port is what has the form SWITCH:PORT, or the first of one word more."""
    given = list(words or [])
    first = given and (_PLACE.fullmatch(given[0]) or len(given) > count)
    port = parse_port(given.pop(0)) if first else None
    if len(given) > count:
        raise bad_input(f"{given[-1]!r} is one word too many; a port stands first")
    return port, given
