# SPDX-License-Identifier: Apache-2.0
"""What the lab has of each P4 program: `lab` (a module or a package with a class `Part`) beside its `program.py`, found through the contract.

part.py   what a program may bring: its settings in [control], names of parameters and metrics, its side of a run in sim and in Mininet
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.logs import warn
from fairlane_controller.program.contract import Program
from fairlane_controller.program.registry import load_program, loaded_programs

from fairlane_lab.programs.part import LabPart


@cache
def find_part(program: str) -> LabPart:
    """The lab's part of a program, by its name or its folder. Raises FairlaneError when there is none, or it cannot be loaded."""
    return _part_of(load_program(program))


@cache
def _part_of(program: Program) -> LabPart:
    package = type(program).__module__.rpartition(".")[0]
    try:
        if not package or importlib.util.find_spec(f"{package}.lab") is None:
            return LabPart(program)
        return importlib.import_module(f"{package}.lab").Part(program)
    except (Exception, SystemExit) as ex:
        text = (
            f"the lab's part of the program {program.name} ({package}.lab) cannot be loaded: {type(ex).__name__}: {ex}"
        )
        raise FairlaneError(ErrorCode.BAD_FILE, text) from ex


@cache
def known_parts() -> tuple[LabPart, ...]:
    """Those of all programs that have names; one that cannot be loaded is left out, with a warning."""
    parts: list[LabPart] = []
    for program in loaded_programs():
        try:
            parts.append(_part_of(program))
        except FairlaneError as ex:
            warn(f"{ex.message}; it is left out")
    return tuple(parts)
