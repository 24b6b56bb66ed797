# SPDX-License-Identifier: Apache-2.0
"""Compiled P4 programs for the simulator, read and parsed once a process: their P4Info is shared by all runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.contract import Program as Contract
from fairlane_controller.program.registry import load_program
from fairlane_controller.switch.client import PipelineFiles
from finsy import P4Schema
from finsy.proto import p4r

from fairlane_lab.run_result import RunError


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


@cache
def find_program(name: str) -> Program:
    """The compiled program of a name or in a folder. Raises RunError when there is none, or it is not compiled."""
    try:
        contract = load_program(name)
    except FairlaneError as problem:
        raise RunError(problem.message) from None
    files = contract.pipeline()
    for path in (files.json, files.p4info):
        if not path.is_file():
            raise RunError(f"program {contract.name!r} is not compiled: there is no {path}")
    schema = P4Schema(files.p4info, files.json)
    request = p4r.SetForwardingPipelineConfigRequest(
        device_id=1,
        action=p4r.SetForwardingPipelineConfigRequest.Action.VERIFY_AND_COMMIT,
        config=schema.get_pipeline_config(),
    )
    by_chance = b'"modify_field_rng_uniform"' in files.json.read_bytes()
    return Program(contract, files, schema, request.SerializeToString(), by_chance)
