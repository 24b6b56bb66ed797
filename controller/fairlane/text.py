# SPDX-License-Identifier: Apache-2.0
"""For programs. Words and numbers for people: units, bounded documents, problems of configurations."""

from fairlane_controller.problems import bad_config, describe
from fairlane_controller.units import (
    counted,
    format_rate,
    format_size,
    format_time,
    parse_count,
    parse_rate,
    plain_value,
)

__all__ = [
    "bad_config",
    "counted",
    "describe",
    "format_rate",
    "format_size",
    "format_time",
    "parse_count",
    "parse_rate",
    "plain_value",
]
