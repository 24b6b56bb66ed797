# SPDX-License-Identifier: Apache-2.0
"""Options and arguments that several commands have: one name, one letter and one meaning each."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fairlane_controller.cli.complete import complete_port, complete_state, complete_switch
from fairlane_controller.cli.types import PortRef, Seconds, parse_port, time_option

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
