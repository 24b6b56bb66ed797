# SPDX-License-Identifier: Apache-2.0
"""The lab's part of program `ena` (docs/schemes.md): the far side of a satellite link notifies; there is no control loop."""

from __future__ import annotations

from typing import Literal

from fairlane import Section
from fairlane_lab.programs.part import LabPart


class Control(Section):
    """`[control]`."""

    scheme: Literal["drop_tail"] = "drop_tail"


class Part(LabPart):
    """Program `ena`."""

    Control = Control
    shows_columns = False
    switch_parameters = frozenset({"receiver_program"})
