# SPDX-License-Identifier: Apache-2.0
"""`fairlane describe s1:3`: all that is known of one port, one view after the other."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from fairlane_controller.cli.drops import print_drops
from fairlane_controller.cli.log import print_events
from fairlane_controller.cli.measuring import print_measured
from fairlane_controller.cli.options import (
    RATES_OVER,
    IntervalOption,
    JsonOption,
    PortArgument,
    StateOption,
    SwitchOption,
)
from fairlane_controller.cli.output import print_json
from fairlane_controller.cli.ports import Looked, look_at_ports, print_ports
from fairlane_controller.cli.show import print_objects
from fairlane_controller.cli.status import print_program_ports
from fairlane_controller.cli.targets import Targets, known_port, resolve
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.drop_list import drop_lines
from fairlane_controller.live.event_query import EventFilter, read_events
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.pictures import need_switches, take_two
from fairlane_controller.state.events import EVENTS_FILE

LAST_EVENTS = 5


def describe_command(
    port: PortArgument,
    interval: IntervalOption = RATES_OVER,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show all that is known of one port: the port and its queues, settings, measurements, flows or VCs, drops, last events.

    Examples: `fairlane describe s1:3`, `fairlane describe s1:3 --json`
    """
    targets = resolve(state, switch, port)
    endpoint, number = targets.one("a port is"), known_port(targets, port)
    place = endpoint.name, number
    looked, (after, before) = asyncio.run(_read(targets, interval))
    one, earlier = _only(need_switches(after), place), _only(before, place) if before is not None else None
    found = [(name, s, [pair for pair in pairs if pair[1].port == number]) for name, s, pairs in looked]
    if not one.ports and not found[0][2]:
        raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"{endpoint.name} has no port {number}")
    events = _events(targets, EventFilter(switches=(endpoint.name,), port=number))
    if as_json:
        settings = [now.to_json() for _, now in found[0][2]]
        print_json({**one.to_json(), "port": next(iter(settings), None), "events": events})
        return
    print_ports(found, queues=True)
    for program in one.programs.values():
        print_program_ports(one, program)
    measured = [{"switch": row.switch, "port": row.port, **row.measured} for row in one.ports if row.measured]
    program = one.program_of(endpoint.name)
    if measured and program is not None:
        print_measured(measured, {endpoint.name: program})
    for kind in one.kinds:
        if not kind.brief:
            print_objects(one, kind, list(one.objects_of_kind(kind.name)), hides_idle=False)
    print_drops(drop_lines(one, earlier), "nothing was dropped")
    print_events(events, False)


async def _read(targets: Targets, interval_s: float) -> tuple[list[Looked], tuple[Snapshot, Snapshot | None]]:
    return await asyncio.gather(look_at_ports(targets, True, interval_s), take_two(targets, interval_s))


def _only(snapshot: Snapshot, place: tuple[str, int | None]) -> Snapshot:
    """The snapshot with the rows of one port."""
    kept: dict[str, Any] = {
        name: tuple(row for row in getattr(snapshot, name) if (row.switch, row.port) == place)
        for name in ("ports", "objects", "drops")
    }
    return replace(snapshot, **kept)


def _events(targets: Targets, wanted: EventFilter) -> list[dict[str, Any]]:
    path = targets.folder / EVENTS_FILE if targets.folder is not None else None
    return read_events(path, wanted, LAST_EVENTS, check_names=False) if path is not None and path.exists() else []
