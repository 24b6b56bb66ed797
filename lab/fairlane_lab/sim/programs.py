# SPDX-License-Identifier: Apache-2.0
"""Compiled P4 programs for the simulator, read and parsed once a process: their P4Info is shared by all runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from fairlane_controller.switch.client import PipelineFiles
from finsy import P4Schema
from finsy.proto import p4r

from fairlane_lab.paths import REPOSITORY
from fairlane_lab.run_result import RunError

COMPILED = REPOSITORY / "p4src" / "compiled"


@dataclass(frozen=True)
class Program:
    """One compiled program."""

    name: str
    files: PipelineFiles
    schema: P4Schema = field(repr=False)
    set_pipeline: bytes = field(repr=False)
    "A serialized SetForwardingPipelineConfigRequest that loads it."
    by_chance: bool
    "Whether it calls `random()`: then what it does depends on the run's seed."


@cache
def find_program(name: str) -> Program:
    """The program of that name in `p4src/compiled`. Raises RunError with the names that there are."""
    files = PipelineFiles(COMPILED / f"{name}.json", COMPILED / f"{name}.p4info.txtpb")
    if not (files.json.is_file() and files.p4info.is_file()):
        known = ", ".join(sorted(path.stem for path in COMPILED.glob("*.json") if path.stem != "manifest")) or "none"
        raise RunError(f"no compiled P4 program is called {name!r}; there are {known}")
    schema = P4Schema(files.p4info, files.json)
    request = p4r.SetForwardingPipelineConfigRequest(
        device_id=1,
        action=p4r.SetForwardingPipelineConfigRequest.Action.VERIFY_AND_COMMIT,
        config=schema.get_pipeline_config(),
    )
    by_chance = b'"modify_field_rng_uniform"' in files.json.read_bytes()
    return Program(name, files, schema, request.SerializeToString(), by_chance)
