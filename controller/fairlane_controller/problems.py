# SPDX-License-Identifier: Apache-2.0
"""Errors of pydantic in our words: each says the key (`ports[0].lbo_cells`), what is wrong, and what is allowed."""

from __future__ import annotations

import difflib
import re
import types
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError

from fairlane_controller.errors import ErrorCode, FairlaneError, short

MAX_REPORTED_ERRORS = 3
"""Upper bound of the errors of a file that one message reports."""
MAX_PROBLEM_CHARS = 800
"""Characters of one of them."""


def bad_config(source: str, problems: list[str]) -> FairlaneError:
    """BAD_FILE with the first problems, each `key: what is wrong and what is allowed`."""
    more = len(problems) - MAX_REPORTED_ERRORS
    text = "; ".join(short(problem, MAX_PROBLEM_CHARS) for problem in problems[:MAX_REPORTED_ERRORS]) + (
        f" (and {more} more)" if more > 0 else ""
    )
    return FairlaneError(ErrorCode.BAD_FILE, f"{source}: {text}")


def describe(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Each of pydantic's problems as `ports[0].lbo_cells: …`."""
    return [describe_one(cast("dict[str, Any]", item), model) for item in error.errors()]


def key_path(steps: tuple[int | str, ...]) -> str:
    """`ports[0].lbo_cells` of ("ports", 0, "lbo_cells")."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{short(step, 80)}" if text else short(step, 80)
    return text or "the configuration"


def describe_one(item: dict[str, Any], model: type[BaseModel]) -> str:
    """One of pydantic's problems as `ports[0].lbo_cells: …`."""
    steps: tuple[int | str, ...] = item["loc"]
    where, kind, given = key_path(steps), str(item["type"]), short(repr(item.get("input")))
    context: dict[str, Any] = item.get("ctx") or {}
    match kind:
        case "extra_forbidden":
            keys = allowed_keys(model, steps[:-1])
            near = difflib.get_close_matches(str(steps[-1]), keys, n=1, cutoff=0.4)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            return f"{where}: unknown key{hint}; valid: {', '.join(keys)}"
        case "missing":
            return f"{where}: must be given"
        case "enum":
            words = str(context.get("expected", ""))
            names = [word.strip(" '") for word in words.replace(" or ", ", ").split(",")]
            near = difflib.get_close_matches(str(item.get("input")), names, n=1, cutoff=0.4)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            return f"{where}: unknown {steps[-1]} {given}{hint}; valid: {', '.join(names)}"
        case "value_error":
            return f"{where}: {str(item['msg']).removeprefix('Value error, ')}"
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal":
            bound = str(item["msg"]).removeprefix("Input should be ")
            return f"{where}: {given} is out of range: must be {bound}"
        case "string_pattern_mismatch":
            return f"{where}: {given} must be letters, digits, '_', '.', '-' and begin with a letter or digit"
        case _:
            message = str(item["msg"]).removeprefix("Input should be ")
            return f"{where}: {given}: must be {message}" if message != item["msg"] else f"{where}: {message}"


_BRANCH = re.compile(
    r"^(str|int|float|bool|constrained-(str|int|float)|function-(before|after|plain|wrap)\[.*|(list|dict|tuple)\[.*)$"
)
"""Names that pydantic gives to branches of a union and to our own validators."""


def problem_path(item: dict[str, Any]) -> tuple[int | str, ...]:
    """The place of one of pydantic's errors, as keys of the data. An unknown key is part of it, whatever its name."""
    loc: tuple[int | str, ...] = item["loc"]
    last = len(loc) - 1 if item["type"] == "extra_forbidden" else -1
    return tuple(step for n, step in enumerate(loc) if n == last or isinstance(step, int) or not _BRANCH.match(step))


def allowed_keys(model: type[BaseModel], steps: tuple[int | str, ...]) -> list[str]:
    """The keys that are allowed at a place of a model, as its data has them."""
    here: type[BaseModel] | None = model
    for step in steps:
        if isinstance(step, int) or here is None:
            continue
        names = {info.alias or name: info for name, info in here.model_fields.items()}
        here = _find_model(names[step].annotation) if step in names else None
    return sorted(info.alias or name for name, info in here.model_fields.items()) if here else []


def _find_model(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation is or contains; None without one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, tuple, list, Annotated):
        for part in get_args(annotation):
            found = _find_model(part)
            if found is not None:
                return found
    return None
