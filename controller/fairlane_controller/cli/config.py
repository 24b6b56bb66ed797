# SPDX-License-Identifier: Apache-2.0
"""`fairlane config init|check|show|diff|edit|apply|set`: what the switches are to have."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from fairlane_controller.cli.change import DryResult, print_dry
from fairlane_controller.cli.conventions import App
from fairlane_controller.cli.options import (
    DryRunOption,
    JsonOption,
    PortArgument,
    Seconds,
    StateOption,
    time_option,
)
from fairlane_controller.cli.output import print_json, say
from fairlane_controller.cli.targets import Targets, on_switches
from fairlane_controller.config.apply import Applied, apply, apply_to_port, changed_port, last_applied
from fairlane_controller.config.compare import DIFFERENT, EXTRA, MISSING, Row, compare_on
from fairlane_controller.config.read import Loaded, check, ensure_run_folder, find_run, read_file, running
from fairlane_controller.config.show import read_current_config, to_toml
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_file, bad_input
from fairlane_controller.history.undo import changing
from fairlane_controller.program.registry import load_program
from fairlane_controller.program.setup import set_up_changes, set_up_program
from fairlane_controller.state.files import read_text
from fairlane_controller.state.run_state import SwitchState, find_folder, read_run_state
from fairlane_controller.switch.client import SwitchClient, endpoint_of, pipeline_of
from fairlane_controller.typed import typed
from fairlane_controller.units import counted, plain_value

DIFFERENT_EXIT_CODE = 10
"""Something is not as the file says; docs/cli.md has the table."""
_MARKS = {MISSING: "+", DIFFERENT: "~", EXTRA: "-"}

config_app = App(
    help="Set switches up; the configuration file: check, show, diff, edit, apply; set one port.",
)

# ---- without a file --------------------------------------------------------------------------------------------------

TIMEOUT = Seconds(15)


class _Done(NamedTuple):
    """What became of one switch."""

    result: dict[str, Any]
    "Of `set_up_program`; a dry run has none."
    plan: DryResult


@config_app.command("init")
@on_switches
def init_command(
    scheme: Annotated[
        str | None, typer.Option("--scheme", help="Scheme of all managed ports, where the program has schemes; default: as it is.")
    ] = None,
    timeout: Annotated[Seconds, time_option("--timeout", help="How long to wait for a switch.", at_least=0.1, at_most=600)] = TIMEOUT,
    dry_run: DryRunOption = False,
    *,
    targets: Targets,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Load the program and write routes, port limits and schemes (and what else the program has); what is right already is not touched.

    Examples: `fairlane config init --scheme drop_tail`, `fairlane config init -s s1 --dry-run`
    """
    run = targets.need_run()
    if targets.loop_folder is not None:
        raise ErrorCode.LOOP_RUNNING(
            f"a control loop runs for {run.name!r} and has set its switches up: stop it before `init`",
        )
    program = load_program(run.program)
    plan = program.initial_plan(run, scheme)
    states = [run.switch(e.name) for e in targets.endpoints]
    for one in states:
        pipeline_of(one).check()

    async def set_up(one: SwitchState) -> _Done | FairlaneError:
        endpoint, files = endpoint_of(one), pipeline_of(one)
        try:
            async with SwitchClient(endpoint, timeout_s=timeout) as client:
                loads = not client.has_pipeline or await client.cookie() != files.cookie()
                if dry_run and loads:
                    return _Done({}, DryResult(one.name, loads=True))
                if dry_run:
                    change = await set_up_changes(client, program, plan, one)
                    return _Done({}, DryResult(one.name, change.updates(one.name), client.switch.p4info))
            async with SwitchClient(endpoint, write=True, pipeline=files, timeout_s=timeout) as client:
                return _Done(await set_up_program(client, program, plan, one), DryResult(one.name, loads=loads))
        except FairlaneError as ex:
            return ex

    async def work() -> tuple[list[_Done], list[FairlaneError]]:
        async with changing(None if dry_run else run.folder, typed()) as made:
            found = await asyncio.gather(*map(set_up, states))
            done = [one for one in found if isinstance(one, _Done)]
            loaded = [one.plan.switch for one in done if one.plan.loads]
            # A program that was loaded cannot be taken back; a switch that failed is as it was.
            names = {one.plan.switch for one in done} if not loaded else ()
            made.undo = [step for step in made.undo if step["switch"] in names]
            if loaded:
                made.note = (
                    f"the program was loaded on {', '.join(loaded)}, and the entries and counters of the one before are gone: "
                    "start the topology with the other program and run `fairlane config init`"
                )
        return done, [one for one in found if isinstance(one, FairlaneError)]

    done, errors = asyncio.run(work())
    results = [one.result for one in done]
    if dry_run:
        print_dry([one.plan for one in done], as_json)
    elif as_json:
        print_json(results)
    else:
        for r in results:
            ports = ", ".join(map(str, r["managed_ports"])) or "none"
            routes, written = counted(r["routes"], "route"), counted(r["written"], "entry")
            say(f"{r['switch']}: {routes}, {program.ports_title}: {ports}; {written} written")
    if errors:
        text = "; ".join(error.message for error in errors)
        raise errors[0].code(f"{len(errors)} of {counted(len(states), 'switch')}: {text}")


