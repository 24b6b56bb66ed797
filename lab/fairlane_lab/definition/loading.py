# SPDX-License-Identifier: Apache-2.0
"""Experiment files: found by name, read, and checked as a whole before anything runs; all errors are reported at once."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from fairlane_controller.documents import is_file
from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.registry import is_folder
from fairlane_hosts.errors import HostsError
from fairlane_hosts.variants import add_sender
from pydantic import ValidationError

from fairlane_lab.definition.checks import problems_of
from fairlane_lab.definition.claims import bounds_of
from fairlane_lab.definition.extend import Source, experiment_names, parse_source, read_source, shown
from fairlane_lab.definition.names import part_of
from fairlane_lab.definition.papers import numbers_of
from fairlane_lab.definition.points import make_points
from fairlane_lab.definition.schema import Experiment
from fairlane_lab.paths import EXPERIMENTS
from fairlane_lab.problems import ExperimentError, Problem, pydantic_problems, unknown


@dataclass(frozen=True)
class Definition:
    """A checked experiment file."""

    origin: str
    """The file's path, for messages."""
    experiment: Experiment
    source: Source

    @property
    def document(self) -> Mapping[str, Any]:
        """The file as it was read, with what it extends: parameters are filled in for each point."""
        return self.source.document

    @cached_property
    def programs(self) -> list[str]:
        """Names or folders of all programs that its points may run."""
        named = [self.experiment.program, *(point.params.get("program") for point in make_points(self.experiment))]
        return [self.program_path(name) for name in dict.fromkeys(named) if isinstance(name, str) and name]

    def program_path(self, name: str) -> str:
        """A program's name, or its folder: a relative one is beside the file that names it."""
        return str(self.source.find(name).resolve()) if is_folder(name) else name

    @property
    def sha256(self) -> str:
        """Of what the file means: comments and layout do not count, nor what only judges or draws the results, nor how often it runs."""
        runs = {name: value for name, value in self.document.items() if name not in _JUDGES}
        for name in _REPEATED & runs.keys():
            runs[name] = {key: value for key, value in runs[name].items() if key != "repeats"}
        return hashlib.sha256(json.dumps(runs, sort_keys=True, default=str).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """The whole definition, for summary.json."""
        shown = self.experiment.model_dump(
            mode="json", by_alias=True, exclude={"paper_figures"}
        )  # its numbers are there
        return {**shown, "origin": Path(self.origin).name}


_JUDGES = frozenset(
    ("title", "paper", "reproduces", "what", "relative", "paper_numbers", "paper_figures", "expect", "plots", "notes")
) | {"main_metrics", "statistic", "kernel"}  # fmt: skip
_REPEATED = frozenset({"run", "sim", "mininet", "quick"})


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
        raise ExperimentError("fairlane lab", [Problem("", unknown("experiment", name, experiment_names(folder)))])
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
        raise ExperimentError(origin, source.located(pydantic_problems(error, Experiment))) from None
    problems: list[Problem] = []
    if stem not in (None, "experiment", experiment.name):
        problems.append(Problem("name", f"{experiment.name!r} must be the file's name, {stem!r}"))
    numbers, expect = list(experiment.paper_numbers), list(experiment.expect)
    for index, figure in enumerate(experiment.paper_figures):
        try:
            numbers += numbers_of(figure)
        except ValueError as error:
            problems.append(Problem(f"paper_figures[{index}]", str(error)))
    if source.file.resolve() == EXPERIMENTS / f"{experiment.name}.toml":
        expect += bounds_of(experiment.name)
    experiment = experiment.model_copy(update={"expect": tuple(expect), "paper_numbers": tuple(numbers)})
    definition = Definition(origin, experiment, source)
    for program in definition.programs:
        with contextlib.suppress(FairlaneError):  # reported with its point
            part_of(program)
    for index, folder in enumerate(experiment.senders):
        try:
            add_sender(source.find(folder))
        except HostsError as error:
            problems.append(Problem(f"senders[{index}]", error.message))
    problems += problems_of(definition)
    if problems:
        raise ExperimentError(origin, source.located(problems))
    return definition
