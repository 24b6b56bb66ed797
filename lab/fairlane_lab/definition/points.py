# SPDX-License-Identifier: Apache-2.0
"""The points of an experiment: its cases and the cross product of its sweep, in the file's order, with readable names; and parameters that
are drawn for each run."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import Field, model_validator

from fairlane_lab.definition.strict import Scalar, Steps, Strict

LABELLED_AXES = frozenset({"control", "sender"})
"""Axes whose items may be tables with a label, which then is a parameter of the axis's name."""


@dataclass(frozen=True)
class Point:
    """One cell of an experiment."""

    name: str
    """Readable, unique in the experiment: `512k-5ms/threshold=4`; `only` for an experiment with one point."""
    params: Mapping[str, Any]


@dataclass(frozen=True)
class _Item:
    label: str
    params: Mapping[str, Scalar]


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


class Swept(Protocol):
    """What an experiment says of its points."""

    @property
    def params(self) -> Mapping[str, Scalar]: ...
    @property
    def cases(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def sweep(self) -> Mapping[str, Steps | list[Scalar | dict[str, Scalar]]]: ...


def make_points(experiment: Swept, replaced: Mapping[str, Sequence[Scalar]] | None = None) -> list[Point]:
    """Every point; `replaced` are other values for axes or `params` that the file has."""
    replaced = replaced or {}
    axes = [_case_items(experiment)] if experiment.cases else []
    axes += [_axis_items(name, experiment, replaced) for name in experiment.sweep]
    constants = dict(experiment.params)
    for name, values in replaced.items():
        if name in experiment.sweep:
            continue
        if len(values) == 1:
            constants[name] = values[0]
        else:
            axes.append([_Item(f"{name}={_text(value)}", {name: value}) for value in values])
    points: list[Point] = []
    for items in itertools.product(*axes):
        params = dict(constants)
        for item in items:
            params |= item.params
        points.append(Point("/".join(item.label for item in items) or "only", params))
    return points


def _case_items(experiment: Swept) -> list[_Item]:
    items: list[_Item] = []
    for case in experiment.cases:
        label = str(case["label"])
        items.append(_Item(label, {"case": label, **{name: value for name, value in case.items() if name != "label"}}))
    return items


def _axis_items(name: str, experiment: Swept, replaced: Mapping[str, Sequence[Scalar]]) -> list[_Item]:
    axis = experiment.sweep[name]
    values = replaced.get(name) or (axis.values() if isinstance(axis, Steps) else axis)
    items: list[_Item] = []
    for value in values:
        if isinstance(value, dict):
            params = {key: item for key, item in value.items() if key != "label"}
            label = value.get("label") or ",".join(f"{key}={_text(item)}" for key, item in params.items())
            items.append(_Item(str(label), {name: str(label), **params} if name in LABELLED_AXES else params))
        else:
            items.append(_Item(f"{name}={_text(value)}", {name: value}))
    return items


def _text(value: Scalar) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
