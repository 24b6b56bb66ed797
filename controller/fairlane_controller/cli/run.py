# SPDX-License-Identifier: Apache-2.0
"""`fairlane run`: the control loop in the foreground."""

from __future__ import annotations

import asyncio
import gc
import logging
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fairlane_controller.cli.options import StateOption, SwitchOption
from fairlane_controller.cli.output import say
from fairlane_controller.cli.targets import resolve
from fairlane_controller.config.read import addressed, check, read_file
from fairlane_controller.errors import bad_input
from fairlane_controller.logs import printed
from fairlane_controller.loop.run import LoopTarget, control_of, run_dry, run_loop
from fairlane_controller.metrics.exporter import beside
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import DEFAULT_PROGRAM
from fairlane_controller.switch.client import endpoint_of
from fairlane_controller.web.server import parse_listen


def run_command(
    state: StateOption = None,
    switch: SwitchOption = None,
    ready_file: Annotated[Path | None, typer.Option("--ready-file", help="Make this file when every switch has been taken over.")] = None,
    config: Annotated[Path | None, typer.Option("--config", help="Configuration (docs/configuration.md); reloaded when it changes, and on SIGHUP.", metavar="FILE")] = None,
    backup: Annotated[bool, typer.Option("--backup", help="Stand by as the backup; take over when the running loop ends, for any reason.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Measure and decide, report decisions as events with dry_run, and write nothing.")] = False,
    probes: Annotated[bool, typer.Option("--probes/--no-probes", help="Probe the links behind managed ports for their delay.")] = True,
    metrics: Annotated[str | None, typer.Option("--metrics", help="Serve Prometheus metrics here (docs/operate.md); loopback only.", metavar="HOST:PORT")] = None,
) -> None:  # fmt: skip
    """Run the control loop until SIGTERM or Ctrl-C. The switches keep their thresholds when it ends, whatever way.

    With --backup a second one waits to take over; the first, restarted later, is the backup of that one.
    """
    if ready_file is not None and not ready_file.absolute().parent.is_dir():
        raise bad_input(f"--ready-file {ready_file}: there is no folder {ready_file.absolute().parent}")
    found = resolve(state, switch)
    program = load_program(found.run.program if found.run is not None else DEFAULT_PROGRAM)
    target = LoopTarget(program, found.run, found.endpoints, probes=probes)
    if config is not None:
        target = configured(target, config)
    if control_of(program).needs_all_switches and switch:
        raise bad_input(f"--switch: a loop of the program {program.name} takes all switches")
    if backup and target.run is None:
        raise bad_input("--backup: primary and backup share a run state: name it by --state")
    dry_run = dry_run or (target.loop_config is not None and target.loop_config.dry_run)
    if dry_run and (backup or metrics is not None):
        raise bad_input("--dry-run goes with none of --backup, --metrics")
    listen = None if metrics is None else parse_listen(metrics, "--metrics")

    def on_ready() -> None:
        gc.collect()
        gc.freeze()  # each collection would walk all that a loop is made of: a sixth of the processor time of 256 flows
        say(f"fairlane run: ready switches={', '.join(e.name for e in target.endpoints)}")
        if ready_file is not None:
            ready_file.write_text("ready\n", encoding="utf-8")

    with printed(level=logging.INFO):
        work = run_dry(target, on_ready) if dry_run else run_loop(target, on_ready, backup=backup)
        asyncio.run(beside(work, target, listen))


def configured(target: LoopTarget, path: Path) -> LoopTarget:
    """The target with its file, which is checked before anything starts."""
    if target.run is None:
        raise bad_input("--config needs the run state of a topology: --state NAME")
    loaded = read_file(path, str(target.run.folder))
    run = addressed(loaded, target.run)
    check(loaded, run)
    chosen = {endpoint.name for endpoint in target.endpoints}
    endpoints = tuple(endpoint_of(switch) for switch in run.switches if switch.name in chosen)
    return replace(target, run=run, endpoints=endpoints, config=path.absolute(), loop_config=loaded.config.loop)
