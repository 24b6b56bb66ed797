# SPDX-License-Identifier: Apache-2.0
"""JSON and TOML from outside, as plain data of a bounded depth: every error in a text is the same exception, with its place."""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
from pathlib import Path
from typing import Any, cast

MAX_DEPTH = 64
"""Levels of arrays and objects. Ours have eight; what works on them may recurse without counting."""

_toml: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_TOML_PLACE = re.compile(r"^(?P<what>.*) \(at line (?P<line>\d+), column (?P<column>\d+)\)$", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_JSON_INT = 1 << 1000
"""A value of a P4 table has hundreds of bits; a double holds less than 1024."""
_MAX_TOML_INT = 1 << 63
"""As TOML has it."""
_TOO_DEEP = f"arrays or objects are nested more than {MAX_DEPTH} levels deep"


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


def parse_json(text: str) -> Any:
    """A JSON document (RFC 8259: without NaN and Infinity). Raises DocumentError."""
    try:
        value: Any = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as ex:
        raise DocumentError(ex.msg, ex.lineno, ex.colno) from None
    except DocumentError:
        raise
    except ValueError as ex:  # a number of too many digits
        raise DocumentError(str(ex).split(";")[0]) from None
    except RecursionError:
        raise DocumentError(_TOO_DEEP) from None
    _check(value, finite=True, most=_MAX_JSON_INT)
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """A TOML document. Raises DocumentError."""
    try:
        value = cast("dict[str, Any]", _toml.loads(text))
    except _toml.TOMLDecodeError as ex:
        found = _TOML_PLACE.match(str(ex))
        if found is None:
            raise DocumentError(str(ex)) from None
        raise DocumentError(found["what"], int(found["line"]), int(found["column"])) from None
    except ValueError as ex:  # a number of too many digits, a date that there is not
        raise DocumentError(str(ex).split(";")[0]) from None
    except RecursionError:
        raise DocumentError(_TOO_DEEP) from None
    _check(value, finite=False, most=_MAX_TOML_INT)
    return value


def _no_constant(word: str) -> Any:
    raise DocumentError(f"{word} is no JSON number")


def _check(value: Any, *, finite: bool, most: int) -> None:
    """Depth, and strings and numbers that are none; without recursion. TOML has words for numbers without end."""
    level, depth = [value], 0
    while level:
        below: list[Any] = []
        for one in level:
            if isinstance(one, (dict, list)):
                if depth == MAX_DEPTH:
                    raise DocumentError(_TOO_DEEP)
                if isinstance(one, dict):
                    items = cast("dict[str, Any]", one)
                    below += items.keys()
                    below += items.values()
                else:
                    below += cast("list[Any]", one)
            elif isinstance(one, str):
                if not one.isascii() and _SURROGATE.search(one):
                    raise DocumentError(f"{one[:40]!r} is no text: it has half of a surrogate pair")
            elif isinstance(one, int) and not -most <= one < most:
                raise DocumentError(
                    f"a number of {one.bit_length()} bits is too large: at most {most.bit_length() - 1}"
                )
            elif finite and isinstance(one, float) and not math.isfinite(one):
                raise DocumentError("a number is too large for a double")
        level, depth = below, depth + 1
