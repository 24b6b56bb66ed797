# SPDX-License-Identifier: Apache-2.0
"""What is not known is None, in every table and file: never 0, never NaN. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import fmean
from typing import Any


def finite_or_none(value: Any) -> Any:
    """The value; None for NaN and infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def known_sum(values: Iterable[float | None]) -> float | None:
    """The sum; None when a part of it is not known."""
    found = list(values)
    return None if None in found else sum(value for value in found if value is not None)


def known_mean(values: Iterable[float | None]) -> float | None:
    """The mean of those that are known; None when none is."""
    found = [value for value in values if value is not None]
    return fmean(found) if found else None
