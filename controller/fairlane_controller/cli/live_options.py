# SPDX-License-Identifier: Apache-2.0
"""What commands that look at the living topology share: the interval of rates, and the port."""

from __future__ import annotations

from typing import Annotated

from fairlane_controller.cli.targets import Targets
from fairlane_controller.cli.types import PortRef, Seconds, time_option
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.shared import CPU_PORT

IntervalOption = Annotated[
    Seconds, time_option("--interval", "-i", help="Rates are over this time; 0: no rates, at once.", at_most=600)
]
RATES_OVER = Seconds(1)


def known_port(targets: Targets, ref: PortRef | None) -> int | None:
    """The port's number; UNKNOWN_NAME with the ports that there are, when the run state lists them and it is none of them."""
    port = None if ref is None else ref.number
    if port is None or targets.run is None:
        return port
    chosen = {endpoint.name for endpoint in targets.endpoints}
    switches = [switch for switch in targets.run.switches if switch.name in chosen]
    known = sorted({one.port for switch in switches for one in switch.ports} | {CPU_PORT})
    if port not in known and all(switch.ports for switch in switches):
        which = switches[0].name if len(switches) == 1 else "no switch"
        has = "has no port" if len(switches) == 1 else "has a port"
        listed = ", ".join(str(number) for number in known if number != CPU_PORT)
        raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"{which} {has} {port}; valid: {listed}")
    return port
