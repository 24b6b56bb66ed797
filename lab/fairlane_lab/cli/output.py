# SPDX-License-Identifier: Apache-2.0
"""How `fairlane lab` speaks: results on standard output, progress and errors on standard error."""

from __future__ import annotations

import json
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

console = Console()
errors = Console(stderr=True)

JsonOption = Annotated[bool, typer.Option("--json", help="JSON on standard output instead of tables.")]

FAILED = 1
"""Exit code: something that was asked for has no result."""
BAD_INPUT = 2


def fail(text: str, code: int = BAD_INPUT) -> NoReturn:
    """Say what is wrong and leave."""
    errors.print(f"error: {text}", style="red", soft_wrap=True, highlight=False, markup=False)
    raise typer.Exit(code)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(value, indent=1, allow_nan=False, default=str))
