# SPDX-License-Identifier: Apache-2.0
"""The smallest queueing scheme: one setting, one counter, one column (docs/programs.md)."""

from typing import Annotated

from fairlane import Column, Packets, Param, PortProgram, Reason
from fairlane import Settings as BaseSettings


class DropTail(PortProgram):
    """At most `limit` packets wait at a port."""

    name = "droptail"
    title = "Drop-tail with a limit of its own."
    p4 = "droptail"
    tables = ("droptail_limit",)
    port_action = "set_limit"
    reasons = {14: Reason("over_limit", "the limit was reached", in_queue=True)}
    columns = (Column("refused", "refused", "packets", "packets over the limit", counter="refused"),)

    class Settings(BaseSettings):
        """One port."""

        limit: Annotated[Packets, Param("packets")] = 10
        "Packets that may wait."
