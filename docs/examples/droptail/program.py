# SPDX-License-Identifier: Apache-2.0
"""The smallest queueing scheme: one setting, one counter, one column (docs/programs.md)."""

from collections.abc import Iterator

from fairlane import Column, Entries, P4TableAction, P4TableEntry, P4TableMatch, Packets, PortState, Program, Reason
from fairlane import Settings as BaseSettings


class DropTail(Program):
    """At most `limit` packets wait at a port."""

    name = "droptail"
    title = "Drop-tail with a limit of its own."
    p4 = "droptail"
    tables = ("droptail_limit",)
    reasons = {14: Reason("over_limit", "the limit was reached", in_queue=True)}
    columns = (Column("refused", "refused", "packets", "packets over the limit", counter="refused"),)

    class Settings(BaseSettings):
        """One port."""

        limit: Packets = 10
        "Packets that may wait."

    def entries(self, port: PortState, settings: BaseSettings) -> Iterator[P4TableEntry]:
        assert isinstance(settings, self.Settings)
        action = P4TableAction("set_limit", packets=settings.limit)
        yield P4TableEntry("droptail_limit", match=P4TableMatch(egress_port=port.port), action=action)

    def ports_of(self, switch: str, current: Entries) -> dict[int, BaseSettings]:
        del switch
        return {
            int(entry["egress_port"]): self.Settings(limit=entry.action.args["packets"])
            for entry in current.values()
            if isinstance(entry.action, P4TableAction)
        }
