# SPDX-License-Identifier: Apache-2.0
"""What all parts of an experiment file share: unknown keys are errors, and conditions over parameters."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_serializer

from fairlane_lab.problems import unknown

Scalar = bool | int | float | str
Runtime = Literal["sim", "kernel", "mininet"]


def runnable(runtimes: Collection[str]) -> list[str]:
    """Where an experiment runs whose file names these: what runs on Linux in real time (`mininet`) runs in virtual time (`kernel`) too."""
    return [each for each in get_args(Runtime) if each in runtimes or (each == "kernel" and "mininet" in runtimes)]


def scalar_of(text: str) -> Scalar:
    """What a text outside of a TOML document means: `true` and `false`, a number, else the text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


class Strict(BaseModel):
    """A part of a file in which an unknown key is an error; frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Between(Strict):
    """A range of numbers, both ends included."""

    min: float = Field(default=float("-inf"), allow_inf_nan=True)
    max: float = Field(default=float("inf"), allow_inf_nan=True)

    @model_serializer
    def _finite(self) -> dict[str, float]:
        """Without the ends that are open: JSON has no infinity, and reading it back opens them again."""
        return {name: value for name, value in (("min", self.min), ("max", self.max)) if math.isfinite(value)}


Condition = Scalar | list[Scalar] | Between


def holds(condition: Condition, value: Any) -> bool:
    """Whether a parameter's value satisfies a condition."""
    if isinstance(condition, Between):
        return isinstance(value, int | float) and condition.min <= value <= condition.max
    return value in condition if isinstance(condition, list) else value == condition


def matches(where: Mapping[str, Condition], params: Mapping[str, Any]) -> bool:
    """Whether every condition holds; a parameter that is not there satisfies none."""
    return all(name in params and holds(condition, params[name]) for name, condition in where.items())


@dataclass(frozen=True)
class Known:
    """What the points of an experiment have. With it as the context of a validation, the names in conditions, metrics and axes must exist."""

    values: Mapping[str, Sequence[Any]]
    """Parameter → its values."""
    groups: Sequence[str]
    """Of flows, and objects of the program."""
    of_base: bool = False
    """Conditions may name values that other experiments of the same base have."""


def parameter(*also: str) -> AfterValidator:
    """The check of a name: points have a parameter of that name, or it is one of `also`."""

    def check(name: str, info: ValidationInfo) -> str:
        known = info.context
        if isinstance(known, Known) and name and name not in (*known.values, *also):
            raise ValueError(unknown("parameter", name, [*sorted(known.values), *also]))
        return name

    return AfterValidator(check)


def conditions(**also: Sequence[Any]) -> AfterValidator:
    """The check of conditions: points have such parameters and values; `also` are further parameters with their values."""

    def check(where: dict[str, Condition], info: ValidationInfo) -> dict[str, Condition]:
        known = info.context
        if not isinstance(known, Known):
            return where
        values = {**known.values, **also}
        for name, condition in where.items():
            if name not in values:
                raise ValueError(unknown("parameter", name, sorted(values)))
            for value in condition if isinstance(condition, list) else [condition]:
                if not known.of_base and not any(holds(value, there) for there in values[name]):
                    raise ValueError(f"{name}: {unknown('value', value, dict.fromkeys(values[name]))}")
        return where

    return AfterValidator(check)


Where = Annotated[dict[str, Condition], conditions()]
"""Parameter → its value, a list of values, or `{min, max}`."""
Values = Annotated[dict[str, Scalar], conditions()]
"""Parameter → its value."""
Parameter = Annotated[str, parameter()]
ParameterOrGroup = Annotated[str, parameter("group")]
