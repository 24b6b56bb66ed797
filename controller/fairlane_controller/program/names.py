# SPDX-License-Identifier: Apache-2.0
"""Names of programs and of their command groups, found without importing any of them: `fairlane -h` needs no more."""

from __future__ import annotations

import importlib
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
    """Commands of the built-in programs: `COMMANDS` of their packages; imports no program.

    Returns:
        `name: (module:object, one sentence)`.
    """
    packages = [importlib.import_module(f"{BUILT_IN}.{name}") for name in built_in_names()]
    return {
        command: (f"{package.__name__}.{target}", text)
        for package in packages
        for command, (target, text) in getattr(package, "COMMANDS", {}).items()
    }
