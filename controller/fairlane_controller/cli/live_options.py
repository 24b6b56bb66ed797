# SPDX-License-Identifier: Apache-2.0
"""What commands that look at the living topology share: the interval of rates, and the port."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlane_controller.cli.complete import complete_port
from fairlane_controller.cli.targets import Targets
from fairlane_controller.errors import ErrorCode, FairlaneError, out_of_range
from fairlane_controller.switch.shared import CPU_PORT
from fairlane_controller.units import parse_time

MAX_INTERVAL_S = 600.0

IntervalOption = Annotated[
    str, typer.Option("--interval", "-i", help="Rates are over this time; 0: no rates, at once.", metavar="TIME")
]

OnlyPortOption = Annotated[
    int | None,
    typer.Option("--port", "-p", help="Only this port: 3, or s1:3.", metavar="PORT", autocompletion=complete_port),
]


def parse_interval(text: str) -> float:
    """Seconds; BAD_INPUT or OUT_OF_RANGE."""
    interval_s = parse_time(text, "--interval")
    if interval_s > MAX_INTERVAL_S:
        raise out_of_range("--interval", text, "0", f"{MAX_INTERVAL_S:g}s")
    return interval_s


def check_port(targets: Targets, port: int | None) -> None:
    """UNKNOWN_NAME with the ports that there are, when the run state lists them and `port` is none of them."""
    if port is None or targets.run is None:
        return
    chosen = {endpoint.name for endpoint in targets.endpoints}
    switches = [switch for switch in targets.run.switches if switch.name in chosen]
    known = sorted({one.port for switch in switches for one in switch.ports} | {CPU_PORT})
    if port not in known and all(switch.ports for switch in switches):
        which = switches[0].name if len(switches) == 1 else "no switch"
        has = "has no port" if len(switches) == 1 else "has a port"
        listed = ", ".join(str(number) for number in known if number != CPU_PORT)
        raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"--port {port}: {which} {has} {port}; valid: {listed}")
