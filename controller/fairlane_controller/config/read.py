# SPDX-License-Identifier: Apache-2.0
"""Reading a configuration file: every error says line, column, key, what is wrong, the nearest valid key and what is allowed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
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
from fairlane_controller.program.registry import folder_of, folder_program, is_folder
from fairlane_controller.state import files
from fairlane_controller.state.run_state import find_folder, read_run_state, state_root

_KEY_OF_PROBLEM = re.compile(r"^[A-Za-z0-9_.\[\]-]+(?=: )")


MayLoad = Callable[[str], bool]
"""Whether the program of a name, or a folder, may be loaded."""


def any_program(name: str) -> bool:
    """All programs may be loaded."""
    del name
    return True


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
    may_load: MayLoad = any_program
    "Which programs may be loaded for it."
    unchecked: tuple[str, ...] = ()
    "Keys that may be those of a program that may not."


def read_file(path: Path, state: str | None = None, *, run_program: bool = True) -> Loaded:
    """Read and validate a file; raises BAD_FILE.

    A program in a folder has keys of its own: the folder that the file names, by a path relative to the file, or else that of the
    topology that runs (`state`; left out: the one that the file names, or the only one). Loading it runs its `program.py`. Without
    `run_program` that is done for the program of a topology of this machine, or of `state`, only.
    """
    text = files.read_text(path)
    given = _data(text, str(path))
    runs = _program_that_runs(given, state)
    data = _with_program(given, path.absolute().parent, runs)
    source = Source(str(path), positions(text))
    if run_program:
        return Loaded(parse(data, source), source, path.absolute())

    trusted = {folder_of(runs[0])} if runs is not None and is_folder(runs[0]) and runs[1] else set[Path]()

    def may_load(name: str) -> bool:
        return not is_folder(name) or folder_of(name) in trusted

    config, unchecked = _parse(data, source, may_load)
    return Loaded(config, source, path.absolute(), may_load, unchecked)


def read_text(text: str, name: str) -> FairlaneConfig:
    """As `read_file`, of a text; `name` stands where the file's name stands in an error."""
    return parse(_data(text, name), Source(name, positions(text)))


def _data(text: str, name: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except DocumentError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{name}: {ex}") from None


def _program_that_runs(data: dict[str, Any], state: str | None) -> tuple[str, bool] | None:
    """The program of the topology that is meant, and whether the user, not the file, says where that is; None without one."""
    topology: Any = data.get("topology")
    name: Any = cast("dict[str, Any]", topology).get("name") if isinstance(topology, dict) else None
    try:
        folder = find_folder(state or (name if isinstance(name, str) else None))
        return read_run_state(folder).program, state is not None or folder.resolve().parent == state_root().resolve()
    except FairlaneError:  # who wants a topology says what is wrong
        return None


def _with_program(data: dict[str, Any], folder: Path, runs: tuple[str, bool] | None) -> dict[str, Any]:
    named: Any = data.get("program")
    if isinstance(named, str) and is_folder(named) and not named.startswith("~"):
        return {**data, "program": str(folder / named)}
    if named is None and runs is not None and is_folder(runs[0]):
        return {**data, "program": runs[0]}
    return data


def parse(data: dict[str, Any], source: Source) -> FairlaneConfig:
    """A configuration from plain data; raises BAD_FILE with `source`'s name and places."""
    return _parse(data, source, any_program)[0]


def _parse(data: dict[str, Any], source: Source, may_load: MayLoad) -> tuple[FairlaneConfig, tuple[str, ...]]:
    """With the keys that are nobody's, where a program that may not be loaded may have them."""
    named, others = str(data.get("program", "")), ()
    unknown = False
    with suppress(FairlaneError):  # else the check of the key `program` says it, with its place
        unknown = is_folder(named) and not may_load(named)
        others = () if unknown else folder_program(named)
    model = config_model(*others)
    unchecked: list[str] = []
    while True:
        try:
            return model.model_validate(data, context=may_load), tuple(unchecked)
        except ValidationError as ex:
            problems = [cast("dict[str, Any]", item) for item in ex.errors()]
            strange = [problem_path(item) for item in problems if unknown and _may_be_a_programs(item)]
            if len(strange) < len(problems):
                raise source.error(
                    _describe(item, model) for item in problems if problem_path(item) not in strange
                ) from None
            unchecked += map(key_path, strange)
            data = _without(data, strange)


def _may_be_a_programs(item: dict[str, Any]) -> bool:
    """Whether it is an unknown key at the top, of `[loop]` or of `[[ports]]`."""
    steps = problem_path(item)
    return item["type"] == "extra_forbidden" and (len(steps) == 1 or steps[0] in ("loop", "ports"))


def _without(data: dict[str, Any], paths: Iterable[Sequence[Any]]) -> dict[str, Any]:
    data = deepcopy(data)
    for *way, last in paths:
        table: Any = data
        for step in way:
            table = table[step]
        del table[last]
    return data


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
