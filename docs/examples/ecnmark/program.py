# SPDX-License-Identifier: Apache-2.0
"""DCTCP's switch: marks, instead of dropping, what finds a queue of `mark_at` packets (RFC 8257 section 3.1)."""

from collections.abc import Iterator

from fairlane import Column, Entries, P4TableAction, P4TableEntry, P4TableMatch, Packets, PortState, Program
from fairlane import Settings as BaseSettings


class EcnMark(Program):
    """Marks ECN-capable packets that find `mark_at` packets or more in the queue."""

    name = "ecnmark"
    title = "Drop-tail that marks from a threshold on."
    p4 = "ecnmark"
    tables = ("ecnmark_threshold",)
    columns = (Column("marked", "marked", "packets", "packets marked (CE)", counter="marked"),)

    class Settings(BaseSettings):
        """One port."""

        mark_at: Packets = 20
        "Packets in the queue from which on it marks."

    def entries(self, port: PortState, settings: BaseSettings) -> Iterator[P4TableEntry]:
        assert isinstance(settings, self.Settings)
        action = P4TableAction("set_threshold", packets=settings.mark_at)
        yield P4TableEntry("ecnmark_threshold", match=P4TableMatch(egress_port=port.port), action=action)

    def ports_of(self, switch: str, current: Entries) -> dict[int, BaseSettings]:
        del switch
        return {
            int(entry["egress_port"]): self.Settings(mark_at=entry.action.args["packets"])
            for entry in current.values()
            if isinstance(entry.action, P4TableAction)
        }
