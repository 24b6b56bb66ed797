# SPDX-License-Identifier: Apache-2.0
"""JSON and TOML from outside, as plain data of a bounded depth: every error in a text is the same exception, with its place. Files that are written whole or not at all."""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeGuard

MAX_DEPTH = 64
"""Levels of arrays and objects. Ours have eight; what works on them may recurse without counting."""

_toml: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_PLACE = re.compile(r"^(.*?)(?:: | \(at )line (\d+),? column (\d+)", re.DOTALL)
_BOM = "\ufeff"
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_JSON_INT = 1 << 1000
"""A value of a P4 table has hundreds of bits; a double holds less than 1024."""
_MAX_TOML_INT = 1 << 63
"""As TOML has it."""
_TOO_DEEP = f"arrays or objects are nested more than {MAX_DEPTH} levels deep"


def is_table(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a value of a document is an object of JSON, a table of TOML."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Whether a value of a document is an array."""
    return isinstance(value, list)


class DocumentError(ValueError):
    """What is wrong with a text; `line` and `column` count from 1, and are None where the fault has no one place."""

    def __init__(self, what: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(what if line is None else f"line {line}, column {column}: {what}")
        self.what = what
        self.line = line
        self.column = column


def is_file(path: str | Path) -> bool:
    """Whether a file has this name; False, too, for a name that no file can have: too long, or with a NUL."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def inode_of(path: Path) -> int | None:
    """What tells one file of that name from the next; None where there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return None


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file whole or not at all. Raises OSError."""
    draft = path.with_name(f".{path.name}.new")
    try:
        write(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_json(path: Path, document: Any) -> None:
    """Write a JSON file whole or not at all. Raises OSError."""
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    write_whole(path, lambda draft: draft.write_text(text))


def read_json(path: Path) -> Any:
    """The document in a file of ours; None where there is no file, or no JSON in it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def parse_json(text: str) -> Any:
    """A JSON document (RFC 8259: without NaN and Infinity; a byte order mark is skipped). Raises DocumentError."""
    return _parse(
        lambda: json.loads(text.removeprefix(_BOM), parse_constant=_no_constant), finite=True, max_int=_MAX_JSON_INT
    )


def parse_toml(text: str) -> dict[str, Any]:
    """A TOML document, which may have numbers without end; a byte order mark is skipped. Raises DocumentError."""
    return _parse(lambda: _toml.loads(text.removeprefix(_BOM)), finite=False, max_int=_MAX_TOML_INT)


def _no_constant(word: str) -> Any:
    raise DocumentError(f"{word} is no JSON number")


def _parse(read: Callable[[], Any], *, finite: bool, max_int: int) -> Any:
    try:
        value = read()
    except DocumentError:
        raise
    except RecursionError:
        raise DocumentError(_TOO_DEEP) from None
    except ValueError as ex:  # also a number of too many digits, or a date that there is not
        found = _PLACE.match(str(ex))
        if found is None:
            raise DocumentError(str(ex).split(";")[0]) from None
        raise DocumentError(found[1], int(found[2]), int(found[3])) from None
    _check(value, 0, finite, max_int)
    return value


def _check(value: Any, depth: int, finite: bool, max_int: int) -> None:
    """Depth, and strings and numbers that are none."""
    if is_table(value) or is_array(value):
        if depth == MAX_DEPTH:
            raise DocumentError(_TOO_DEEP)
        for one in [*value, *(value.values() if is_table(value) else ())]:
            _check(one, depth + 1, finite, max_int)
    elif isinstance(value, str):
        if not value.isascii() and _SURROGATE.search(value):
            raise DocumentError(f"{value[:40]!r} is no text: it has half of a surrogate pair")
    elif isinstance(value, int):
        if not -max_int <= value < max_int:
            raise DocumentError(
                f"a number of {value.bit_length()} bits is too large: at most {max_int.bit_length() - 1}"
            )
    elif finite and isinstance(value, float) and not math.isfinite(value):
        raise DocumentError("a number is too large for a double")
