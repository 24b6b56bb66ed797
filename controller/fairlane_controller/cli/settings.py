# SPDX-License-Identifier: Apache-2.0
"""`fairlane config set`: what the program of a running topology is set to at one port, changed while it runs."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from fairlane_controller.cli.change import print_dry
from fairlane_controller.cli.options import DryRunOption, JsonOption, PortArgument, StateOption, SwitchOption
from fairlane_controller.cli.output import print_json, say
from fairlane_controller.cli.targets import resolve
from fairlane_controller.config.apply import apply_to_port, changed_port
from fairlane_controller.config.compare import compare_on
from fairlane_controller.errors import bad_input
from fairlane_controller.typed import typed
from fairlane_controller.units import plain_value


def set_command(
    port: PortArgument,
    settings: Annotated[
        list[str], typer.Argument(help="KEY=VALUE of the program, as in the file: target=10ms.", metavar="KEY=VALUE")
    ],
    state: StateOption = None,
    switch: SwitchOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Change the program's settings at one port, all or nothing; what is not named stays. `fairlane undo` takes it back.

    Examples: `fairlane config set s1:3 target=10ms`, `fairlane config set s1:3 ecn=false --dry-run`
    """
    targets = resolve(state, switch, port)
    run, name = targets.need_run(), targets.one(port).name
    if wrong := [text for text in settings if "=" not in text]:
        raise bad_input(f"{wrong[0]!r}: must be KEY=VALUE, e.g. target=10ms")
    given = {key: plain_value(value) for key, _, value in (text.partition("=") for text in settings)}
    if place := sorted(given.keys() & {"switch", "port"}):
        raise bad_input(f"{place[0]}: cannot be set; the port is the first argument, e.g. s1:3")
    if dry_run:
        loaded, _ = asyncio.run(changed_port(run, (name, port.number), given))
        print_dry(asyncio.run(compare_on(loaded, run)).switches, as_json)
        return
    done, row = asyncio.run(apply_to_port(run, (name, port.number), given, typed()))
    if as_json:
        print_json({**done.to_json(), "port": row})
        return
    how = "is set" if any(done.written.values()) or done.settings or done.ports else "was set already"
    say(f"{name}:{port.name} {how}: {', '.join(settings)}")
