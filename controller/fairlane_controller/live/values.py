# SPDX-License-Identifier: Apache-2.0
"""A value of a column in words, by its unit."""

from __future__ import annotations

from typing import Any

from fairlane_controller.program.rows import Column
from fairlane_controller.units import format_per_s, format_rate, format_size, format_time, rounded


def text_of(column: Column, value: Any) -> str:
    """`2 Mbit/s`, `7.26 ms`, `1,200`, `yes`; `-` for None. A count stands without its unit: the heading has it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} {one}" for key, one in value.items()) or "none"  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, (int, float)):
        return str(value)
    match column.unit:
        case "bit/s":
            return format_rate(rounded(value, 4))
        case "s":
            return format_time(rounded(value))
        case "bytes":
            return format_size(rounded(value))
        case "/s":
            return format_per_s(value)
        case _:
            return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def heading_of(column: Column) -> str:
    """The heading of a table's column: with the unit where the values have none."""
    return f"{column.title} ({column.unit})" if column.unit == "cells" else column.title
