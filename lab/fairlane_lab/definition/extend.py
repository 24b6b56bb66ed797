# SPDX-License-Identifier: Apache-2.0
"""Experiment files that share a base: `extends = "base/common"`, a file relative to the one that names it, or an experiment of this tree.

Tables are merged key by key, everything else takes the place of what the base has, arrays too, with two exceptions:

- a table where the base has an array of tables changes the entries that it names: `flows.tcp2.variant = "vegas"` (`name` or `label`);
- `[[append.notes]]` adds to the base's array of that name.

`name` and `also` are never a base's. `Source` remembers which file each value stands in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from fairlane_controller.documents import DocumentError, parse_toml

from fairlane_lab.paths import EXPERIMENTS
from fairlane_lab.problems import ExperimentError, Problem, place, unknown

_NOT_INHERITED_KEYS = ("name", "also")
_LAST_STEP = re.compile(r'(\.[^.\[\]"]+|\[\d+\]|\.?"[^"]*")$')

Steps = tuple[str | int, ...]
Document = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """An experiment's document with everything that it extends."""

    document: Document
    file: Path
    """That was asked for."""
    files: Mapping[str, Path]
    """TOML path of each value → the file in which it stands."""
    bases: tuple[Path, ...] = ()
    """What it extends, nearest first."""

    def file_of(self, path: str) -> Path:
        """The file in which the value at a TOML path stands, or what is around it where there is none."""
        while path and path not in self.files:
            path = _LAST_STEP.sub("", path) if _LAST_STEP.search(path) else ""
        return self.files.get(path, self.file)

    def is_of_base(self, path: str) -> bool:
        """Whether the value at a TOML path stands in a base."""
        return self.file_of(path) != self.file

    def located(self, problems: Sequence[Problem]) -> list[Problem]:
        """The problems with the base file in which each stands."""
        return [replace(problem, file=problem.file or self._base(problem)) for problem in problems]

    def _base(self, problem: Problem) -> str:
        return shown(self.file_of(problem.path)) if self.is_of_base(problem.path) else ""


def experiment_names(folder: Path = EXPERIMENTS) -> list[str]:
    """Names of the experiments that there are, in alphabetical order."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def read_source(path: Path) -> Source:
    """A file with what it extends. Raises ExperimentError naming the file and the key."""
    return parse_source(_text(path), path)


def parse_source(text: str, file: Path, above: tuple[Path, ...] = ()) -> Source:
    """As `read_source`, of a text that stands in `file`; `above` are the files that extend it."""
    try:
        return make_source(parse_toml(text), file, above)
    except DocumentError as error:
        raise ExperimentError(shown(file), [Problem("", f"not TOML: {error}")]) from None


def make_source(document: Mapping[str, Any], file: Path, above: tuple[Path, ...] = ()) -> Source:
    """As `read_source`, of a document that stands in `file`."""
    own = dict(document)
    base, added = own.pop("extends", None), own.pop("append", None)
    if base is None:
        problems = [Problem("append", "adds to what a base has: it needs extends")] if added is not None else []
        _refuse(file, problems)
        return Source(own, file, _places(own, (), file))
    path = _base_path(base, file)
    chain = (*above, file.resolve())
    if path.resolve() in chain:
        names = " → ".join(shown(each) for each in (*chain[chain.index(path.resolve()) :], path))
        _refuse(file, [Problem("extends", f"goes round in a circle: {names}")])
    below = parse_source(_text(path), path, chain)
    merge = _Merge(file, {each: of for each, of in below.files.items() if each not in _NOT_INHERITED_KEYS})
    merged = merge.tables(
        {key: value for key, value in below.document.items() if key not in _NOT_INHERITED_KEYS}, own, ()
    )
    merge.append(merged, added)
    _refuse(file, merge.problems)
    return Source(merged, file, merge.files, (path, *below.bases))


class _Merge:
    """One file over its base; `files` and `problems` grow."""

    def __init__(self, file: Path, files: dict[str, Path]) -> None:
        self.files = files
        self.problems: list[Problem] = []
        self._file = file

    def tables(self, base: Mapping[str, Any], own: Mapping[str, Any], path: Steps) -> Document:
        merged = dict(base)
        for key, value in own.items():
            merged[key] = self._value(base.get(key), value, (*path, key))
        if path:
            self.files[place(path)] = self._file
        return merged

    def append(self, merged: Document, added: Any) -> None:
        for key, entries in _table(Document() if added is None else added, "append", self.problems).items():
            there = merged.get(key, [])
            if not isinstance(entries, list) or not isinstance(there, list):
                self.problems.append(Problem(place(("append", key)), "only an array is added to an array"))
                continue
            known, new = cast("list[Any]", there), cast("list[Any]", entries)
            for index, entry in enumerate(new, len(known)):
                self.files |= _places(entry, (key, index), self._file)
            merged[key] = [*known, *new]

    def _value(self, base: Any, own: Any, path: Steps) -> Any:
        if isinstance(own, dict) and isinstance(base, dict):
            return self.tables(cast(Document, base), cast(Document, own), path)
        if isinstance(own, dict) and isinstance(base, list):
            return self._entries(cast("list[Any]", base), cast(Document, own), path)
        around = place(path)
        for each in [each for each in self.files if each == around or each.startswith((f"{around}.", f"{around}["))]:
            del self.files[each]
        self.files |= _places(own, path, self._file)
        return cast(Any, own)

    def _entries(self, base: list[Any], own: Document, path: Steps) -> list[Any]:
        merged = list(base)
        tables = [cast(Document, entry) if isinstance(entry, dict) else Document() for entry in base]
        names = [table.get("name", table.get("label")) for table in tables]
        for name, changes in own.items():
            if name not in names:
                known = [each for each in names if each is not None]
                self.problems.append(Problem(place((*path, name)), unknown("entry of the base", name, known)))
                continue
            index = names.index(name)
            merged[index] = self.tables(
                tables[index], _table(changes, place((*path, name)), self.problems), (*path, index)
            )
        return merged


def _table(value: Any, path: str, problems: list[Problem]) -> Document:
    if isinstance(value, dict):
        return cast(Document, value)
    problems.append(Problem(path, f"got {value!r}; it must be a table"))
    return {}


def _places(value: Any, path: Steps, file: Path) -> dict[str, Path]:
    """TOML path → file, of a value and all that is in it."""
    found = {place(path): file} if path else {}
    inner: Sequence[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        inner = list(cast(Document, value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast("list[Any]", value)))
    for key, each in inner:
        found |= _places(each, (*path, key), file)
    return found


def _base_path(name: Any, file: Path) -> Path:
    if not isinstance(name, str) or not name:
        _refuse(file, [Problem("extends", f"got {name!r}; it must be the name or the path of a file")])
    stem = str(name).removesuffix(".toml")
    folders = (file.parent, EXPERIMENTS)
    try:
        for path in (folder / f"{stem}.toml" for folder in folders):
            if path.is_file():
                return path
        beside = {each.stem for folder in folders for each in (folder / stem).parent.glob("*.toml")}
    except (OSError, ValueError) as error:  # a name that no file can have
        raise ExperimentError(shown(file), [Problem("extends", f"got {name!r:.80}: {error}")]) from None
    raise ExperimentError(
        shown(file), [Problem("extends", unknown("experiment file", name, sorted(beside - {file.stem})))]
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(shown(path), [Problem("", f"cannot be read: {error}")]) from None


def _refuse(file: Path, problems: Sequence[Problem]) -> None:
    if problems:
        raise ExperimentError(shown(file), problems)


def shown(path: Path) -> str:
    """A path for messages: below the current folder without it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
