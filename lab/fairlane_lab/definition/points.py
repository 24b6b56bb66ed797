# SPDX-License-Identifier: Apache-2.0
"""The points of an experiment: its cases and the cross product of its sweep, in the file's order, with readable names; and parameters that
are drawn for each run."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from fairlane_lab.definition.strict import Scalar, Strict
from fairlane_lab.problems import Problem, place

if TYPE_CHECKING:
    from fairlane_lab.definition.schema import Experiment

LABELLED_AXES = frozenset({"control", "sender"})
"""Axes whose items may be tables with a label, which then is a parameter of the axis's name."""
COLUMNS_ONLY = frozenset({"case", *LABELLED_AXES})
"""Parameters that set nothing unless `[sets]` says so: labels."""

Params = dict[str, Scalar]
Case = dict[str, Scalar]
Axis = Annotated[list[Scalar | Params], Field(min_length=1)]
"""Values of the parameter after which it is called; or tables of parameters that go together (then its name is only a name)."""


@dataclass(frozen=True)
class Point:
    """One cell of an experiment."""

    name: str
    """Readable, unique in the experiment: `512k-5ms/threshold=4`; `only` for an experiment with one point."""
    params: Mapping[str, Any]


class Spread(Strict):
    """What a parameter of `[drawn]` may be: any number from `first` to `last` is as likely, or with `log` any factor."""

    first: float | int = Field(alias="from")
    last: float | int = Field(alias="to")
    log: bool = False
    whole: bool = False
    """A whole number."""
    split: tuple[str, ...] = ()
    """Parameters that share the whole number by chance."""

    @model_validator(mode="after")
    def _goes_up(self) -> Spread:
        if self.last <= self.first or (self.log and self.first <= 0):
            raise ValueError(f"from {self.first:g} to {self.last:g}: must go up, and with log from above 0")
        if self.split and not self.whole:
            raise ValueError("split: needs whole = true")
        return self

    def draw(self, chance: random.Random) -> float | int:
        """A value; one that is no whole number has four digits."""
        if self.log:
            value = math.exp(chance.uniform(math.log(self.first), math.log(self.last)))
        else:
            value = chance.uniform(self.first, self.last)
        return round(value) if self.whole else float(f"{value:.4g}")


def draw_params(drawn: Mapping[str, Spread], given: Mapping[str, Any], seed_of: Callable[[str], int]) -> dict[str, Any]:
    """The parameters of one run; those that are given stay."""
    found: dict[str, Any] = {}
    for name, spread in drawn.items():
        chance = random.Random(seed_of(name))
        found[name] = given.get(name, spread.draw(chance))
        if spread.split:
            shares = chance.choices(spread.split, k=found[name])
            found |= {part: shares.count(part) for part in spread.split}
    return {**found, **given}


def make_points(experiment: Experiment, replaced: Mapping[str, Sequence[Scalar]] | None = None) -> list[Point]:
    """Every point; `replaced` are other values for axes or `params` that the file has."""
    replaced = replaced or {}
    axes = [[_table_item("case", case) for case in experiment.cases]] if experiment.cases else []
    for name, axis in experiment.sweep.items():
        axes.append([_axis_item(name, value) for value in replaced.get(name) or axis])
    constants = dict(experiment.params)
    for name, values in replaced.items():
        if name not in experiment.sweep and len(values) == 1:
            constants[name] = values[0]
        elif name not in experiment.sweep:
            axes.append([_axis_item(name, value) for value in values])
    points: list[Point] = []
    for items in itertools.product(*axes):
        params = dict(constants)
        for _, given in items:
            params |= given
        points.append(Point("/".join(label for label, _ in items) or "only", params))
    return points


def _axis_item(name: str, value: Scalar | Mapping[str, Scalar]) -> tuple[str, dict[str, Scalar]]:
    """The label and the parameters of one value of an axis."""
    if isinstance(value, Mapping):
        return _table_item(name, value)
    return f"{name}={_text(value)}", {name: value}


def _table_item(name: str, table: Mapping[str, Scalar]) -> tuple[str, dict[str, Scalar]]:
    params = {key: item for key, item in table.items() if key != "label"}
    label = str(table.get("label") or ",".join(f"{key}={_text(item)}" for key, item in params.items()))
    return label, {name: label, **params} if name in COLUMNS_ONLY else params


def _text(value: Scalar) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def point_problems(
    experiment: Experiment, others: Mapping[str, Mapping[str, Any]], named: Callable[[str], str]
) -> Iterator[Problem]:
    """What is wrong with names and labels; `others`: further tables by parameter, `named`: what is wrong with a name, or nothing."""
    tables: list[tuple[tuple[str | int, ...], Mapping[str, Any]]] = [
        ((section,), table) for section, table in others.items()
    ]
    tables += [(("cases", index), case) for index, case in enumerate(experiment.cases)]
    for name, axis in experiment.sweep.items():
        own = [((("sweep", name, index)), item) for index, item in enumerate(axis) if isinstance(item, dict)]
        tables += own or [(("sweep",), {name: axis})]
        if len(own) not in (0, len(axis)):
            yield Problem(place(("sweep", name)), "mixes values and tables: give one or the other")
    for path, table in tables:
        for name in table.keys() - {"label"}:
            if message := named(name):
                yield Problem(place((*path, name)), message)
    labels = [case.get("label") for case in experiment.cases]
    every = {name for case in experiment.cases for name in case} - experiment.params.keys() - {"label"}
    for index, (label, case) in enumerate(zip(labels, experiment.cases, strict=True)):
        if not isinstance(label, str) or not label or "/" in label:
            yield Problem(place(("cases", index, "label")), f"got {label!r}; each case has a label without /")
        elif label in labels[:index]:
            yield Problem(place(("cases", index, "label")), f"{label!r} is the label of an earlier case")
        if missing := sorted(every - case.keys()):
            yield Problem(place(("cases", index)), f"has no {', '.join(missing)}, which other cases have")


def twice_problems(points: Sequence[Point]) -> Iterator[Problem]:
    """Points of the same name."""
    names = Counter(point.name for point in points)
    yield from (Problem("sweep", f"gives the point {name!r} twice") for name, times in names.items() if times > 1)
