# SPDX-License-Identifier: Apache-2.0
"""How results and errors reach people (rich tables) and programs (`-o json`, `-o csv`)."""

from __future__ import annotations

import csv
import json
import sys
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

FORMS = ("table", "wide", "json", "csv")
"""What `-o` takes."""
_form = "table"


def use_form(form: str) -> None:
    """Print tables in one of FORMS from now on; with csv all other words go to standard error."""
    global _form
    _form = form
    console.stderr = form == "csv"


def shows_wide() -> bool:
    """Whether columns that are left out of a usual table are wanted too."""
    return _form in ("wide", "csv")


def say(text: str, *, error: bool = False) -> None:
    """Print text for people as it is: no markup, no line broken.

    Args:
        text: What is printed.
        error: Print on standard error.
    """
    (error_console if error else console).print(text, markup=False, soft_wrap=True)


def print_json(data: Any) -> None:
    """One JSON document on standard output, keys in the order given."""
    print(json.dumps(data, indent=2, default=str))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str = "none", wrap: bool = False
) -> None:
    """A table for people, or CSV; `empty` is said when there is no row. Numbers are right-aligned; `wrap`: long cells take more lines.

    The columns "switch" and "port", where they come first, are one for people: `s1:3`.
    """
    if _form == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows([columns, *rows])
        return
    if not rows:
        console.print(f"{title}: {empty}", markup=False)
        return
    if tuple(columns[:2]) == ("switch", "port"):
        columns = columns[1:]
        rows = [(row[0] if row[1] is None else f"{row[0]}:{row[1]}", *row[2:]) for row in rows]
    table = Table(title=Text(title), title_justify="left", header_style="bold")
    for position, name in enumerate(columns):
        known = [row[position] for row in rows if row[position] is not None and row[position] != "-"]
        numeric = all(isinstance(cell, (int, float)) or str(cell)[:1].isdigit() for cell in known)
        table.add_column(Text(name), justify="right" if numeric else "left", no_wrap=not wrap)
    for row in rows:
        table.add_row(*(Text(_text(cell)) for cell in row))
    if not wrap and not _fits(table):
        table.box, table.pad_edge, table.padding = None, False, (0, 2, 0, 0)
        if not _fits(table):
            _print_records(title, columns, rows)
            return
    console.print(table)


def _text(cell: object) -> str:
    return "-" if cell is None else str(cell)


def _fits(table: Table) -> bool:
    """Whether no cell would have to be cut in this terminal."""
    return Measurement.get(console, console.options.update(max_width=10_000), table).maximum <= console.width


def _print_records(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """For a narrow terminal: a paragraph a row, `name value` each, what is not known left out."""
    console.print(Text(title, "italic"))
    for row in rows:
        line, width = Text("  "), 2
        for name, value in zip(columns, map(_text, row), strict=True):
            if value in ("", "-"):
                continue
            needed = len(name) + len(value) + 4
            if width > 2 and width + needed > console.width:
                line.append("\n      ")
                width = 6
            line.append(f"{name} ", "dim")
            line.append(f"{value}   ")
            width += needed
        console.print(line, soft_wrap=True)


def print_error(error: FairlaneError, *, as_json: bool) -> None:
    """One sentence on standard error, or `{"error": {"code", "message"}}` there with `--json`."""
    if as_json:
        error_console.print_json(data={"error": error.to_json()})
    else:
        error_console.print(f"fairlane: {error.message}", markup=False, soft_wrap=True)
