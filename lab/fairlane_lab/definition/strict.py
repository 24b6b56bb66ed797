# SPDX-License-Identifier: Apache-2.0
"""What all parts of an experiment file share: unknown keys are errors, steps, and conditions over parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_serializer, model_validator

Scalar = bool | int | float | str


class Strict(BaseModel):
    """A part of a file in which an unknown key is an error; frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Steps(Strict):
    """`{from = 1, to = 20, step = 1}`, both ends included."""

    first: float | int = Field(alias="from")
    last: float | int = Field(alias="to")
    step: float | int = 1

    @model_validator(mode="after")
    def _goes_up(self) -> Steps:
        if self.step <= 0:
            raise ValueError(f"step must be above 0, got {self.step:g}")
        if self.last < self.first:
            raise ValueError(f"to {self.last:g} is below from {self.first:g}")
        if (self.last - self.first) / self.step > 10_000:
            raise ValueError("more than 10000 steps")
        return self

    def values(self) -> list[Scalar]:
        """Every step; whole numbers stay whole."""
        count = int((self.last - self.first) / self.step + 1e-9) + 1
        return [round(self.first + index * self.step, 9) for index in range(count)]


class Between(Strict):
    """A range of numbers, both ends included."""

    min: float = Field(default=float("-inf"), allow_inf_nan=True)
    max: float = Field(default=float("inf"), allow_inf_nan=True)

    @model_serializer
    def _finite(self) -> dict[str, float]:
        """Without the ends that are open: JSON has no infinity, and reading it back opens them again."""
        return {name: value for name, value in (("min", self.min), ("max", self.max)) if math.isfinite(value)}


Condition = Scalar | list[Scalar] | Between
Where = dict[str, Condition]
"""Parameter → its value, a list of values, or `{min, max}`."""


def holds(condition: Condition, value: Any) -> bool:
    """Whether a parameter's value satisfies a condition."""
    if isinstance(condition, Between):
        return isinstance(value, int | float) and condition.min <= value <= condition.max
    return value in condition if isinstance(condition, list) else value == condition


def matches(where: Mapping[str, Condition], params: Mapping[str, Any]) -> bool:
    """Whether every condition holds; a parameter that is not there satisfies none."""
    return all(name in params and holds(condition, params[name]) for name, condition in where.items())
