# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime and gNMI messages that the switch is built from are those of finsy, which the controller speaks."""

from __future__ import annotations

import runpy
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet

SCRIPT = Path(__file__).resolve().parents[1] / "crates" / "proto" / "descriptors.py"


def test_the_descriptors_of_the_build_are_those_of_finsy() -> None:
    script = runpy.run_path(str(SCRIPT))
    built = FileDescriptorSet.FromString(script["OUTPUT"].read_bytes())
    assert built == script["descriptor_set"](script["ROOTS"]), f"run {SCRIPT} again"
