# SPDX-License-Identifier: Apache-2.0
"""What the commands of `fairlane lab` share: options and their meaning; results on standard output, progress and errors on standard error."""

from __future__ import annotations

import csv
import fnmatch
import json
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from fairlane_controller.cli.complete import complete_names
from fairlane_controller.errors import ErrorCode, bad_file, bad_input
from rich import box
from rich.console import Console
from rich.table import Table

from fairlane_lab.definition.extend import experiment_names
from fairlane_lab.definition.strict import Runtime, Scalar, scalar_of
from fairlane_lab.problems import ExperimentError

if TYPE_CHECKING:
    from fairlane_lab.definition.expansion import Selection
    from fairlane_lab.definition.loading import Definition

console = Console()
errors = Console(stderr=True)


FAILED = 1
"""Exit code: something that was asked for has no result."""
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on standard output instead of tables.")]
ResultsOption = Annotated[Path | None, typer.Option(help="Folder of the run folders; default: results/.")]
complete_experiment = complete_names(lambda _: experiment_names())


def note(text: str, style: str = "dim") -> None:
    """A line on standard error, as it is."""
    errors.print(text, style=style, soft_wrap=True, highlight=False, markup=False)


@contextmanager
def refusals() -> Generator[None]:
    """A file that the block cannot read or write is a BAD_FILE error."""
    try:
        yield
    except OSError as error:
        raise bad_file(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from error


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(value, indent=1, allow_nan=False, default=str))


def make_table(*heads: str, right: str = "", **settings: Any) -> Table:
    """A table with these columns; those that `right` names are numbers."""
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0), show_edge=False, **settings)
    for head in heads:
        table.add_column(head, justify="right" if head and head in right else "left", overflow="fold")
    return table


def find_experiments(names: Sequence[str], selection: Selection | None = None) -> list[Definition]:
    """The experiments that names and patterns mean, of a pattern only those that run in the selection's runtime.

    Raises what is wrong, also of what is selected in any of them.
    """
    from fairlane_lab.definition.expansion import expand
    from fairlane_lab.definition.loading import load

    known = experiment_names()
    found: dict[str, Definition] = {}
    for given in names:
        pattern = "*" if given == "all" else given
        if not any(character in pattern for character in "*?["):
            found[given] = load(given)
            continue
        matching = [load(name) for name in known if fnmatch.fnmatchcase(name, pattern)]
        chosen = {
            each.experiment.name: each
            for each in matching
            if selection is None or each.experiment.runs_in(selection.runtime)
        }
        if not chosen:
            raise ErrorCode.UNKNOWN_NAME(f"no experiment is called like {given!r}; there are: {', '.join(known)}")
        found |= chosen
    for definition in found.values() if selection else ():
        try:
            expand(definition, selection)
        except ExperimentError as error:
            raise bad_input(error.message) if selection and selection.values else error from None
    return list(found.values())


def make_selection(
    runtime: Runtime,
    seed: int,
    repeats: int | None,
    values: Sequence[str] | None,
    quick: bool,
    target: str = "embedded",
) -> Selection:
    """The selection that the options mean. Raises BAD_INPUT."""
    from fairlane_lab.definition.expansion import Selection

    if runtime != "mininet" and target != "embedded":
        raise bad_input(
            f"--target {target}: the simulator runs the embedded switch's own code; {target} needs --runtime mininet"
        )
    if runtime == "mininet" and os.geteuid() != 0:
        raise bad_input("Mininet needs root: run it with sudo, or use --runtime sim")
    found: dict[str, tuple[Scalar, ...]] = {}
    for text in values or ():
        name, _, listed = (part.strip() for part in text.partition("="))
        try:
            words = [word.strip() for row in csv.reader([listed], skipinitialspace=True, strict=True) for word in row]
        except csv.Error:
            words = []
        if not (name and words and all(words)):
            raise bad_input(f"--set {text!r}: must be PARAM=VALUE, PARAM=VALUE,VALUE or PARAM=FIRST..LAST, a value with a comma in double quotes")  # fmt: skip
        if name in found:
            raise bad_input(f"--set {text!r}: {name} is set twice; give its values with commas")
        found[name] = tuple(value for word in words for value in _values(word, text))
    return Selection(runtime=runtime, seed=seed, repeats=repeats, quick=quick, values=found)


def _values(word: str, text: str) -> list[Scalar]:
    first, dots, last = word.partition("..")
    if not dots:
        return [scalar_of(word)]
    low, high = scalar_of(first), scalar_of(last)
    if not isinstance(low, int) or not isinstance(high, int) or high < low or high - low > 10_000:
        raise bad_input(f"--set {text!r}: {word!r} must be two whole numbers, the first not above the last")
    return list(range(low, high + 1))
