# SPDX-License-Identifier: Apache-2.0
"""`fairlane config init|check|show|diff|edit|apply|set|reload|schema`: what the switches are to have."""

from __future__ import annotations

import asyncio
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import typer

from fairlane_controller.cli.conventions import App
from fairlane_controller.cli.diff import compare_file, diff_command
from fairlane_controller.cli.dry import dry_results, print_dry
from fairlane_controller.cli.edit import edit_command
from fairlane_controller.cli.init import init_command
from fairlane_controller.cli.options import DryRunOption, JsonOption, StateOption
from fairlane_controller.cli.output import print_json, say
from fairlane_controller.cli.settings import set_command
from fairlane_controller.config.apply import apply
from fairlane_controller.config.check import check
from fairlane_controller.config.read import read_file
from fairlane_controller.config.show import read_current_config, to_toml
from fairlane_controller.config.target import find_run, keep, running
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import find_folder, read_run_state
from fairlane_controller.typed import typed
from fairlane_controller.units import counted

config_app = App(
    help="Set switches up; the configuration file: check, show, diff, edit, apply, reload; set one port.",
)
config_app.command("init")(init_command)
config_app.command("diff")(diff_command)
config_app.command("edit")(edit_command)
config_app.command("set")(set_command)

FileArgument = Annotated[Path, typer.Argument(help="Configuration (docs/configuration.md).", metavar="FILE")]


@config_app.command("check")
def check_command(
    file: FileArgument,
    run_program: Annotated[
        bool,
        typer.Option(
            "--run-program",
            help="Run the program.py of the folder that FILE names, for the keys of that program: only of files that you trust.",
        ),
    ] = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check FILE: keys, values, and, where its topology runs, names, places, capacities. Nothing is read from a switch.

    No code of FILE's is run unless --run-program asks for it; the program of the topology that runs is known anyway.
    """
    loaded = read_file(file, state, run_program=run_program)
    run = running(loaded, state)
    check(loaded, run)
    program = run.program if run is not None else loaded.config.program or ""
    not_loaded = None if loaded.may_load(program) else program
    if as_json:
        about = {"valid": True, "file": str(file), "topology": run.name if run else None}
        print_json({**about, "program_not_loaded": not_loaded, "unchecked": list(loaded.unchecked)})
        return
    say(f"{file}: valid" + (f" for the topology {run.name}" if run else "; no topology runs to check it against"))
    if not_loaded is not None:
        keys = f", {', '.join(loaded.unchecked)} among them" if loaded.unchecked else ""
        text = f"the program in {not_loaded} was not loaded, so its keys were not checked{keys}: --run-program runs its program.py"
        say(f"fairlane: {text}", error=True)


@config_app.command("show")
def show_command(state: StateOption = None, as_json: JsonOption = False) -> None:
    """Show what is in force as a configuration file: save it, and apply it again later."""
    run = read_run_state(find_folder(state))
    config, notes = asyncio.run(read_current_config(run))
    if as_json:
        print_json({"config": config.plain(), "left_out": notes})
        return
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    print(to_toml(config, [f"What is in force on {run.name}, {now}", *(f"Left out: {n}" for n in notes)]), end="")
    for note in notes:
        say(f"fairlane: {note}", error=True)


@config_app.command("apply")
def apply_command(
    file: FileArgument,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the switches hold what FILE says, touching only what differs: all of them, or none."""
    loaded = read_file(file, state)
    if dry_run:
        _, found = compare_file(loaded, state)
        print_dry(dry_results(found), as_json)
        return
    run = find_run(loaded, state)
    check(loaded, run)
    keep(run)
    done = asyncio.run(apply(loaded, run, typed()))
    if as_json:
        print_json(done.to_json())
        return
    _print_done(f"{file} applied", done.to_json())


@config_app.command("reload")
def reload_command(state: StateOption = None, as_json: JsonOption = False) -> None:
    """Let the running loop read its file again (`fairlane run --config FILE`); a file with a mistake changes nothing."""
    folder = find_folder(state)
    done = asyncio.run(ask(folder, {"op": "config_reload"}))
    if as_json:
        print_json(done)
        return
    _print_done(f"{done['file']} reloaded", done)


def _print_done(what: str, done: dict[str, Any]) -> None:
    """What `Applied.to_json` says, in words."""
    counts = [f"{name}: {counted(count, 'entry')}" for name, count in done["written"].items()]
    counts += [f"{counted(done['settings'], 'setting')} of policies"] if done["settings"] else []
    counts += [counted(done["ports"], "port")] if done["ports"] else []
    say(f"{what} ({', '.join(counts) or 'the switches have it already'})")


@config_app.command("schema")
def schema_command() -> None:
    """Print the JSON schema of the file, for editors."""
    from fairlane_controller.config.schema import json_schema_text

    print(json_schema_text(), end="")
