# SPDX-License-Identifier: Apache-2.0
"""What the lab has of each P4 program: `lab` (a module or a package with a class `Part`) beside its `program.py`, found through the contract.

part.py   what a program may bring: its settings in [control], names of parameters and metrics, its side of a run in sim and in Mininet
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache

from fairlane_controller.program.names import program_names
from fairlane_controller.program.registry import load_program

from fairlane_lab.programs.part import LabPart


@cache
def find_part(program: str) -> LabPart:
    """The lab's part of a program, by its name or its folder. Raises FairlaneError when there is no such program."""
    found = load_program(program)
    package = type(found).__module__.rpartition(".")[0]
    if importlib.util.find_spec(f"{package}.lab") is None:
        return LabPart(found)
    return importlib.import_module(f"{package}.lab").Part(found)


@cache
def known_parts() -> tuple[LabPart, ...]:
    """Those of all programs that have names."""
    return tuple(find_part(name) for name in program_names())
