# SPDX-License-Identifier: Apache-2.0
"""The points of an experiment: its cases and the cross product of its sweep, in the file's order, with readable names."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane_lab.definition.names import PARAMETERS, SET_BY_THE_LAB
from fairlane_lab.definition.schema import Experiment, Steps
from fairlane_lab.definition.strict import Scalar
from fairlane_lab.problems import Problem, place, unknown

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


def make_points(experiment: Experiment, replaced: Mapping[str, Sequence[Scalar]] | None = None) -> list[Point]:
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


def _case_items(experiment: Experiment) -> list[_Item]:
    items: list[_Item] = []
    for case in experiment.cases:
        label = str(case["label"])
        items.append(_Item(label, {"case": label, **{name: value for name, value in case.items() if name != "label"}}))
    return items


def _axis_items(name: str, experiment: Experiment, replaced: Mapping[str, Sequence[Scalar]]) -> list[_Item]:
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


def check_points(experiment: Experiment) -> list[Problem]:
    """What is wrong with the names and labels of params, cases and sweep."""
    problems: list[Problem] = []
    for name in experiment.params:
        problems += _check_name(name, ("params", name))
    labels: set[str] = set()
    keys = [set(case) for case in experiment.cases]
    for index, case in enumerate(experiment.cases):
        label = case.get("label")
        if not isinstance(label, str) or not label or "/" in label:
            problems.append(
                Problem(place(("cases", index, "label")), f"got {label!r}; each case has a label without /")
            )
        elif label in labels:
            problems.append(Problem(place(("cases", index, "label")), f"{label!r} is the label of an earlier case"))
        else:
            labels.add(label)
        for name, value in case.items():
            if name == "label":
                continue
            problems += _check_name(name, ("cases", index, name))
            if not isinstance(value, bool | int | float | str):
                problems.append(
                    Problem(
                        place(("cases", index, name)), f"got {value!r}; a parameter is a number, text or truth value"
                    )
                )
        missing = sorted(set[str]().union(*keys) - keys[index] - {"label", *experiment.params})
        if missing:
            problems.append(Problem(place(("cases", index)), f"has no {', '.join(missing)}, which other cases have"))
    for name, axis in experiment.sweep.items():
        if isinstance(axis, Steps):
            problems += _check_name(name, ("sweep", name))
            continue
        tables = [value for value in axis if isinstance(value, dict)]
        if len(tables) not in (0, len(axis)):
            problems.append(Problem(place(("sweep", name)), "mixes values and tables: give one or the other"))
        if not tables:
            problems += _check_name(name, ("sweep", name))
        for index, table in enumerate(tables):
            for key in table:
                if key != "label":
                    problems += _check_name(key, ("sweep", name, index, key))
    if not problems:
        names = [point.name for point in make_points(experiment)]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            problems.append(Problem("sweep", f"gives the point {name!r} twice"))
    return problems


def _check_name(name: str, path: tuple[str | int, ...]) -> list[Problem]:
    if name in SET_BY_THE_LAB:
        return [Problem(place(path), "is set by the lab itself")]
    if name not in PARAMETERS:
        return [Problem(place(path), unknown("parameter", name, (n for n in PARAMETERS if n not in SET_BY_THE_LAB)))]
    return []
