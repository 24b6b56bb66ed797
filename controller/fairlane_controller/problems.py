# SPDX-License-Identifier: Apache-2.0
"""Errors of pydantic in our words: each has the key (`ports[0].lbo_cells`), what is wrong, and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from fairlane_controller.errors import FairlaneError, bad_file, nearest_name, short

MAX_REPORTED_ERRORS = 3
"""Upper bound of the errors of a file that one message reports."""
MAX_PROBLEM_CHARS = 800
"""Characters of one of them."""


def bad_config(source: str, problems: list[str]) -> FairlaneError:
    """BAD_FILE with the first problems, each `key: what is wrong and what is allowed`."""
    reported = [short(problem, MAX_PROBLEM_CHARS) for problem in problems[:MAX_REPORTED_ERRORS]]
    more = len(problems) - MAX_REPORTED_ERRORS
    rest = f" (and {more} more)" if more > 0 else ""
    return bad_file(f"{source}: {'; '.join(reported)}{rest}")


def describe(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Each of pydantic's problems as `ports[0].lbo_cells: …`."""
    return [describe_one(item, model) for item in error.errors()]


def key_path(steps: tuple[int | str, ...]) -> str:
    """`ports[0].lbo_cells` of ("ports", 0, "lbo_cells")."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{short(step, 80)}" for step in steps)
    return "".join(parts).removeprefix(".") or "the configuration"


def describe_one(item: Mapping[str, Any], model: type[BaseModel]) -> str:
    """One of pydantic's problems as `ports[0].lbo_cells: …`."""
    steps: tuple[int | str, ...] = item["loc"]
    where, kind, message = key_path(steps), str(item["type"]), str(item["msg"])
    if kind == "extra_forbidden":
        keys = allowed_keys(model, steps[:-1])
        return f"{where}: unknown key{nearest_name(str(steps[-1]), keys)}; valid: {', '.join(keys)}"
    if kind == "missing":
        return f"{where}: must be given"
    if kind == "value_error":
        return f"{where}: {message.removeprefix('Value error, ')}"
    problem = " is out of range" if kind.startswith(("greater", "less")) else ""
    allowed = message.replace("Input should be", "must be", 1)
    return f"{where}: {short(repr(item.get('input')))}{problem}: {allowed}"


_BRANCH = re.compile(
    r"^(str|int|float|bool|constrained-(str|int|float)|function-(before|after|plain|wrap)\[.*|(list|dict|tuple)\[.*)$"
)
"""Names that pydantic gives to branches of a union and to our own validators."""


def problem_path(item: Mapping[str, Any]) -> tuple[int | str, ...]:
    """The place of one of pydantic's errors, as keys of the data. An unknown key is part of it, whatever its name."""
    loc: tuple[int | str, ...] = item["loc"]
    last = len(loc) - 1 if item["type"] == "extra_forbidden" else -1
    return tuple(step for n, step in enumerate(loc) if n == last or isinstance(step, int) or not _BRANCH.match(step))


def allowed_keys(model: type[BaseModel], steps: tuple[int | str, ...]) -> list[str]:
    """The keys that are allowed at a place of a model, as its data has them, in alphabetical order."""
    return sorted(keys_at(model, steps))


def keys_at(model: type[Any], steps: tuple[int | str, ...]) -> list[str]:
    """The keys that are allowed at a place of a model or a dataclass of pydantic's, in its order; of a union those of the member that the place names, else of the first."""
    models: list[type[Any]] = [model]
    for step in map(str, steps):
        fields = [found[step] for each in models if step in (found := _fields(each))]
        if fields:
            parts = [part for info in fields for part in (info.annotation, *info.metadata)]
            models = [inner for part in parts for inner in _models(part)]
        else:  # a number, the key of a mapping, or a member of a union
            models = [each for each in models if each.__name__.lower() == step.lower()] or models
    return list(_fields(models[0])) if models else []


def _fields(model: type[Any]) -> dict[str, FieldInfo]:
    """The fields of a model by the keys that its data has."""
    return {str(info.validation_alias or name): info for name, info in model.__pydantic_fields__.items()}


def _models(annotation: Any) -> Iterator[type[Any]]:
    """The models that an annotation is or contains."""
    if isinstance(annotation, type) and hasattr(annotation, "__pydantic_fields__"):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
