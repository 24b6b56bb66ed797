# SPDX-License-Identifier: Apache-2.0
"""`p4src/sp_pifo.p4` (docs/ranks.md): a port's strict-priority queues, and where ranks come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fairlane import Config, Packets, PortState, RankProgram, RankSettings, RunState
from pydantic import Field


class SpPifo(RankProgram):
    """SP-PIFO, Algorithm 1."""

    name = "sp_pifo"
    title = "SP-PIFO (NSDI 2020): packets leave nearly by rank, from a few strict-priority queues."
    p4 = "../../../../p4src/compiled/sp_pifo"
    tables = ("sp_pifo_port", "rank_draw")
    port_action = "set_sp_pifo"

    class Settings(RankSettings):
        """One port."""

        priority_queues: Annotated[int, Field(ge=1, le=32)] = 8
        "The paper's n: queues that are used, of those that the port has. With 1 the port is a FIFO."
        queue_limit: Packets = 10
        "Packets that may wait in one of them; at most what the queue holds."

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """Numbers as they are."""
        own = {"queues": settings.priority_queues, "queue_packets": settings.queue_limit}
        return {**super().arguments(port, settings), **own}

    def settings_from(self, arguments: Mapping[str, int]) -> Settings:
        """Back."""
        own = {"priority_queues": arguments["queues"], "queue_limit": arguments["queue_packets"]}
        return self.Settings(ranks=self.source_of(arguments), **own)

    def check(self, config: Config, run: RunState | None) -> Iterable[str]:
        """The port has so many queues, and serves them by strict priority."""
        for place, settings in (config.ports or {}).items():
            at = config.at.get(place, "{}:{}".format(*place))
            switch = next((one for one in run.switches if one.name == place[0]), None) if run is not None else None
            port = (
                config.states.get(place)
                or (switch.port(place[1]) if switch is not None else None)
                or PortState(port=place[1])
            )
            if port.queues and settings.priority_queues > port.queues:
                yield f"{at}.priority_queues: the port has {port.queues} queues; must be 1 to {port.queues}"
            if port.scheduler not in ("", "strict"):
                yield f"{at}: the port's scheduler is {port.scheduler}; SP-PIFO needs strict"
            if port.queue_packets and settings.queue_limit > port.queue_packets:
                yield f"{at}.queue_limit: a queue of the port holds {port.queue_packets} packets; must be 1 to {port.queue_packets}"
