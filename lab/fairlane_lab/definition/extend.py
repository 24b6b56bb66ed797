# SPDX-License-Identifier: Apache-2.0
"""Experiment files that share a base: `extends = "base/common"`, a file relative to the one that names it, or an experiment of this tree.

Tables are merged key by key, everything else takes the place of what the base has, arrays too, with two exceptions:

- a table where the base has an array of tables changes the entries that it names: `flows.tcp2.variant = "vegas"` (`name` or `label`);
- `[[append.notes]]` adds to the base's array of that name.

`name` is never a base's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeVar

from fairlane_controller.documents import DocumentError, is_array, is_file, is_table, parse_toml
from pydantic import BaseModel, ValidationError

from fairlane_lab.paths import EXPERIMENTS
from fairlane_lab.problems import ExperimentError, Problem, place, pydantic_problems, unknown

_PARAMETERS = ("params", "sweep", "drawn", "cases", "sets")
"""Parts of a file that have parameters."""
_STEP = re.compile(r'[^.\[\]"]+|"[^"]*"')

Document = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Source:
    """An experiment's document with everything that it extends."""

    document: Document
    files: tuple[Path, ...]
    """That was asked for, and what it extends, nearest first."""
    written: tuple[Document, ...] = ()
    """What each of them says itself."""

    @property
    def file(self) -> Path:
        """That was asked for."""
        return self.files[0]

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where relative paths are looked for."""
        return tuple(dict.fromkeys(file.parent for file in self.files))

    def find(self, name: str) -> Path:
        """A relative path: beside the nearest of the files that has something of that name there, else beside the first."""
        return next((folder / name for folder in self.folders if _exists(folder / name)), self.folders[0] / name)

    def file_of(self, path: str) -> Path:
        """The file that says the value at a TOML path: of a parameter's, the nearest that has the parameter; else the nearest of those that say the largest part of the path."""
        steps = [int(step) if step.isdigit() else step.strip('"') for step in _STEP.findall(path)]
        parameters = {*self._parameters(steps)}
        for file, document in zip(self.files, self.written, strict=False):
            if any(not parameters.isdisjoint(_keys(document.get(part))) for part in _PARAMETERS):
                return file
        depths = [self._depth(document, steps) for document in self.written]
        return self.files[depths.index(max(depths))] if depths else self.file

    def is_of_base(self, path: str) -> bool:
        """Whether the value at a TOML path stands in a base."""
        return self.file_of(path) != self.file

    def located(self, problems: Sequence[Problem]) -> list[Problem]:
        """The problems with the base file in which each stands."""
        return [
            replace(problem, file=shown(self.file_of(problem.path)))
            if not problem.file and self.is_of_base(problem.path)
            else problem
            for problem in problems
        ]

    def _parameters(self, steps: Sequence[str | int]) -> Iterator[str]:
        """The parameters that set the value at a path, or what it is in."""
        if len(steps) == 2 and steps[0] in ("control", "tcp", "run"):
            yield str(steps[1])
        here: Any = self.document
        names: list[str] = []
        for step in steps:
            try:
                here = here[step]
            except (KeyError, IndexError, TypeError):
                here = None
            names.append(str(_name(here) or step) if isinstance(step, int) else step)
        sets: Any = self.document.get("sets")
        for parameter, given in sets.items() if is_table(sets) else ():
            keys = [given] if isinstance(given, str) else given if is_table(given) or is_array(given) else ()
            parts = [str(key).split(".") for key in keys]
            if any(len(key) <= len(names) and all(map(fnmatch, names, key)) for key in parts):
                yield parameter

    def _depth(self, document: Document, steps: Sequence[str | int]) -> int:
        """How many steps of a path a document has; entries of arrays by their names too."""
        here: Any = document
        whole: Any = self.document
        for depth, step in enumerate(steps):
            key: Any = _name(whole[step]) if isinstance(step, int) and is_table(here) else step
            try:
                here, whole = here[key], whole[step]
            except (KeyError, IndexError, TypeError):
                return depth
        return len(steps)


