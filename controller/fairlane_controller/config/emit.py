# SPDX-License-Identifier: Apache-2.0
"""A configuration as TOML text, with units, that `read.py` reads back to the same values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import tomlkit

from fairlane_controller.config.model import FairlaneConfig

_RATES = ("rate", "capacity", "mcr", "pcr")


def to_toml(config: FairlaneConfig, header: Sequence[str] = ()) -> str:
    """The text; `header` are comment lines above it."""
    return "".join(f"# {line}\n" for line in header) + tomlkit.dumps(_with_units(config.plain()))


def _with_units(value: Any, key: str = "") -> Any:
    """`value` with rates as texts, and without what is None, which TOML cannot say."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {name: _with_units(one, name) for name, one in pairs if one is not None}
    if isinstance(value, list):
        return [_with_units(one) for one in cast("list[Any]", value)]
    if key in _RATES and isinstance(value, (int, float)):
        return rate_text(value)
    return value


def rate_text(rate_bps: float) -> str:
    """`51.84Mbit`: the largest unit in which it is exact."""
    for factor, unit in ((1e9, "Gbit"), (1e6, "Mbit"), (1e3, "kbit")):
        text = f"{rate_bps / factor:.9f}".rstrip("0").rstrip(".")
        if rate_bps >= factor and float(text) * factor == rate_bps:
            return f"{text}{unit}"
    return f"{rate_bps:.6f}".rstrip("0").rstrip(".") + "bit"
