# SPDX-License-Identifier: Apache-2.0
"""Types of arguments and options, given to typer as `parser=`: times and other numbers with units, and ports."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import typer

from fairlane_controller.errors import ErrorCode, FairlaneError, out_of_range
from fairlane_controller.units import parse_count, parse_rate, parse_size, parse_time

T = TypeVar("T")

_PLACE = re.compile(r"(?P<switch>[A-Za-z_][A-Za-z0-9_.-]*):(?P<port>[A-Za-z0-9_.-]+)")


class Seconds(float):
    """A time in seconds, which a help shows with its unit."""

    def __str__(self) -> str:
        return f"{float(self):g}s"


def number_option(name: str, parse: Callable[[str, str], T], *letters: str, metavar: str, help: str) -> Any:
    """An option that takes a number with a unit.

    Args:
        name: As typed: `--rate`.
        parse: Reads the text (a function of `units`); gets the option's name for its errors.
        letters: Short forms: `-r`.
        metavar: What the help shows for the number.
        help: What it sets.
    """

    def read(value: Any) -> Any:
        return parse(value, name) if isinstance(value, str) else value  # a default is a number already

    return typer.Option(name, *letters, help=help, metavar=metavar, parser=read)


def time_option(name: str, *letters: str, help: str, at_least: float = 0.0, at_most: float = 86_400.0 * 7) -> Any:
    """An option that takes a time with a unit; the value is `Seconds`. BAD_INPUT without a unit, OUT_OF_RANGE beyond the limits (seconds)."""

    def parse(text: str, what: str) -> Seconds:
        seconds = parse_time(text, what)
        if not at_least <= seconds <= at_most:
            raise out_of_range(what, text, Seconds(at_least) if at_least else 0, Seconds(at_most))
        return Seconds(seconds)

    return number_option(name, parse, *letters, metavar="TIME", help=help)


def rate_bps(text: str, what: str) -> int:
    """A rate with a unit, because whoever writes 5 hardly means 5 bit/s; 0 needs none. BAD_INPUT."""
    return round(parse_rate(text, what, needs_unit=True))


def queue_packets_option(help: str) -> Any:
    """`--queue-packets`: how many packets may wait in a queue."""
    return number_option(
        "--queue-packets", lambda text, what: parse_count(text, "packets", what), metavar="PACKETS", help=help
    )


def packet_bytes_option(help: str) -> Any:
    """`--packet-bytes`: the length of a packet."""
    return number_option("--packet-bytes", _packet_bytes, metavar="SIZE", help=help)


def _packet_bytes(text: str, what: str) -> int:
    size = parse_size(text, what)
    if not 1 <= size <= 65_535:
        raise out_of_range(what, text, 1, 65_535, "bytes")
    return size


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
            raise FairlaneError(
                ErrorCode.BAD_INPUT, f"port {self.name!r}: must be a number here, e.g. {self.switch or 's1'}:3"
            )
        return int(self.name)


def parse_port(text: str) -> PortRef:
    """`s1:3` or `3`; BAD_INPUT."""
    place = _PLACE.fullmatch(text)
    if place is not None:
        return PortRef(place["switch"], place["port"])
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", text):
        raise FairlaneError(ErrorCode.BAD_INPUT, f"port {text!r}: must be SWITCH:PORT, e.g. s1:3; or 3 with --switch")
    return PortRef(None, text)


def split_port(words: list[str] | None, count: int = 1) -> tuple[PortRef | None, list[str]]:
    """`[PORT] WORD…` with at most `count` words behind the port: a port is what has the form SWITCH:PORT, or the first of one word more."""
    given = list(words or [])
    first = given and (_PLACE.fullmatch(given[0]) or len(given) > count)
    port = parse_port(given.pop(0)) if first else None
    if len(given) > count:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{given[-1]!r} is one word too many; a port stands first")
    return port, given
