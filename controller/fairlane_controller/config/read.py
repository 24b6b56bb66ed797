# SPDX-License-Identifier: Apache-2.0
"""Reading a configuration file: every error says line, column, key, what is wrong, the nearest valid key and what is allowed."""

from __future__ import annotations

import difflib
import importlib
import re
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError

from fairlane_controller.config.model import FairlaneConfig
from fairlane_controller.config.positions import Position, nearest, positions
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gfr.config import MAX_TOLD, describe_one, key_path
from fairlane_controller.state import files

_toml: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_TOML_PLACE = re.compile(r"^(?P<what>.*) \(at line (?P<line>\d+), column (?P<column>\d+)\)$")
_KEY_OF_PROBLEM = re.compile(r"^[A-Za-z0-9_.\[\]-]+(?=: )")


@dataclass(frozen=True)
class Source:
    """Where a configuration comes from: its name and, of a file, where its keys stand."""

    name: str
    keys: dict[str, Position] = field(default_factory=lambda: dict[str, Position]())

    def error(self, problems: Iterable[str]) -> FairlaneError:
        """BAD_FILE with the first problems, each `key: what is wrong and what is allowed`, with line and column."""
        told = list(dict.fromkeys(problems))
        more = len(told) - MAX_TOLD
        text = "; ".join(self._placed(problem) for problem in told[:MAX_TOLD]) + (
            f" (and {more} more)" if more > 0 else ""
        )
        return FairlaneError(ErrorCode.BAD_FILE, f"{self.name}: {text}")

    def _placed(self, problem: str) -> str:
        key = _KEY_OF_PROBLEM.match(problem)
        at = nearest(self.keys, key.group()) if key else None
        return problem if at is None else f"line {at[0]}, column {at[1]}: {problem}"


@dataclass(frozen=True)
class Loaded:
    """A configuration and where it comes from."""

    config: FairlaneConfig
    source: Source
    path: Path | None = None


def read_file(path: Path) -> Loaded:
    """Read and validate a file; raises BAD_FILE."""
    text = files.read_text(path)
    return Loaded(read_text(text, str(path)), Source(str(path), positions(text)), path.absolute())


def read_text(text: str, name: str) -> FairlaneConfig:
    """As `read_file`, of a text; `name` stands where the file's name stands in an error."""
    try:
        data: dict[str, Any] = _toml.loads(text)
    except _toml.TOMLDecodeError as ex:
        found = _TOML_PLACE.match(str(ex))
        where = f"line {found['line']}, column {found['column']}: {found['what']}" if found else str(ex)
        raise FairlaneError(ErrorCode.BAD_FILE, f"{name}: {where}") from None
    except ValueError as ex:  # a number of too many digits
        raise FairlaneError(ErrorCode.BAD_FILE, f"{name}: {str(ex).split(';')[0]}") from None
    except RecursionError:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{name}: arrays or tables are nested too deep") from None
    return parse(data, Source(name, positions(text)))


def parse(data: Any, source: Source) -> FairlaneConfig:
    """A configuration from plain data; raises BAD_FILE with `source`'s name and places."""
    try:
        return FairlaneConfig.model_validate(data)
    except ValidationError as ex:
        raise source.error(_describe(cast("dict[str, Any]", item)) for item in ex.errors()) from None


def _describe(item: dict[str, Any]) -> str:
    """One of pydantic's problems as `policies[0].scheme: …`."""
    steps: tuple[int | str, ...] = tuple(step for step in item["loc"] if not _is_internal(step))
    if item["type"] == "extra_forbidden":
        keys = _keys_at(steps[:-1])
        near = difflib.get_close_matches(str(steps[-1]), keys, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{key_path(steps)}: unknown key{hint}; valid: {', '.join(keys)}"
    text = describe_one({**item, "loc": steps}, FairlaneConfig)
    inner = re.match(r"^(?P<where>\S+): (?P<key>[a-z_]+): (?P<rest>.*)$", text, re.DOTALL)
    if item["type"] == "value_error" and inner and inner["key"] in _keys_at(steps):
        return f"{inner['where']}.{inner['key']}: {inner['rest']}"  # a validator of the whole table names its key
    return text


def _is_internal(step: object) -> bool:
    """Names that pydantic gives to branches of a union and to our own validators."""
    return isinstance(step, str) and ("function-" in step or "[" in step)


def _keys_at(steps: tuple[int | str, ...]) -> list[str]:
    """The keys that are allowed at a place, as the file has them."""
    model: type[BaseModel] | None = FairlaneConfig
    for step in steps:
        if isinstance(step, int) or model is None:
            continue
        names = {info.alias or name: info for name, info in model.model_fields.items()}
        model = _model_in(names[step].annotation) if step in names else None
    if model is None:
        return []
    return sorted(info.alias or name for name, info in model.model_fields.items())


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation is, or holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, tuple, list, Annotated):
        for part in get_args(annotation):
            found = _model_in(part)
            if found is not None:
                return found
    return None
