# SPDX-License-Identifier: Apache-2.0
"""DCTCP's switch: marks, instead of dropping, what finds a queue of `mark_at` packets (RFC 8257 section 3.1)."""

from typing import Annotated

from fairlane import Column, Packets, Param, PortProgram
from fairlane import Settings as BaseSettings


class EcnMark(PortProgram):
    """Marks ECN-capable packets that find `mark_at` packets or more in the queue."""

    name = "ecnmark"
    title = "Drop-tail that marks from a threshold on."
    p4 = "ecnmark"
    tables = ("ecnmark_threshold",)
    port_action = "set_threshold"
    columns = (Column("marked", "marked", "packets", "packets marked (CE)", counter="marked"),)

    class Settings(BaseSettings):
        """One port."""

        mark_at: Annotated[Packets, Param("packets")] = 20
        "Packets in the queue from which on it marks."
