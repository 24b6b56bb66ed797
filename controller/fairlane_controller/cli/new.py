# SPDX-License-Identifier: Apache-2.0
"""`fairlane new`: a queueing scheme, a sender or an experiment of one's own, which runs as it is."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from fairlane_controller.cli.output import say
from fairlane_controller.errors import bad_file, bad_input
from fairlane_controller.program.names import program_names

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
_SCHEME = ("droptail", "DropTail", "_", 32)
_SENDER = ("gentle", "Gentle", "_", 12)
"""The kernel's names of congestion controls have 15 characters, of which `fl_` takes 3."""
_EXPERIMENT = ("shares.toml", "Shares", "-", 32)
"""An example, its name as of a class; of names of one's own the character between words, and the max length."""


def new_command(
    name: Annotated[str, typer.Argument(help="my_queue; of an experiment my-question.", metavar="NAME")],
    sender: Annotated[bool, typer.Option("--sender", help="A TCP sender, NAME/ with a C header, instead of a queueing scheme.")] = False,
    experiment: Annotated[bool, typer.Option("--experiment", help="An experiment, NAME.toml, instead of a queueing scheme.")] = False,
) -> None:  # fmt: skip
    """Write a queueing scheme into a new folder NAME/: P4 program (compiled), Python, experiment, PTF test, README. It runs as it is.

    It is the smallest scheme, a drop-tail queue with a limit: change it from there. docs/programs.md says what a program can be.
    A sender (docs/tutorial-new-sender.md) is Reno with another reduction.

    Examples: `fairlane new my_queue`, `fairlane new --sender my_tcp`, `fairlane new --experiment my-question`
    """
    if sender and experiment:
        raise bad_input("--sender and --experiment exclude each other")
    example, title, between, chars_max = _SENDER if sender else _EXPERIMENT if experiment else _SCHEME
    if not re.fullmatch(f"[a-z][a-z0-9]*({between}[a-z0-9]+)*", name) or len(name) > chars_max:
        problem = f"name {name!r}: must be words of small letters and digits with one {between} between two of them, "
        raise bad_input(f"{problem}begin with a letter, and have at most {chars_max} characters")
    if not (sender or experiment) and name in program_names():
        raise bad_input(f"{name} is a program of fairlane already: choose another name")
    source, old = EXAMPLES / example, example.removesuffix(".toml")
    target = Path(f"{name}{source.suffix}")
    names = {
        f"docs/examples/{old}": name,
        f"{old}-": f"{name.replace('_', '-')}-",  # an experiment's name
        old: name,
        old.upper(): name.upper(),
        title: "".join(part.capitalize() for part in name.split("_")),
    }
    if target.exists():
        raise bad_input(f"{target} is there already: choose another name, or remove it")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=".") as folder:
            _copy(source, Path(folder) / target, names)
            (Path(folder) / target).rename(target)
    except OSError as ex:
        raise bad_file(f"{target} cannot be written: {ex.strerror or ex}") from None
    what_for = "" if experiment else f"; {name}/README.md says what each file is for"
    say(f"run it: fairlane lab run {target if experiment else target / 'experiment.toml'}{what_for}")


def _copy(source: Path, target: Path, names: Mapping[str, str]) -> None:
    """Copy a file, or a folder with all in it, with other names in texts and in names of files."""

    def renamed(text: str) -> str:
        for old, new in names.items():
            text = text.replace(old, new)
        return text

    def copy(file: Path, copied: Path) -> None:
        copied.write_text(renamed(file.read_text(encoding="utf-8")), encoding="utf-8")
        shutil.copymode(file, copied)

    def copy_in_folder(file: str, copied: str) -> None:
        copy(Path(file), Path(copied).with_name(renamed(Path(copied).name)))

    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), copy_function=copy_in_folder)
    else:
        copy(source, target)
