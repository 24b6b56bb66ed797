# SPDX-License-Identifier: Apache-2.0
"""What all parts of an experiment file share: unknown keys are errors, and conditions over parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_serializer

Scalar = bool | int | float | str


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
