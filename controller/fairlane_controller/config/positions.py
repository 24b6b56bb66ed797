# SPDX-License-Identifier: Apache-2.0
"""Where in a TOML text each key stands: `policies[0].scheme` to line and column, for errors that editors can jump to.

The text is read statement by statement, each by the TOML parser. What is inside a value stands where its statement does.
"""

from __future__ import annotations

from typing import Any, cast

from fairlane_controller.documents import DocumentError, parse_toml

Position = tuple[int, int]
"""Line and column, from 1."""
MAX_LINES = 200
"""Lines of a statement that are tried as its end; what follows a longer one has no position."""


def positions(text: str) -> dict[str, Position]:
    """Line and column of the keys of a valid TOML text."""
    found: dict[str, Position] = {}
    counts: dict[str, int] = {}
    prefix, statement, at, tried = "", "", (1, 1), 0
    for number, line in enumerate(text.split("\n"), 1):
        if not statement:
            at, tried = (number, len(line) - len(line.lstrip()) + 1), 0
        statement += f"{line}\n"
        tried += 1
        try:
            data = parse_toml(statement) if tried <= MAX_LINES else None
        except DocumentError:
            continue
        if data is None:
            break
        if statement.lstrip().startswith("["):
            prefix = _header(data, counts, found, at)
            data = {}
        _note(found, prefix, data, at)
        statement = ""
    return found


def _header(data: Any, counts: dict[str, int], found: dict[str, Position], at: Position) -> str:
    """The path of a table's header; an array of tables on the way means its last table."""
    path = ""
    while data:
        ((name, data),) = data.items()
        path = f"{path}.{name}" if path else name
        found.setdefault(path, at)
        if isinstance(data, list):
            counts[path] = counts.get(path, -1) + 1
            data = {}
        if path in counts:
            path = f"{path}[{counts[path]}]"
    return path


def _note(found: dict[str, Position], path: str, value: Any, at: Position) -> None:
    """A key, and all that is in its value."""
    if path:
        found.setdefault(path, at)
    if isinstance(value, dict):
        for name, one in cast("dict[str, Any]", value).items():
            _note(found, f"{path}.{name}" if path else name, one, at)
    elif isinstance(value, list):
        for index, one in enumerate(cast("list[Any]", value)):
            _note(found, f"{path}[{index}]", one, at)


def nearest(found: dict[str, Position], path: str) -> Position | None:
    """The position of a key, or of the nearest thing around it that has one."""
    while path and path not in found:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return found.get(path)
