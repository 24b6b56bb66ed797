# SPDX-License-Identifier: Apache-2.0
"""Names of programs and of their command groups, found without importing any of them: `fairlane -h` needs no more."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points

BUILT_IN = "fairlane_controller.programs"
ENTRY_POINTS = "fairlane.programs"


def built_in_names() -> list[str]:
    """Names of the programs that come with fairlane; imports none of them."""
    path = importlib.import_module(BUILT_IN).__path__
    return sorted(one.name for one in pkgutil.iter_modules(path) if one.ispkg)


@cache
def installed_programs() -> dict[str, EntryPoint]:
    """Entry points of programs that other packages bring, by name; searched once, which takes some 5 ms."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def program_names() -> list[str]:
    """Names of all programs without those in folders of their own; imports none of them."""
    return sorted({*built_in_names(), *installed_programs()})


def command_groups() -> dict[str, tuple[str, str]]:
    """Commands of the built-in programs: `app` of their `cli.py` and `COMMANDS` of their package.

    Imports no program: what a package says of itself stands in its `__init__.py` alone.

    Returns:
        `name: (module:object, one sentence)`.
    """
    groups: dict[str, tuple[str, str]] = {}
    for name in built_in_names():
        package = importlib.import_module(f"{BUILT_IN}.{name}")
        own: dict[str, tuple[str, str]] = getattr(package, "COMMANDS", {})
        groups |= {command: (f"{package.__name__}.{target}", text) for command, (target, text) in own.items()}
        if importlib.util.find_spec(f"{package.__name__}.cli") is not None:
            groups[name] = (f"{package.__name__}.cli:app", (package.__doc__ or "").split("\n", 1)[0])
    return groups