@config_app.command("set")
@on_switches
def set_command(
    port: PortArgument,
    settings: Annotated[
        list[str], typer.Argument(help="KEY=VALUE of the program, as in the file: target=10ms.", metavar="KEY=VALUE")
    ],
    *,
    targets: Targets,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Change the program's settings at one port, all or nothing; what is not named stays. `fairlane undo` takes it back.

    Examples: `fairlane config set s1:3 target=10ms`, `fairlane config set s1:3 ecn=false --dry-run`
    """
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


# ---- the configuration file -------------------------------------------------------------------------------------------

FileArgument = Annotated[Path, typer.Argument(help="Configuration (docs/configuration.md).", metavar="FILE")]
LastFileArgument = Annotated[
    Path | None, typer.Argument(help="Configuration; default: what was applied last.", metavar="FILE")
]


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

    A FILE that names a program in a folder is refused unless --run-program allows to run its code, or its topology runs it.
    """
    loaded = read_file(file, state, run_program=run_program)
    run = running(loaded, state)
    check(loaded, run)
    if as_json:
        print_json({"valid": True, "file": str(file), "topology": run.name if run else None})
        return
    where = f" for the topology {run.name}" if run else "; no topology runs to check it against"
    say(f"{file}: valid{where}{_EMPTY if loaded.is_empty else ''}")


_EMPTY = "; the file is empty: it leaves the switches alone"


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


@config_app.command("diff")
def diff_command(file: LastFileArgument = None, state: StateOption = None, as_json: JsonOption = False) -> None:
    """Compare a configuration with what the switches have: entries that are missing, different or extra. Exit code 10 when there are any."""
    loaded = read_file(file, state) if file is not None else last_applied(find_folder(state))
    found = asyncio.run(compare_on(loaded, find_run(loaded, state)))
    if as_json:
        print_json({"same": found.same, "differences": [row.to_json() for row in found.rows]})
    else:
        _print_differences(loaded, loaded.source.name, found.rows)
    if not found.same:
        raise typer.Exit(DIFFERENT_EXIT_CODE)


def _print_differences(loaded: Loaded, name: str, rows: Sequence[Row]) -> None:
    """Print what differs, or differed, from the configuration `name`."""
    same = f"the switches have what it says{_EMPTY if loaded.is_empty else ''}"
    say(f"{name}: {counted(len(rows), 'difference') if rows else same}")
    for row in rows:
        say(f"{_MARKS[row.status]} {row.switch} {row.what} {row.place}: {row.status}")
        for who, text in (("file", row.wanted), ("now", row.current)):
            if text:
                say(f"    {who:4} {text}")


@config_app.command("apply")
def apply_command(
    file: FileArgument,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the switches have what FILE says, touching only what differs: all of them, or none."""
    loaded = read_file(file, state)
    done = _apply(loaded, state, dry_run, as_json)
    if done is not None and as_json:
        print_json(done.to_json())
    elif done is not None:
        counts = [f"{name}: {counted(count, 'entry')}" for name, count in done.written.items()]
        counts += [f"{counted(done.settings, 'setting')} of policies"] if done.settings else []
        counts += [counted(done.ports, "port")] if done.ports else []
        say(
            f"{file} applied ({', '.join(counts) or 'the switches have it already'}{_EMPTY if loaded.is_empty else ''})"
        )


def _apply(loaded: Loaded, state: str | None, dry_run: bool, as_json: bool) -> Applied | None:
    """Apply a configuration that was read; a dry run prints what would be written, and returns None. Raises what is wrong."""
    run = find_run(loaded, state)
    if dry_run:
        print_dry(asyncio.run(compare_on(loaded, run)).switches, as_json)
        return None
    check(loaded, run)  # before a folder is made for it
    ensure_run_folder(run)
    return asyncio.run(apply(loaded, run, typed()))


@config_app.command("edit")
def edit_command(
    file: LastFileArgument = None,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open a copy of the configuration file in $VISUAL or $EDITOR, then check it, apply it, and show what differed.

    A copy with a mistake stays beside the file, and nothing is applied. The file is replaced when all switches have what it says.

    Examples: `fairlane config edit`, `fairlane config edit fairlane.toml --dry-run`
    """
    path = file or last_applied(find_folder(state)).path
    assert path is not None
    # Beside the file, so that a program that it names by a relative path is found.
    before, copy = read_text(path), _copy_of(path)
    try:
        _edit(copy)
        loaded = read_file(copy, state)
        if loaded.source.text == before:
            copy.unlink()
            say(f"{path}: not changed")
            return
        source = replace(loaded.source, name=str(path))
        done = _apply(replace(loaded, source=source, path=path.absolute()), state, dry_run, as_json)
    except FairlaneError as ex:
        raise ex.code(f"{ex.message}; nothing was applied, your text is in {copy}") from None
    if done is None:
        copy.unlink()
        return
    copy.replace(path)
    if as_json:
        print_json({**done.to_json(), "differences": [row.to_json() for row in done.rows]})
        return
    _print_differences(loaded, str(path), done.rows)
    say(f"{path} applied")


def _copy_of(path: Path) -> Path:
    """A copy with the file's mode, of a name that no kept copy has. Raises BAD_FILE."""
    try:
        number, name = tempfile.mkstemp(prefix=f"{path.stem}-edit-", suffix=path.suffix, dir=path.absolute().parent)
        os.close(number)
        return Path(shutil.copy(path, name))
    except OSError as ex:
        raise bad_file(f"{path} cannot be copied: {ex.strerror}") from None


def _edit(copy: Path) -> None:
    """Open a copy in the editor. Raises BAD_INPUT."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = subprocess.run([*shlex.split(editor), str(copy)], check=False).returncode
    except (OSError, ValueError) as ex:
        raise bad_input(f"the editor {editor!r} cannot be started: {ex}") from None
    if code != 0:
        raise bad_input(f"the editor {editor!r} ended with exit code {code}")