def experiment_names(folder: Path = EXPERIMENTS) -> list[str]:
    """Names of the experiments that there are, in alphabetical order."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def read_source(path: Path) -> Source:
    """A file with what it extends. Raises ExperimentError naming the file and the key."""
    return parse_source(_text(path), path)


def parse_source(text: str, file: Path, above: tuple[Path, ...] = ()) -> Source:
    """As `read_source`, of a text that stands in `file`; `above` are the files that extend it."""
    try:
        own = parse_toml(text)
    except DocumentError as error:
        raise ExperimentError(shown(file), [Problem("", f"not TOML: {error}")]) from None
    base, added = own.pop("extends", None), own.pop("append", {})
    if base is None:
        if added:
            raise ExperimentError(shown(file), [Problem("append", "adds to what a base has: it needs extends")])
        return Source(own, (file,), (own,))
    path = _base_path(base, file)
    chain = (*above, file.resolve())
    if path.resolve() in chain:
        names = " → ".join(shown(each) for each in (*chain[chain.index(path.resolve()) :], path))
        raise ExperimentError(shown(file), [Problem("extends", f"goes round in a circle: {names}")])
    below = parse_source(_text(path), path, chain)
    inherited = {key: value for key, value in below.document.items() if key != "name"}
    problems: list[Problem] = []
    merged = _merge(inherited, own, (), problems)
    for key, entries in added.items() if is_table(added) else ():
        if is_array(entries) and is_array(merged.get(key, [])):
            merged[key] = [*merged.get(key, []), *entries]
        else:
            problems.append(Problem(place(("append", key)), "only an array is added to an array"))
    if problems:
        raise ExperimentError(shown(file), problems)
    return Source(merged, (file, *below.files), ({**added, **own}, *below.written))


def _merge(base: Any, own: Any, path: tuple[str | int, ...], problems: list[Problem]) -> Any:
    """What the file says over what its base says."""
    if not is_table(own) or not (is_table(base) or is_array(base)):
        return own
    if is_table(base):
        changed = {key: _merge(base.get(key), value, (*path, key), problems) for key, value in own.items()}
        return {**base, **changed}
    merged: list[Any] = list(base)
    names = [_name(entry) for entry in merged]
    for name, changes in own.items():
        if name not in names:
            known = [each for each in names if each is not None]
            problems.append(Problem(place((*path, name)), unknown("entry of the base", name, known)))
        elif not is_table(changes):
            problems.append(Problem(place((*path, name)), f"got {changes!r}; it must be a table"))
        else:
            index = names.index(name)
            merged[index] = _merge(merged[index], changes, (*path, index), problems)
    return merged


def _keys(part: Any) -> set[str]:
    """All keys in a part of a document, however deep."""
    inside = part.values() if is_table(part) else part if is_array(part) else ()
    return {*(part if is_table(part) else ()), *(key for each in inside for key in _keys(each))}


def _name(entry: Any) -> Any:
    """By which an entry of an array is changed."""
    return entry.get("name", entry.get("label")) if is_table(entry) else None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _base_path(name: Any, file: Path) -> Path:
    if not isinstance(name, str) or not name:
        text = f"got {name!r}; it must be the name or the path of a file"
        raise ExperimentError(shown(file), [Problem("extends", text)])
    stem = name.removesuffix(".toml")
    folders = (file.parent, EXPERIMENTS)
    for path in (folder / f"{stem}.toml" for folder in folders):
        if is_file(path):
            return path
    parents = [(folder / stem).parent for folder in folders]
    beside = {each.stem for parent in parents if _exists(parent) for each in parent.glob("*.toml")}
    problem = Problem("extends", unknown("experiment file", name, sorted(beside - {file.stem})))
    raise ExperimentError(shown(file), [problem])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ExperimentError(shown(path), [Problem("", f"cannot be read: {reason}")]) from None


def read_as(path: Path, model: type[Model]) -> Model:
    """A TOML file as a model. Raises ExperimentError with all that is wrong."""
    try:
        return model.model_validate(parse_toml(_text(path)))
    except DocumentError as error:
        raise ExperimentError(shown(path), [Problem("", str(error))]) from None
    except ValidationError as error:
        raise ExperimentError(shown(path), pydantic_problems(error, model)) from None


def shown(path: Path) -> str:
    """A path for messages: below the current folder without it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
