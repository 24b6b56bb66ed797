# SPDX-License-Identifier: Apache-2.0
"""Names of P4 objects as people say them: in full, or any suffix that only one of them has."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import lru_cache

from fairlane_controller.errors import ErrorCode, FairlaneError

LISTED = 12
"""At most so many names in one error text."""


def suffixes(full: str) -> list[str]:
    """`a.b.c` → `a.b.c`, `b.c`, `c`: what may stand for it, the longest first."""
    parts = full.split(".")
    return [".".join(parts[start:]) for start in range(len(parts))]


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Each full name with its shortest suffix that no other one has."""
    return dict(_short_names(tuple(names)))


@lru_cache(maxsize=64)
def _short_names(everything: tuple[str, ...]) -> dict[str, str]:
    counts: dict[str, int] = {}
    for full in everything:
        for suffix in suffixes(full):
            counts[suffix] = counts.get(suffix, 0) + 1
    return {
        full: next((suffix for suffix in reversed(suffixes(full)) if counts[suffix] == 1), full) for full in everything
    }


def resolve_name(kind: str, name: str, names: Iterable[str], where: str = "") -> str:
    """The full name that `name` stands for: itself, or the only one that ends with `.name`.

    Raises UNKNOWN_NAME: with the candidates when several end so, else with the nearest valid name. `where` says of what
    the names are (`table t`), for the text.
    """
    everything = list(names)
    if name in everything:
        return name
    found = [full for full in everything if full.endswith(f".{name}")]
    if len(found) == 1:
        return found[0]
    place = f" of {where}" if where else ""
    if found:
        raise FairlaneError(
            ErrorCode.UNKNOWN_NAME,
            f"{kind} {name!r}{place} is ambiguous: {_listed(sorted(found))}; say more of its name",
        )
    shorts = short_names(everything)
    lowered = {candidate.lower(): shorts[full] for full in everything for candidate in suffixes(full)}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.4)
    hint = f"; did you mean {lowered[near[0]]!r}?" if near else ""
    valid = _listed(sorted(shorts.values())) if everything else "there is none"
    raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"unknown {kind} {name!r}{place}{hint}; valid: {valid}")


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:LISTED])
    more = len(names) - LISTED
    return f"{shown} and {more} more" if more > 0 else shown
