# SPDX-License-Identifier: Apache-2.0
"""How the results of simple_switch_CLI's verbs look to people: one line of names and values, and a table of what is a list."""

from __future__ import annotations

from typing import Any, cast

from fairlane_controller.cli.output import print_error, print_table, say
from fairlane_controller.verbs.entries import entry_text
from fairlane_controller.verbs.script import Line


def print_line(line: Line) -> None:
    """What one line did or read, or why it could not."""
    if line.error is not None:
        print_error(line.error, as_json=False)
        return
    rows: dict[str, list[dict[str, Any]]] = {name: value for name, value in line.data.items() if _is_rows(value)}
    first, *rest = [f"{name} {_text(value)}" for name, value in line.data.items() if name not in rows] or [line.verb]
    title = f"{first}: {', '.join(rest)}" if rest else first
    for found in rows.values():
        columns = [
            name
            for name in (found[0] if found else ())
            if any(_text(row.get(name)) not in ("-", "false") for row in found)
        ]
        print_table(title, columns, [[_text(row.get(name)) for name in columns] for row in found], wrap=True)
    if not rows:
        say(title)


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in cast("list[Any]", value))


def _text(value: Any) -> str:
    """A value in words: an entry as a line has it, an object of a list as `name (what else it has)`."""
    if isinstance(value, dict):
        data = cast("dict[str, Any]", value)
        return entry_text(data) if "match" in data else " ".join(f"{name}={one}" for name, one in data.items())
    if isinstance(value, list):
        return ", ".join(_item(one) for one in cast("list[Any]", value)) or "-"
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _item(value: Any) -> str:
    if not isinstance(value, dict):
        return _text(value)
    first, *rest = [_text(one) for one in cast("dict[str, Any]", value).values()]
    return f"{first} ({', '.join(rest)})"
