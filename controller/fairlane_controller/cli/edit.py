# SPDX-License-Identifier: Apache-2.0
"""`fairlane config edit`: change the configuration file in an editor, and apply it when it is valid."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fairlane_controller.cli.diff import compare_file, print_differences
from fairlane_controller.cli.dry import dry_results, print_dry
from fairlane_controller.cli.options import DryRunOption, JsonOption, StateOption
from fairlane_controller.cli.output import print_json, say
from fairlane_controller.config.apply import apply, last_applied
from fairlane_controller.config.read import read_file
from fairlane_controller.config.target import keep
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.files import read_text
from fairlane_controller.state.run_state import find_folder
from fairlane_controller.typed import typed


def edit_command(
    file: Annotated[
        Path | None, typer.Argument(help="Configuration; default: the file that was applied last.", metavar="FILE")
    ] = None,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open a copy of the configuration file in $VISUAL or $EDITOR, then check it, show what differs, and apply it.

    A copy with a mistake stays beside the file, and nothing is applied. The file is replaced when all switches have what it says.

    Examples: `fairlane config edit`, `fairlane config edit fairlane.toml --dry-run`
    """
    path = file or last_applied(find_folder(state)).path
    assert path is not None
    before, copy = read_text(path), path.absolute().with_name(f"{path.stem}-edit-{os.getpid()}{path.suffix}")
    try:
        _edit(path, copy)
        loaded = read_file(copy, state)
        if loaded.source.text == before:
            copy.unlink()
            say(f"{path}: not changed")
            return
        run, found = compare_file(loaded, state)
        if dry_run:
            print_dry(dry_results(found), as_json)
            copy.unlink()
            return
        loaded = replace(loaded, source=replace(loaded.source, name=str(path)), path=path.absolute())
        if not as_json:
            print_differences(str(path), found)
        keep(run)
        done = asyncio.run(apply(loaded, run, typed()))
    except FairlaneError as ex:
        raise FairlaneError(ex.code, f"{ex.message}; nothing was applied, your text is in {copy}") from None
    copy.replace(path)
    if as_json:
        print_json({**done.to_json(), "differences": [row.to_json() for row in found.rows]})
    else:
        say(f"{path} applied")


def _edit(path: Path, copy: Path) -> None:
    """Open a copy in the editor; it is in the file's folder, so that a program that the file names by a relative path is found."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        shutil.copy(path, copy)  # with its mode
        code = subprocess.run([*shlex.split(editor), str(copy)], check=False).returncode
    except (OSError, ValueError) as ex:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"the editor {editor!r} cannot be started: {ex}") from None
    if code != 0:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"the editor {editor!r} ended with exit code {code}")
