# SPDX-License-Identifier: Apache-2.0
"""Experiment files: found by name, read, and checked as a whole before anything runs; all errors are reported at once.

What only the whole file can tell is checked here: every point can be built, every name that judges or draws exists.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from fairlane_controller.documents import is_file
from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.registry import is_folder
from fairlane_hosts.variants import add_sender
from pydantic import ValidationError

from fairlane_lab.definition.expansion import Selection, overrides, resolve_point, with_drawn
from fairlane_lab.definition.extend import Source, experiment_names, parse_source, read_source, shown
from fairlane_lab.definition.judging import ClaimBound, bounds_of, numbers_of
from fairlane_lab.definition.names import PARAMETERS, SET_BY_THE_LAB, beside, part_of
from fairlane_lab.definition.points import Point, make_points, point_problems, twice_problems
from fairlane_lab.definition.schema import Experiment
from fairlane_lab.definition.strict import Known, matches
from fairlane_lab.paths import CLAIMS, EXPERIMENTS
from fairlane_lab.problems import ExperimentError, Problem, pydantic_problems, unknown

SHARED = ("paper_numbers", "plots", "notes")
"""Their conditions may be of points that other experiments of the same base have."""


def problems_of(definition: Definition) -> list[Problem]:
    """Everything that is wrong although each part of the file is well-formed."""
    experiment = definition.experiment
    split = {name: spread for spread in experiment.drawn.values() for name in spread.split}
    tables = {"params": experiment.params, "drawn": {**experiment.drawn, **split}, "sets": experiment.sets}
    problems = list(point_problems(experiment, tables, _name_problem))
    if problems:
        return problems
    points = [with_drawn(definition, point) for point in make_points(experiment)]
    problems += twice_problems(points)
    groups: dict[str, None] = {}
    columns: list[dict[str, Any]] = []
    values: dict[str, list[Any]] = {}
    for point in points:
        resolution, found = resolve_point(definition, point)
        told = {(each.path, each.message.split(" (at ")[0]) for each in problems}
        at = "" if point is points[0] else f" (at {point.name})"
        problems += [
            replace(each, message=each.message + at) for each in found if (each.path, each.message) not in told
        ]
        if resolution is not None:
            groups |= dict.fromkeys([flow.group for flow in resolution.body.flows])
            groups |= dict.fromkeys([vc.name for vc in resolution.body.vcs])
            columns.append(resolution.columns())
            for name, value in columns[-1].items():
                values.setdefault(name, []).append(value)
    if problems:
        return list(dict.fromkeys(problems))
    found = [*_layers(definition, points), *_unknown_names(definition, Known(values, list(groups)))]
    return found or list(_several_references(definition.experiment, columns))


def _name_problem(name: str) -> str:
    if name in SET_BY_THE_LAB:
        return "is set by the lab itself"
    return "" if name in PARAMETERS else unknown("parameter", name, [n for n in PARAMETERS if n not in SET_BY_THE_LAB])


def _layers(definition: Definition, points: Sequence[Point]) -> Iterator[Problem]:
    experiment = definition.experiment
    for section in ("sim", "kernel", "mininet", "quick"):
        if not any(matches(getattr(experiment, section).only, point.params) for point in points):
            yield Problem(f"{section}.only", "leaves no point")
    for runtime in experiment.runtimes:
        for quick in (False, True):
            layers = overrides(definition, Selection(runtime=runtime, quick=quick))
            _, found = resolve_point(definition, points[0], layers)
            yield from (Problem("quick" if quick else runtime, f"with it, {problem}") for problem in found)


def _unknown_names(definition: Definition, known: Known) -> Iterator[Problem]:
    """Parts that name what no point has."""
    for of_base in (False, True):
        try:
            written = definition.experiment.model_dump(by_alias=True, exclude={"paper_figures"})
            Experiment.model_validate(written, context=replace(known, of_base=of_base))
        except ValidationError as error:
            for problem in pydantic_problems(error, Experiment):
                if _may_be_of_others(definition, problem.path) == of_base:
                    yield _of_claim(definition.experiment, problem)


def _several_references(experiment: Experiment, points: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Values that make more than one point what another is relative to; `points` are their parameters."""
    asked = [(f"expect[{index}].relative_to", each.relative_to) for index, each in enumerate(experiment.expect)]
    asked += [(f"relative[{index}].to", each.to) for index, each in enumerate(experiment.relative)]
    for path, to in asked:
        alike: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for point in points if to else ():
            if matches(dict(to), point):
                alike.setdefault(beside(point, to), []).append(point)
        for first, *others in alike.values():
            if others:
                differ = ", ".join(name for name in first if any(first[name] != each.get(name) for each in others))
                text = (
                    f"{len(others) + 1} points have these values and differ in {differ}; allowed: values of one point"
                )
                yield _of_claim(experiment, Problem(path, text))
                break


def _entry(path: str) -> tuple[str, int]:
    """Section and number of the entry in which a path is."""
    found = re.match(r"(\w+)(?:\[(\d+)\])?", path)
    return (found[1], int(found[2] or 0)) if found else (path, 0)


def _may_be_of_others(definition: Definition, path: str) -> bool:
    """Whether its conditions may name values that only other experiments of the same base have."""
    section, index = _entry(path)
    at_base = index >= len(definition.document.get(section, ())) or definition.source.is_of_base(path)
    return section in ("sim", "kernel", "mininet", "quick") or (section in SHARED and at_base)


def _of_claim(experiment: Experiment, problem: Problem) -> Problem:
    """A problem of a bound that stands in the file of the claims, with its place there."""
    section, index = _entry(problem.path)
    bound = experiment.expect[index] if section == "expect" else None
    if not isinstance(bound, ClaimBound):
        return problem
    return replace(problem, path=bound.claim + problem.path.removeprefix(f"expect[{index}]"), file=shown(CLAIMS))


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
        here = filter(is_file, [Path(f"{name}.toml")])  # a file of one's own is named with its ending
        raise ExperimentError("", [Problem("", unknown("experiment", name, [*experiment_names(folder), *here]))])
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
        except FairlaneError as error:
            problems.append(Problem(f"senders[{index}]", error.message.partition("\n")[0]))
    problems += problems_of(definition)
    if problems:
        raise ExperimentError(origin, source.located(problems))
    return definition
