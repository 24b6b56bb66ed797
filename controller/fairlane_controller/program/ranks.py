# SPDX-License-Identifier: Apache-2.0
"""Programs that order or drop packets by rank (`p4src/include/rank/`): where a rank comes from, and what became of each.

The distributions are those of SP-PIFO's evaluation (Alcoz et al., NSDI 2020, section 4.2): ranks 0 to 100 and a little above.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Annotated, Any, ClassVar, Literal, get_args

from finsy import P4TableAction, P4TableEntry, P4TableMatch
from pydantic import Field

from fairlane_controller.program.port_program import Param, PortProgram
from fairlane_controller.program.quantities import Packets
from fairlane_controller.program.rows import Column, Kind, Reason, Row
from fairlane_controller.program.settings import Settings
from fairlane_controller.state.run_state import PortState, SwitchState
from fairlane_controller.switch.reading import BatchReading

RankSource = Literal[
    "identification", "dscp", "ingress_port", "uniform", "exponential", "inverse_exponential", "poisson", "convex"
]  # fmt: skip
SOURCES: tuple[str, ...] = get_args(RankSource)
"""The index is the number that the P4 program has for it."""
RANKS_SHOWN = 128
"""Ranks of the counters; the last one stands for all above."""
_DRAWS = 1 << 16
_MEAN = 25.0
"""Of the exponential distributions."""


def _poisson(mean: float, rank: int) -> float:
    return math.exp(rank * math.log(mean) - mean - math.lgamma(rank + 1))


WEIGHTS: Mapping[str, Callable[[int], float]] = {
    "uniform": lambda rank: float(rank < 100),
    "exponential": lambda rank: math.exp(-rank / _MEAN) * (rank < 100),
    "inverse_exponential": lambda rank: math.exp((rank - 100) / _MEAN) * (0 < rank <= 100),
    "poisson": lambda rank: _poisson(50, rank),
    "convex": lambda rank: (_poisson(100, rank) + _poisson(100, rank + 100)) * (rank < 100),
}
"""How likely a rank is, of each distribution; not normalized."""


def pieces(source: str) -> list[tuple[int, int, int]]:
    """The draws that mean a rank.

    Args:
        source: The source of the ranks.

    Returns:
        (first, last, rank): draws of 0 to 65535; nothing where ranks are not drawn.
    """
    if source not in WEIGHTS:
        return []
    weights = [WEIGHTS[source](rank) for rank in range(RANKS_SHOWN - 1)]
    ends = [round(_DRAWS * sum_ / sum(weights)) for sum_ in accumulate(weights)]
    bounds = enumerate(zip([0, *ends], ends, strict=False))
    return [(first, last - 1, rank) for rank, (first, last) in bounds if first < last]


class RankSettings(Settings):
    """One port."""

    ranks: Annotated[RankSource, Param("rank_from", values=SOURCES)] = "identification"
    """Where a packet's rank comes from: `identification` (of IPv4; IPv6: the flow label), `dscp`, `ingress_port` (the port that it came
    in by), or drawn at random from a distribution."""


class StrictSettings(RankSettings):
    """One port of a `StrictProgram`."""

    priority_queues: Annotated[int, Param("queues"), Field(ge=1, le=32)] = 8
    "The papers' n: queues that are used, of those that the port has. With 1 the port is a FIFO."
    queue_limit: Annotated[Packets, Param("queue_packets")] = 10
    "Packets that may wait in one of them; at most what the queue holds."


class WindowSettings(RankSettings):
    """One port of a `WindowProgram`."""

    burst: Annotated[float, Param("k", 1 << 16, digits=4), Field(ge=0, lt=1)] = 0.1
    "The papers' k: the part of the capacity that any rank may fill."
    window: Annotated[int, Param("window"), Field(ge=1, le=32)] = 20
    "The papers' |W|: recent ranks with which a rank is compared."
    sample: Annotated[int, Param("sample"), Field(ge=1, le=65_535)] = 1
    "The rank of one of so many packets comes into the window."


_RANK_COUNTERS = (
    Column("arrivals", "arrivals", "packets", "packets of the rank that came", "rank_arrivals"),
    Column("drops", "drops", "packets", "packets of the rank that were refused", "rank_drops"),
    Column("inversions", "inversions", "packets", "packets of the rank that left while one of a smaller rank waited", "rank_inversions"),
)  # fmt: skip
"""Their counters have `RANKS_SHOWN` cells a port."""


class RankProgram(PortProgram):
    """Counts arrivals, drops and inversions of each rank."""

    Settings = RankSettings
    reasons: ClassVar[Mapping[int, Reason]] = {12: Reason("port_full", "the queue was full", in_queue=True)}
    columns = (
        Column("inversions", "inversions", "packets", "packets that left while one of a smaller rank waited", "inverted"),
        Column("refused", "refused", "packets", "packets that were refused", "refused", plot="drops"),
    )  # fmt: skip
    kinds = (Kind("rank", "ranks", _RANK_COUNTERS),)

    def entries(self, port: PortState, settings: Any) -> Iterator[P4TableEntry]:
        """The port's own, and the pieces of its distribution."""
        yield from super().entries(port, settings)
        for first, last, rank in pieces(settings.ranks):
            match = P4TableMatch(egress_port=port.port, draw=f"{first}...{last}")
            yield P4TableEntry("rank_draw", match=match, action=P4TableAction("set_rank", rank=rank), priority=1)

    async def rows(self, reading: BatchReading, switch: SwitchState | None) -> Sequence[Row]:
        """The ports, and each rank of which packets came."""
        ports = list(await super().rows(reading, switch))
        cells = [row.port * RANKS_SHOWN + rank for row in ports if row.port for rank in range(RANKS_SHOWN)]
        counted = await asyncio.gather(*(reading.counters(column.counter, cells) for column in _RANK_COUNTERS))
        for cell in cells:
            read = zip(_RANK_COUNTERS, counted, strict=True)
            values = {column.name: found[cell].packet_count for column, found in read}
            if values["arrivals"]:
                ports.append(Row(cell // RANKS_SHOWN, values, "rank", str(cell % RANKS_SHOWN)))
        return ports


class StrictProgram(RankProgram):
    """Its ports have strict-priority queues."""

    Settings = StrictSettings
    scheduler = "strict"

    def check_port(self, port: PortState, settings: Any) -> Iterator[str]:
        """Check the number of the port's queues and their room."""
        if port.queues and settings.priority_queues > port.queues:
            yield f"priority_queues: the port has {port.queues} queues; must be 1 to {port.queues}"
        if port.queue_packets and settings.queue_limit > port.queue_packets:
            yield f"queue_limit: a queue of the port holds {port.queue_packets} packets; must be 1 to {port.queue_packets}"


class WindowProgram(RankProgram):
    """Refuses by the quantile of a rank among the last ones (`p4src/include/rank/window.p4`)."""

    Settings = WindowSettings
    reasons: ClassVar[Mapping[int, Reason]] = {
        **RankProgram.reasons,
        11: Reason("rank", "the rank was too large for what waited", in_queue=True),
    }
    columns = (
        *RankProgram.columns,
        Column("refused_by_rank", "by rank", "packets", "of these, for their rank", reason=11),
    )
    units: ClassVar[Mapping[str, str]] = {"k": "1/65536"}
