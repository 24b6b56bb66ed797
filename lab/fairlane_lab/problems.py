# SPDX-License-Identifier: Apache-2.0
"""What is wrong with an experiment file: every problem with its place, what was given and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError, short
from fairlane_controller.problems import keys_at
from pydantic import ValidationError
from pydantic_core import ErrorDetails


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    path: str
    """TOML path of the key, such as `flows[1].variant`; empty for the file as a whole."""
    message: str
    """What was given and what is allowed."""
    file: str = ""
    """Where it stands, when that is not the file that was asked for."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class RunFolderError(FairlaneError, ValueError):
    """BAD_FILE: a folder that cannot be reported on; the text names the folder, what is wrong and what is expected."""

    def __init__(self, text: str) -> None:
        super().__init__(ErrorCode.BAD_FILE, text)


class ExperimentError(FairlaneError, ValueError):
    """BAD_FILE: an experiment file that cannot be used, or a selection from it that makes no sense. Nothing has run."""

    def __init__(self, origin: str, problems: Sequence[Problem]) -> None:
        self.origin = origin
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__(ErrorCode.BAD_FILE, "\n".join(self._lines()))

    def _lines(self) -> Iterable[str]:
        """A line a problem; what there is to choose from is listed once."""
        listed: set[str] = set()
        for problem in self.problems:
            message, listing, names = str(problem).partition(LISTING)
            if names not in listed:
                listed.add(names)
                message += listing + names
            yield ": ".join(filter(None, (problem.file or self.origin, message)))


LISTING = " There are: "
"""Stands before the names that are allowed."""


def place(parts: Iterable[str | int]) -> str:
    """`flows[1].variant` of `("flows", 1, "variant")`."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if part.replace("-", "_").isidentifier() else f'"{part}"'
            text += f".{key}" if text else key
    return text


def unknown(what: str, given: object, allowed: Iterable[object]) -> str:
    """`there is no variant 'vages'; did you mean 'vegas'? There are …`"""
    names = [str(name) for name in allowed]
    near = difflib.get_close_matches(str(given), names, 1, 0.6)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"there is no {what} {given!r}.{hint}{LISTING}{', '.join(names) or 'none'}"


Location = tuple[str | int, ...]
_MEMBERS = frozenset({"int", "float", "str", "bool", "Between", "bars", "lines", "series", "cdf", "heat"})
_SHAPES = {"list_type": "a list", "model_type": "a table", "dict_type": "a table", "dataclass_type": "a table"}
_UNITS = {
    "_s": "seconds",
    "_ms": "milliseconds",
    "_us": "microseconds",
    "_bps": "bit/s",
    "_bytes": "bytes",
    "_packets": "packets",
}
"""Of a number, by the end of its key."""


def pydantic_problems(error: ValidationError, model: type[Any], around: Location = ()) -> list[Problem]:
    """Every error of a model as a problem; `around` is where the model stands in the file."""
    details = error.errors()
    found = [(_keys_only(detail["loc"]), detail) for detail in details]
    return [
        _problem((*around, *loc), detail, model)
        for loc, detail in found
        if detail["type"] not in _SHAPES
        or not any(other[: len(loc)] == loc and each["type"] not in _SHAPES for other, each in found)
    ]


def _keys_only(loc: Location) -> Location:
    """A pydantic location without the members of unions, which are no keys of the file."""
    return tuple(part for part in loc if isinstance(part, int) or not (part in _MEMBERS or "[" in part))


def _problem(path: Location, detail: ErrorDetails, model: type[Any]) -> Problem:
    given = repr(detail["input"])
    given = given if len(given) <= 80 else given[:77] + "..."
    context = detail.get("ctx", {})
    kind = detail["type"]
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        text = unknown("key", str(detail["loc"][-1]), keys_at(model, detail["loc"][:-1]))
    elif kind == "missing":
        text = "is missing"
    elif kind in _SHAPES:
        text = f"got {given}; allowed: {_SHAPES[kind]}"
    elif kind == "union_tag_invalid":
        tag = context["discriminator"].strip("'")
        path, text = (*path, tag), f"got {context['tag']!r}; allowed: {context['expected_tags']}"
    elif kind in ("float_parsing", "float_type", "int_parsing", "int_type", "int_from_float"):
        unit = next((f" of {unit}" for end, unit in _UNITS.items() if str(path[-1]).endswith(end)), "")
        text = f"got {given}; allowed: a {'whole ' if kind.startswith('int') else ''}number{unit}"
    elif kind == "literal_error":
        text = f"got {given}; allowed: {context.get('expected', '')}"
    elif kind == "value_error":
        text = str(context.get("error", detail["msg"]))
    else:
        text = f"got {given}; {detail['msg'][0].lower()}{detail['msg'][1:]}"
    said, listing, names = text.rpartition(LISTING)
    return Problem(short(place(path)), f"{short(said, 800)}{listing}{names if listing else short(names, 800)}")
