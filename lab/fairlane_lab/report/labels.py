# SPDX-License-Identifier: Apache-2.0
"""What a reader sees for a column or a value: label, unit and number, the same in pictures, tables and the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

from fairlane_controller.units import format_rate, rounded

from fairlane_lab.definition.names import PARAMETERS, SERIES_METRICS, Name, find_name, split_metric, split_quotient
from fairlane_lab.programs import of_programs

_VALUES = {("scheme", "drop_tail"): "drop-tail", ("runtime", "mininet"): "Mininet"} | of_programs("value_labels")


def name_of(column: str) -> Name:
    """Label, unit and scale of a parameter or metric; of an unknown column its own name, unscaled. A quotient has no unit."""
    above, below = split_quotient(column)
    if below:
        return Name(f"{name_of(above).label} / {name_of(below).label}")
    metric, group = split_metric(column)
    name = find_name(metric) or Name(metric)
    if not group:
        return name
    beside = f"{name.never_beside}[{group}]" if name.never_beside else ""
    return Name(f"{name.label}, {group}", name.unit, name.scale, never_beside=beside)


def rate_name(name: Name, largest: float) -> Name:
    """A rate in kbit/s where the largest value is below 10 Mbit/s, as the paper writes it, so that no axis reads 0.0005."""
    if name.unit == "Mbit/s" and 0 < largest < 1e7:
        return Name(name.label, "kbit/s", 1e-3)
    return name


def rate_names(largest: Mapping[str, float]) -> dict[str, Name]:
    """The names of several metrics with the largest value of each: the groups of one metric share a unit."""
    return {
        metric: rate_name(
            name_of(metric),
            max(value for other, value in largest.items() if split_metric(other)[0] == split_metric(metric)[0]),
        )
        for metric in largest
    }


def axis_label(name: Name) -> str:
    """`goodput (Mbit/s)`, `fairness (min/max, %)`, or the bare label where there is no unit."""
    if not name.unit:
        return name.label
    return f"{name.label[:-1]}, {name.unit})" if name.label.endswith(")") else f"{name.label} ({name.unit})"


def series_name(metric: str) -> Name:
    """Label, unit and scale of a metric over time: `cwnd`, where a run's metric is a mean."""
    return SERIES_METRICS.get(metric) or name_of(metric)


def value_label(column: str, value: Any) -> str:
    """A parameter's value for a reader: `drop-tail`, `2 Mbit/s`, `5 ms`."""
    if (column, str(value)) in _VALUES:
        return _VALUES[column, str(value)]
    if is_number(value):
        name = PARAMETERS.get(column, Name(column))
        if name.unit == "Mbit/s":
            return format_rate(rounded(float(value), 4))
        text = number(value * name.scale)
        return f"{text} {name.unit}" if name.unit in ("ms", "s", "%") else text
    return str(value)


def setting_label(column: str, value: Any) -> str:
    """A parameter with its value: `delay 5 ms`, `threshold 4`; the bare value where it says itself what it is."""
    text, name = value_label(column, value), name_of(column)
    return f"{name.label} {text}" if (is_number(value) or name.unit) and column != "rate_bps" else text


def number(value: float, digits: int = 4) -> str:
    """Up to `digits` significant digits, no exponent for everyday sizes; a dash for nothing."""
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 10**digits and abs(value) < 1e7:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def never_text(never: int, runs: int) -> str:
    """Of a time that never came in some runs."""
    return f"never in {never} of {runs}"


def format_metric(metric: str, value: float | None, name: Name | None = None) -> str:
    """A metric's value as it is shown, without its unit: `93.4` for a fairness of 0.934; a dash for nothing."""
    if value is None or not math.isfinite(value):
        return "-"
    name = name or name_of(metric)
    scaled = value * name.scale
    if name.unit == "%":
        return f"{scaled:.1f}"
    if metric == "jain":
        return f"{scaled:.4f}" if scaled >= 0.99 else f"{scaled:.3f}"  # shares of a line differ in the fourth digit
    return f"{scaled:.3f}" if " / " in metric else number(scaled)


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a parameter's value is a number (a truth value is none)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
