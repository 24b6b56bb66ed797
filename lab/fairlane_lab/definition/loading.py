# SPDX-License-Identifier: Apache-2.0
"""Experiment files: found by name, read, and checked as a whole before anything runs; all errors are reported at once."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from fairlane_controller.documents import is_file, parse_toml
from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.registry import is_folder
from fairlane_hosts.errors import HostsError
from fairlane_hosts.variants import add_sender
from pydantic import BaseModel, ValidationError

from fairlane_lab.definition.checks import check_points, semantic_problems
from fairlane_lab.definition.claims import bounds_of
from fairlane_lab.definition.extend import Source, experiment_names, parse_source, read_source, shown
from fairlane_lab.definition.judging import Expectation, Note, PaperFigure, PaperNumbers, Relative
from fairlane_lab.definition.names import part_of
from fairlane_lab.definition.papers import numbers_of
from fairlane_lab.definition.plots import Bars, Cdf, Heat, Lines, Series
from fairlane_lab.definition.points import make_points
from fairlane_lab.definition.schema import Experiment, MininetOverrides, Overrides, Selected, SimOverrides
from fairlane_lab.definition.strict import Steps
from fairlane_lab.paths import EXPERIMENTS
from fairlane_lab.problems import ExperimentError, Problem, pydantic_problems, unknown

_PARTS: dict[str, type[BaseModel]] = {
    "relative": Relative,
    "paper_numbers": PaperNumbers,
    "paper_figures": PaperFigure,
    "expect": Expectation,
    "notes": Note,
    "sim": SimOverrides,
    "kernel": Selected,
    "quick": Overrides,
    "mininet": MininetOverrides,
    "sweep": Steps,
}
_PLOTS: dict[str, type[BaseModel]] = {"bars": Bars, "lines": Lines, "series": Series, "cdf": Cdf, "heat": Heat}


@dataclass(frozen=True)
class Definition:
    """A checked experiment file."""

    origin: str
    """The file's path, for messages."""
    experiment: Experiment
    source: Source

    @property
    def document(self) -> Mapping[str, Any]:
        """The file as it was read, with what it extends: its references are filled in for each point."""
        return self.source.document

    def programs(self) -> list[str]:
        """Names or folders of all programs that its points run, as far as they are known before any is resolved."""
        named = str(self.experiment.program or self.experiment.topology.get("program", ""))
        if not named.startswith("$"):
            return [self.program_path(named)] if named else []
        axes = [axis for axis in self.experiment.sweep.values() if isinstance(axis, list)]
        tables = [self.experiment.params, *self.experiment.cases]
        tables += [item for axis in axes for item in axis if isinstance(item, dict)]
        found = [table[named[1:]] for table in tables if named[1:] in table]
        axis = self.experiment.sweep.get(named[1:])
        found += [item for item in axis if not isinstance(item, dict)] if isinstance(axis, list) else []
        return [self.program_path(str(name)) for name in dict.fromkeys(found)]

    def program_path(self, name: str) -> str:
        """A program's name, or its folder: a relative one is beside the file that names it."""
        path = "program" if "program" in self.document else "topology.program"
        return str((self.source.file_of(path).parent / name).resolve()) if is_folder(name) else name

    @property
    def sha256(self) -> str:
        """Of what the file means: comments and layout do not count, nor what only judges or draws the results, nor how often it runs."""
        return hashlib.sha256(repr(_ordered(_what_runs(self.document))).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """The whole definition, for summary.json."""
        told = self.experiment.model_dump(
            mode="json", by_alias=True, exclude={"paper_figures"}
        )  # its numbers are there
        return {**told, "origin": Path(self.origin).name}


_JUDGES = frozenset(
    {
        "title",
        "paper",
        "reproduces",
        "what",
        "also",
        "relative",
        "paper_numbers",
        "paper_figures",
        "expect",
        "plots",
        "notes",
        "main_metrics",
        "statistic",
        "kernel",
    }
)

_REPEATED = frozenset({"run", "sim", "mininet", "quick"})


def _what_runs(document: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in document.items() if name not in _JUDGES}
    for name in _REPEATED & kept.keys():
        kept[name] = {key: value for key, value in kept[name].items() if key != "repeats"}
    return kept


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        table: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return sorted((name, _ordered(item)) for name, item in table.items())
    if isinstance(value, list):
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [_ordered(item) for item in items]
    return value


@lru_cache(maxsize=8)
def other_names(folder: Path = EXPERIMENTS) -> Mapping[str, Path]:
    """Further names (`also`) and the experiment files that they mean; a file that is no TOML has none."""
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            document = parse_toml(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        also: Any = document.get("also", [])
        found |= {str(name): path for name in cast("list[Any]", also if isinstance(also, list) else [])}
    return found


def load(name: str, folder: Path = EXPERIMENTS) -> Definition:
    """The experiment called `name`, or in the file that `name` is the path of. Raises ExperimentError with all that is wrong."""
    if not name.endswith(".toml"):
        return _load_known(name, folder)
    path = Path(name)
    if not is_file(path):
        raise ExperimentError(name, [Problem("", "there is no such file")])
    return make_definition(read_source(path), path.stem)


@lru_cache(maxsize=64)
def _load_known(name: str, folder: Path) -> Definition:
    path = folder / f"{name}.toml"
    if not is_file(path):
        path = other_names(folder).get(name, path)
    if not is_file(path):
        names = sorted({*experiment_names(folder), *other_names(folder)})
        raise ExperimentError("fairlane lab", [Problem("", unknown("experiment", name, names))])
    return make_definition(read_source(path), path.stem)


def load_text(text: str, origin: str, stem: str | None = None) -> Definition:
    """The experiment in a TOML text. Raises ExperimentError with all that is wrong; `stem` is what the name has to be."""
    return make_definition(parse_source(text, Path(origin)), stem)


def make_definition(source: Source, stem: str | None = None) -> Definition:
    """The experiment of a document. Raises ExperimentError with all that is wrong.

    `stem` is what the name has to be, unless it is `experiment`: a file of that name may lie in each folder.
    """
    origin = shown(source.file)
    try:
        experiment = Experiment.model_validate(source.document)
    except ValidationError as error:
        raise ExperimentError(origin, source.located(pydantic_problems(error, _keys))) from None
    if source.file.resolve() == EXPERIMENTS / f"{experiment.name}.toml":
        asked = (*experiment.expect, *bounds_of(experiment.name))
        experiment = experiment.model_copy(update={"expect": asked})
    problems: list[Problem] = []
    numbers = list(experiment.paper_numbers)
    for index, figure in enumerate(experiment.paper_figures):
        try:
            numbers += numbers_of(figure)
        except ValueError as error:
            problems.append(Problem(f"paper_figures[{index}]", str(error)))
    experiment = experiment.model_copy(update={"paper_numbers": tuple(numbers)})
    if stem not in (None, "experiment", experiment.name):
        problems.append(Problem("name", f"{experiment.name!r} must be the file's name, {stem!r}"))
    definition = Definition(origin, experiment, source)
    for program in definition.programs():
        with contextlib.suppress(FairlaneError):  # told with its point
            part_of(program)
    for place, folder in enumerate(experiment.senders):
        try:
            add_sender(source.file_of("senders").parent / folder)
        except HostsError as error:
            problems.append(Problem(f"senders[{place}]", error.message))
    problems += check_points(experiment)
    if not problems:
        problems = semantic_problems(definition, make_points(experiment))
    if problems:
        raise ExperimentError(origin, source.located(problems))
    return definition


def _keys(loc: tuple[str | int, ...]) -> list[str]:
    """The keys that the table around `loc` may have."""
    model: type[BaseModel] | None = Experiment
    if len(loc) > 1:
        model = _PARTS.get(str(loc[0]))
        if loc[0] == "plots" and len(loc) > 2:
            model = _PLOTS.get(str(loc[2]))
    return [info.alias or name for name, info in model.model_fields.items()] if model else []
