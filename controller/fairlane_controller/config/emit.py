# SPDX-License-Identifier: Apache-2.0
"""A configuration as TOML text, with units, that `read.py` reads back to the same values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from fairlane_controller.config.model import FairlaneConfig

_BARE = re.compile(r"^[A-Za-z0-9_-]+$")
_RATES = ("rate", "capacity", "mcr", "pcr")


def to_toml(config: FairlaneConfig, header: Sequence[str] = ()) -> str:
    """The text; `header` are comment lines above it."""
    data = config.plain()
    lines = [f"# {line}" for line in header]
    for key, value in data.items():
        if not _is_table(value) and not _is_tables(value):
            lines.append(f"{_key(key)} = {_value(key, value)}")
    for key, value in data.items():
        if _is_table(value):
            _table(lines, key, value)
    for key, value in data.items():
        if _is_tables(value):
            for one in value:
                _pairs(lines, f"[[{_key(key)}]]", one)
    return "\n".join(lines) + "\n"


def _table(lines: list[str], path: str, table: Mapping[str, Any]) -> None:
    plain = {key: value for key, value in table.items() if not _is_tables(value)}
    if plain or not table:
        _pairs(lines, f"[{path}]", plain)
    for key, value in table.items():
        if _is_tables(value):
            for one in value:
                _pairs(lines, f"[[{path}.{_key(key)}]]", one)


def _pairs(lines: list[str], header: str, pairs: Mapping[str, Any]) -> None:
    lines += ["", header, *(f"{_key(key)} = {_value(key, value)}" for key, value in pairs.items() if value is not None)]


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_tables(value: Any) -> bool:
    """Not empty: `[[x]]` cannot say that there is none, `x = []` can."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(one, dict) for one in cast("list[Any]", value))


def _key(key: str) -> str:
    return key if _BARE.match(key) else json.dumps(key)


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if key in _RATES and isinstance(value, (int, float)):
        return json.dumps(rate_text(value))
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        inner = ", ".join(
            f"{_key(k)} = {_value(k, v)}" for k, v in cast("dict[str, Any]", value).items() if v is not None
        )
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(_value("", one) for one in cast("list[Any]", value)) + "]"
    return json.dumps(str(value), ensure_ascii=False)


def rate_text(rate_bps: float) -> str:
    """`51.84Mbit`: the largest unit in which it is exact."""
    for factor, unit in ((1e9, "Gbit"), (1e6, "Mbit"), (1e3, "kbit")):
        text = f"{rate_bps / factor:.9f}".rstrip("0").rstrip(".")
        if rate_bps >= factor and float(text) * factor == rate_bps:
            return f"{text}{unit}"
    return f"{rate_bps:.6f}".rstrip("0").rstrip(".") + "bit"
