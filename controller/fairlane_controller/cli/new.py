# SPDX-License-Identifier: Apache-2.0
"""`fairlane new`: a queueing scheme, a sender or an experiment of one's own, which runs as it is."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from fairlane_controller.cli.output import console
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.names import program_names

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
PROGRAM = "droptail"
CLASS = "DropTail"
SENDER = "gentle"
EXPERIMENT = "shares"
NAME_CHARS_MAX = 32
SENDER_CHARS_MAX = 12
"""The kernel's names of congestion controls have 15, of which `fl_` takes 3."""

_PROGRAM_NEXT = """\
{name}/README.md says what each file is for. From here:

  fairlane lab run {name}/experiment.toml      in virtual time
  fairlane p4 test {name}/                     packet by packet: {name}/ptf/
  fairlane p4 compile {name}/                  after a change of {name}/{name}.p4
"""
_SENDER_NEXT = """\
{name}/README.md says what each file is for. From here:

  fairlane lab run {name}/experiment.toml      in virtual time; --runtime mininet: on Linux hosts, as root
"""
_EXPERIMENT_NEXT = """\
{name}.toml: how do Reno and Vegas share a line? From here:

  fairlane lab show {name}.toml                what it is
  fairlane lab run {name}.toml                 in virtual time; --runtime mininet: on Linux hosts
"""


def new_command(
    name: Annotated[str, typer.Argument(help="my_queue; of an experiment my-question.", metavar="NAME")],
    sender: Annotated[
        bool, typer.Option("--sender", help="A TCP sender, NAME/ with a C header, instead of a queueing scheme.")
    ] = False,
    experiment: Annotated[
        bool, typer.Option("--experiment", help="An experiment, NAME.toml, instead of a queueing scheme.")
    ] = False,
) -> None:
    """Write a queueing scheme into a new folder NAME/: P4 program (compiled), Python, experiment, PTF test, README. It runs as it is.

    It is the smallest scheme, a drop-tail queue with a limit: change it from there. docs/programs.md says what a program can be.
    A sender (docs/tutorial-new-sender.md) is Reno with another reduction.

    Examples: `fairlane new my_queue`, `fairlane new --sender my_tcp`, `fairlane new --experiment my-question`
    """
    if sender and experiment:
        raise FairlaneError(
            ErrorCode.BAD_INPUT, "a sender or an experiment: --sender and --experiment exclude each other"
        )
    _check_name(name, "-" if experiment else "_", SENDER_CHARS_MAX if sender else NAME_CHARS_MAX)
    if sender:
        names = {
            f"{SENDER}-": f"{name.replace('_', '-')}-",  # an experiment's name
            SENDER: name,
            SENDER.capitalize(): name.capitalize(),
            SENDER.upper(): name.upper(),
        }
        _write(Path(name), lambda made: _copy_folder(EXAMPLES / SENDER, made, names))
        console.print(_SENDER_NEXT.format(name=name), markup=False, soft_wrap=True, end="")
        return
    if experiment:
        _write(Path(f"{name}.toml"), lambda made: _copy(EXAMPLES / f"{EXPERIMENT}.toml", made, {EXPERIMENT: name}))
        console.print(_EXPERIMENT_NEXT.format(name=name), markup=False, soft_wrap=True, end="")
        return
    if name in program_names():
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{name} is a program of fairlane already: choose another name")
    class_name = "".join(part.capitalize() for part in name.split("_"))
    names = {
        f"docs/examples/{PROGRAM}": name,
        f"{PROGRAM}-": f"{name.replace('_', '-')}-",  # an experiment's name
        PROGRAM: name,
        CLASS: class_name,
    }
    _write(Path(name), lambda made: _copy_folder(EXAMPLES / PROGRAM, made, names))
    console.print(_PROGRAM_NEXT.format(name=name), markup=False, soft_wrap=True, end="")


def _check_name(name: str, between: str, chars_max: int) -> None:
    if not re.fullmatch(f"[a-z][a-z0-9]*({between}[a-z0-9]+)*", name) or len(name) > chars_max:
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"name {name!r}: must be words of small letters and digits with one {between} between two of them, "
            f"begin with a letter, and have at most {chars_max} characters",
        )


def _write(target: Path, make: Callable[[Path], None]) -> None:
    """Make a file or folder whole, or not at all. BAD_INPUT if it is there; BAD_FILE if it cannot be written."""
    if target.exists():
        raise FairlaneError(ErrorCode.BAD_INPUT, f"{target} is there already: choose another name, or remove it")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.stem}-", dir=target.parent) as folder:
            made = Path(folder) / target.name
            make(made)
            made.rename(target)
    except OSError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{target} cannot be written: {ex.strerror or ex}") from None


def _copy_folder(source: Path, target: Path, names: dict[str, str]) -> None:
    """Copy a folder; names stand also in names of files."""
    target.mkdir()
    for path in sorted(source.rglob("*")):
        if "__pycache__" in path.parts:
            continue
        to = target / _renamed(str(path.relative_to(source)), names)
        if path.is_dir():
            to.mkdir()
        else:
            _copy(path, to, names)


def _copy(source: Path, target: Path, names: dict[str, str]) -> None:
    shutil.copymode(source, shutil.copyfile(source, target))
    target.write_text(_renamed(source.read_text(encoding="utf-8"), names), encoding="utf-8")


def _renamed(text: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(old, new)
    return text
