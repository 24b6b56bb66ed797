# SPDX-License-Identifier: Apache-2.0
"""Output of `fairlane lab`: results on standard output, progress and errors on standard error."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from fairlane_lab.problems import ExperimentError
from fairlane_lab.results.summary_file import RunFolderError

console = Console()
errors = Console(stderr=True)

JsonOption = Annotated[bool, typer.Option("--json", help="JSON on standard output instead of tables.")]

FAILED = 1
"""Exit code: something that was asked for has no result."""
BAD_INPUT = 2


def fail(text: str, code: int = BAD_INPUT) -> NoReturn:
    """Print what is wrong and leave."""
    note(f"error: {text}", "red")
    raise typer.Exit(code)


def note(text: str, style: str = "dim") -> None:
    """A line on standard error, as it is."""
    errors.print(text, style=style, soft_wrap=True, highlight=False, markup=False)


@contextmanager
def refusals() -> Generator[None]:
    """What the block was given and cannot use is one sentence, and exit code 2."""
    try:
        yield
    except (ExperimentError, RunFolderError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(value, indent=1, allow_nan=False, default=str))


def make_table(*heads: str, right: str = "", **settings: Any) -> Table:
    """A table with these columns; those that `right` names are numbers."""
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0), show_edge=False, **settings)
    for head in heads:
        table.add_column(head, justify="right" if head and head in right else "left", overflow="fold")
    return table
