# SPDX-License-Identifier: Apache-2.0
"""What the lab has of each P4 program: `lab` (a module or a package with a class `Part`) beside its `program.py`, found through the contract; and its compiled files,
read and parsed once a process: their P4Info is shared by all runs.

part.py   what a program may bring: its settings in [control], names of parameters and metrics, its side of a run in sim and in Mininet
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.logs import warn
from fairlane_controller.program.contract import Program as Contract
from fairlane_controller.program.registry import load_program, loaded_programs
from fairlane_controller.switch.client import PipelineFiles
from finsy import P4Schema
from finsy.proto import p4r

from fairlane_lab.programs.part import LabPart
from fairlane_lab.run_result import RunError


@cache
def find_part(program: str) -> LabPart:
    """The lab's part of a program, by its name or its folder. Raises FairlaneError when there is none, or it cannot be loaded."""
    return _part_of(load_program(program))


@cache
def _part_of(program: Contract) -> LabPart:
    package = type(program).__module__.rpartition(".")[0]
    try:
        if not package or importlib.util.find_spec(f"{package}.lab") is None:
            return LabPart(program)
        return importlib.import_module(f"{package}.lab").Part(program)
    except (Exception, SystemExit) as ex:
        text = (
            f"the lab's part of the program {program.name} ({package}.lab) cannot be loaded: {type(ex).__name__}: {ex}"
        )
        raise ErrorCode.BAD_FILE(text) from ex


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


def of_programs(what: str) -> dict[Any, Any]:
    """A mapping that each `LabPart` has, such as `run_metrics`: the entries of all programs in one."""
    return {name: value for part in known_parts() for name, value in getattr(part, what).items()}


@dataclass(frozen=True)
class Program:
    """One compiled program."""

    contract: Contract
    files: PipelineFiles
    schema: P4Schema = field(repr=False)
    set_pipeline: bytes = field(repr=False)
    "A serialized SetForwardingPipelineConfigRequest that loads it."
    by_chance: bool
    "Whether it calls `random()`: then what it does depends on the run's seed."

    @property
    def name(self) -> str:
        """Its name."""
        return self.contract.name


def set_pipeline(schema: P4Schema) -> bytes:
    """A serialized SetForwardingPipelineConfigRequest that loads a program."""
    request = p4r.SetForwardingPipelineConfigRequest(
        device_id=1,
        action=p4r.SetForwardingPipelineConfigRequest.Action.VERIFY_AND_COMMIT,
        config=schema.get_pipeline_config(),
    )
    return request.SerializeToString()


@cache
def find_program(name: str) -> Program:
    """The compiled program of a name or in a folder. Raises FairlaneError when there is none, RunError when it is not compiled."""
    contract = load_program(name)
    files = contract.pipeline()
    for path in (files.json, files.p4info):
        if not path.is_file():
            raise RunError(f"program {contract.name!r} is not compiled: there is no {path}")
    schema = P4Schema(files.p4info, files.json)
    by_chance = b'"modify_field_rng_uniform"' in files.json.read_bytes()
    return Program(contract, files, schema, set_pipeline(schema), by_chance)
