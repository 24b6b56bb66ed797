# SPDX-License-Identifier: Apache-2.0
"""How results and errors reach people (rich tables) and programs (JSON)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fairlane_controller.errors import FairlaneError

PIPE_COLUMNS = 160
"""Width of tables that go to a file or a pipe; a terminal has its own."""

console = Console(highlight=False)
if not console.is_terminal:
    console = Console(highlight=False, width=PIPE_COLUMNS)
error_console = Console(stderr=True, highlight=False)


def say(text: str, *, error: bool = False) -> None:
    """Print text for people as it is: no markup, no line broken.

    Args:
        text: What is printed.
        error: Print on standard error.
    """
    (error_console if error else console).print(text, markup=False, soft_wrap=True)


def print_json(data: Any) -> None:
    """Print one JSON document on standard output, keys in the order given."""
    print(json.dumps(data, indent=2, default=str))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str = "none", wrap: bool = False
) -> None:
    """Print a table for people. A table that is too wide for the terminal becomes a paragraph for each row.

    Args:
        title: Stands above the table.
        columns: Their headings. "switch" and "port", where they come first, are one column for people: `s1:3`.
        rows: Cells of each row; None is unknown. Columns of numbers are right-aligned.
        empty: Printed when there is no row.
        wrap: Long cells take several lines, so the table is never too wide.
    """
    if not rows:
        say(f"{title}: {empty}")
        return
    if tuple(columns[:2]) == ("switch", "port"):
        columns = columns[1:]
        rows = [(row[0] if row[1] is None else f"{row[0]}:{row[1]}", *row[2:]) for row in rows]
    texts = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    table = Table(title=Text(title), title_justify="left", header_style="bold")
    for name, cells in zip(columns, zip(*texts, strict=True), strict=True):
        numbers = all(cell[:1] in "-0123456789" for cell in cells)
        table.add_column(Text(name), justify="right" if numbers else "left", no_wrap=not wrap)
    for row in texts:
        table.add_row(*map(Text, row))
    width = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    if wrap or width <= console.width:
        console.print(table)
        return
    say(title)
    for row in texts:
        known = (f"{name} {text}" for name, text in zip(columns, row, strict=True) if text not in ("", "-"))
        console.print(f"  {'   '.join(known)}", markup=False)


def print_error(error: FairlaneError, *, as_json: bool) -> None:
    """Print one sentence on standard error, or `{"error": {"code", "message"}}` with `--json`."""
    if as_json:
        error_console.print_json(data={"error": error.to_json()})
    else:
        say(f"fairlane: {error.message}", error=True)
