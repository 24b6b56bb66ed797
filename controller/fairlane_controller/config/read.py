# SPDX-License-Identifier: Apache-2.0
"""Reading a configuration file: every error says line, column, key, what is wrong, the nearest valid key and what is allowed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from fairlane_controller.config.model import FairlaneConfig, config_model
from fairlane_controller.config.positions import Position, nearest, positions
from fairlane_controller.documents import DocumentError, parse_toml
from fairlane_controller.errors import ErrorCode, FairlaneError, short
from fairlane_controller.problems import (
    MAX_PROBLEM_CHARS,
    MAX_REPORTED_ERRORS,
    allowed_keys,
    describe_one,
    key_path,
    problem_path,
)
from fairlane_controller.program.registry import folder_program, is_folder
from fairlane_controller.state import files
from fairlane_controller.state.run_state import find_folder, read_run_state

_KEY_OF_PROBLEM = re.compile(r"^[A-Za-z0-9_.\[\]-]+(?=: )")


@dataclass(frozen=True)
class Source:
    """Where a configuration comes from: its name and, of a file, where its keys stand."""

    name: str
    keys: dict[str, Position] = field(default_factory=lambda: dict[str, Position]())

    def error(self, problems: Iterable[str]) -> FairlaneError:
        """BAD_FILE with the first problems, each `key: what is wrong and what is allowed`, with line and column."""
        told = list(dict.fromkeys(problems))
        more = len(told) - MAX_REPORTED_ERRORS
        text = "; ".join(short(self._placed(problem), MAX_PROBLEM_CHARS) for problem in told[:MAX_REPORTED_ERRORS]) + (
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


def read_file(path: Path, state: str | None = None) -> Loaded:
    """Read and validate a file; raises BAD_FILE.

    A program in a folder has keys of its own: the folder that the file names, by a path relative to the file, or else that of the
    topology that runs (`state`; left out: the one that the file names, or the only one).
    """
    text = files.read_text(path)
    data = _with_program(_data(text, str(path)), path.absolute().parent, state)
    source = Source(str(path), positions(text))
    return Loaded(parse(data, source), source, path.absolute())


def read_text(text: str, name: str) -> FairlaneConfig:
    """As `read_file`, of a text; `name` stands where the file's name stands in an error."""
    return parse(_data(text, name), Source(name, positions(text)))


def _data(text: str, name: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except DocumentError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{name}: {ex}") from None


def _with_program(data: dict[str, Any], folder: Path, state: str | None) -> dict[str, Any]:
    named: Any = data.get("program")
    if isinstance(named, str) and is_folder(named) and not named.startswith("~"):
        return {**data, "program": str(folder / named)}
    if named is None:
        topology: Any = data.get("topology")
        name: Any = cast("dict[str, Any]", topology).get("name") if isinstance(topology, dict) else None
        with suppress(FairlaneError):  # who wants a topology says what is wrong
            program = read_run_state(find_folder(state or (name if isinstance(name, str) else None))).program
            return {**data, "program": program} if is_folder(program) else data
    return data


def parse(data: dict[str, Any], source: Source) -> FairlaneConfig:
    """A configuration from plain data; raises BAD_FILE with `source`'s name and places."""
    model = config_model()
    with suppress(FairlaneError):  # else the check of the key `program` says it, with its place
        model = config_model(*folder_program(str(data.get("program", ""))))
    try:
        return model.model_validate(data)
    except ValidationError as ex:
        raise source.error(_describe(cast("dict[str, Any]", item), model) for item in ex.errors()) from None


def _describe(item: dict[str, Any], model: type[FairlaneConfig]) -> str:
    """One of pydantic's problems as `policies[0].scheme: …`."""
    steps = problem_path(item)
    if item["type"] == "extra_forbidden":
        keys = allowed_keys(model, steps[:-1])
        near = difflib.get_close_matches(str(steps[-1]), keys, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{key_path(steps)}: unknown key{hint}; valid: {', '.join(keys)}"
    text = describe_one({**item, "loc": steps}, model)
    inner = re.match(r"^(?P<where>\S+): (?P<key>[a-z_]+): (?P<rest>.*)$", text, re.DOTALL)
    if item["type"] == "value_error" and inner and inner["key"] in allowed_keys(model, steps):
        return f"{inner['where']}.{inner['key']}: {inner['rest']}"  # a validator of the whole table names its key
    return text
