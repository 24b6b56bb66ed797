# SPDX-License-Identifier: Apache-2.0
"""Names of programs and of their command groups, found without importing any of them: `fairlane -h` needs no more."""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

BUILT_IN = "fairlane_controller.programs"
ENTRY_POINTS = "fairlane.programs"


def built_in_names() -> list[str]:
    """Names of the programs that come with fairlane; imports none of them."""
    spec = importlib.util.find_spec(BUILT_IN)
    return sorted(m.name for m in pkgutil.iter_modules(spec.submodule_search_locations if spec else None) if m.ispkg)


@cache
def installed_programs() -> dict[str, EntryPoint]:
    """Entry points of programs that other packages bring; looked for once, which takes some 5 ms."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def program_names() -> list[str]:
    """Names of all programs but those in folders of their own; imports none of them."""
    return sorted({*built_in_names(), *installed_programs()})


def command_groups() -> dict[str, tuple[str, str]]:
    """Commands of the built-in programs, `name: (module:app, one sentence)`; imports none of them."""
    spec = importlib.util.find_spec(BUILT_IN)
    groups: dict[str, tuple[str, str]] = {}
    for root in spec.submodule_search_locations or () if spec else ():
        for path in sorted(Path(root).glob("*/cli.py")):
            text = ast.get_docstring(ast.parse((path.parent / "__init__.py").read_text(encoding="utf-8"))) or ""
            groups[path.parent.name] = (f"{BUILT_IN}.{path.parent.name}.cli:app", text.split("\n", 1)[0])
    return groups
