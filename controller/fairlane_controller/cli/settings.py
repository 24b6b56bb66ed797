# SPDX-License-Identifier: Apache-2.0
"""`fairlane config set`: what the program of a running topology is set to at one port, changed while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fairlane_controller.cli.change import dry_results, print_dry
from fairlane_controller.cli.options import DryRunOption, JsonOption, PortArgument, StateOption, SwitchOption
from fairlane_controller.cli.output import print_json, say
from fairlane_controller.cli.targets import resolve
from fairlane_controller.config.apply import apply, with_last_applied
from fairlane_controller.config.check import check
from fairlane_controller.config.compare import compare_on
from fairlane_controller.config.read import Loaded, Source, parse
from fairlane_controller.config.show import port_in_force
from fairlane_controller.errors import ErrorCode, FairlaneError, unknown_name
from fairlane_controller.program.contract import Program
from fairlane_controller.program.registry import load_program
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
    run, name = targets.need_run(), targets.one("a port is").name
    program = load_program(run.program)
    row = {**asyncio.run(port_in_force(run, name, port.number)), **_parsed(program, settings)}
    source = Source("config set")
    data = {"program": run.program, "topology": {"name": run.folder.name}, "ports": [row]}
    loaded = Loaded(parse(data, source), source)
    check(loaded, run)
    if dry_run:
        print_dry(dry_results(asyncio.run(compare_on(loaded.config, run))), as_json)
        return
    done = asyncio.run(apply(loaded, run, typed(), with_last_applied(loaded, run)))
    if as_json:
        print_json({**done.to_json(), "port": row})
        return
    how = "is set" if any(done.written.values()) or done.settings else "was set already"
    say(f"{name}:{port.name} {how}: {', '.join(settings)}")


def _parsed(program: Program, texts: Sequence[str]) -> dict[str, Any]:
    """`["target=10ms"]` as keys of a port. Raises BAD_INPUT, UNKNOWN_NAME."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise FairlaneError(ErrorCode.BAD_INPUT, f"{text!r}: must be KEY=VALUE, e.g. target=10ms")
        if name not in program.Settings.model_fields:
            raise unknown_name(f"setting of {program.name}", name, program.Settings.model_fields)
        found[name] = plain_value(value)
    return found
