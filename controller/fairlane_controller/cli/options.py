# SPDX-License-Identifier: Apache-2.0
"""Options and arguments that several commands have: one name, one letter and one meaning each; times with units, and ports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from fairlane_controller.cli.complete import complete_port, complete_state, complete_switch
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


# ---- options and arguments -------------------------------------------------------------------------------------------

StateOption = Annotated[
    str | None,
    typer.Option(
        "--state",
        help="Running topology: its name or its run-state folder; default the one that runs.",
        metavar="NAME",
        autocompletion=complete_state,
    ),
]
SWITCHES = "FAIRLANE_SWITCHES"
"""Environment variable with the switches that a script's commands mean (`fairlane.Network.command`)."""
SwitchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--switch", "-s", help="A switch of the topology, or NAME=HOST:PORT\\[@DEVICE_ID] without one; default all.", metavar="SWITCH", autocompletion=complete_switch, envvar=SWITCHES, show_envvar=False
    ),
]  # fmt: skip
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ClassOption = Annotated[int, typer.Option("--class", "-c", help="Traffic class, 0 to 7.", metavar="CLASS")]


def port_argument(help: str) -> Any:
    """An argument that is a port."""
    return typer.Argument(help=help, metavar="PORT", parser=parse_port, autocompletion=complete_port)


PortArgument = Annotated[PortRef, port_argument("Its port: s1:3, or 3 with --switch.")]
OnlyPortArgument = Annotated[PortRef | None, port_argument("Only this port: s1:3, or 3 on every switch.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", "-n", help="Show what would be written, and write nothing.")]
IntervalOption = Annotated[
    Seconds, time_option("--interval", "-i", help="Rates are over this time; 0: no rates, at once.", at_most=600)
]
RATES_OVER = Seconds(1)
