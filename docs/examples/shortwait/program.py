# SPDX-License-Identifier: Apache-2.0
"""A program with a law of its own: a drop-tail queue whose limit follows the line, so that no packet waits long (docs/programs.md)."""

from typing import Annotated, Any

from fairlane import Column, Duration, Packets, Param, PortProgram, PortState, Section
from fairlane import Settings as BaseSettings


class ShortWait(PortProgram):
    """`limit` packets may wait: as many as the line sends in `longest_wait`."""

    name = "shortwait"
    title = "Drop-tail whose limit follows the line."
    p4 = "../droptail/droptail"
    tables = ("droptail_limit",)
    port_action = "set_limit"
    columns = (
        Column("limit_packets", "limit", "packets", "packets that may wait", setting="limit", plot="capacity"),
        Column("refused", "refused", "packets", "packets over the limit", counter="refused"),
    )
    decided = ("limit",)

    class Settings(BaseSettings):
        """One port."""

        limit: Annotated[Packets, Param("packets")] = 100
        "Packets that may wait."

    class LoopSettings(Section):
        """`[loop]`."""

        longest_wait: Duration = 0.02
        "No packet is to wait longer."

    def decide(self, port: PortState, settings: Any, seen: Any, loop: Any) -> BaseSettings:
        """While packets are refused the line is busy: what it sends then is what it can. Else the limit is no obstacle."""
        rate, refused = seen.get("sent_packets_per_s"), seen.get("refused_per_s")
        if not rate or not refused:
            return settings
        return self.Settings(limit=max(2, round(rate * loop.longest_wait)))
