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

from fairlane_controller.program.port_program import Param, PortProgram
from fairlane_controller.program.rows import Column, Kind, Reading, Reason, Row
from fairlane_controller.program.settings import Settings
from fairlane_controller.state.run_state import PortState, SwitchState

RankSource = Literal[
    "identification", "dscp", "ingress_port", "uniform", "exponential", "inverse_exponential", "poisson", "convex"
]  # fmt: skip
SOURCES: tuple[str, ...] = get_args(RankSource)
"""The place is the number that the P4 program has for it."""
REASON_PORT_FULL = 12
RANKS_SHOWN = 128
"""Ranks of the counters; the last one stands for all above."""
_DRAWS = 1 << 16
_MEAN = 25.0
"""Of the exponential distributions."""


def _exponential(rank: int) -> float:
    return math.exp(-rank / _MEAN) if rank < 100 else 0.0


def _poisson(mean: float, rank: int) -> float:
    return math.exp(rank * math.log(mean) - mean - math.lgamma(rank + 1))


WEIGHTS: Mapping[str, Callable[[int], float]] = {
    "uniform": lambda rank: float(rank < 100),
    "exponential": _exponential,
    "inverse_exponential": lambda rank: _exponential(100 - rank) if rank <= 100 else 0.0,
    "poisson": lambda rank: _poisson(50, rank),
    "convex": lambda rank: _poisson(100, rank) + _poisson(100, rank + 100) if rank < 100 else 0.0,
}
"""How likely a rank is, of each distribution; not normalized."""


def pieces(source: str) -> list[tuple[int, int, int]]:
    """(first, last, rank): the draws, of 0 to 65535, that mean a rank; none where ranks are not drawn."""
    if source not in WEIGHTS:
        return []
    weights = [WEIGHTS[source](rank) for rank in range(RANKS_SHOWN - 1)]
    ends = [round(_DRAWS * sum_ / sum(weights)) for sum_ in accumulate(weights)]
    return [
        (first, last - 1, rank)
        for rank, (first, last) in enumerate(zip([0, *ends], ends, strict=False))
        if first < last
    ]


class RankSettings(Settings):
    """One port."""

    ranks: Annotated[RankSource, Param("rank_from", words=SOURCES)] = "identification"
    """Where a packet's rank comes from: `identification` (of IPv4; IPv6: the flow label), `dscp`, `ingress_port` (the port that it came
    in by), or drawn at random from a distribution."""


class RankProgram(PortProgram):
    """Counts arrivals, drops and inversions of each rank."""

    Settings = RankSettings
    reasons: ClassVar[Mapping[int, Reason]] = {
        REASON_PORT_FULL: Reason("port_full", "the queue was full", in_queue=True)
    }
    columns = (
        Column("inversions", "inversions", "packets", "packets that left while one of a smaller rank waited", counter="inverted"),
        Column("refused", "refused", "packets", "packets that were refused", counter="refused", plot="drops"),
    )  # fmt: skip
    kinds = (
        Kind(
            "rank",
            "ranks",
            (
                Column("arrivals", "arrivals", "packets", "packets of the rank that came", total=True),
                Column("drops", "drops", "packets", "packets of the rank that were refused", total=True),
                Column("inversions", "inversions", "packets", "packets of the rank that left while one of a smaller rank waited", total=True),
            ),
        ),
    )  # fmt: skip

    def entries(self, port: PortState, settings: Any) -> Iterator[P4TableEntry]:
        """The port's own, and the pieces of its distribution."""
        yield from super().entries(port, settings)
        for first, last, rank in pieces(settings.ranks):
            match = P4TableMatch(egress_port=port.port, draw=f"{first}...{last}")
            yield P4TableEntry("rank_draw", match=match, action=P4TableAction("set_rank", rank=rank), priority=1)

    async def rows(self, reading: Reading, switch: SwitchState | None) -> Sequence[Row]:
        """The ports, and each rank of which packets came."""
        ports = list(await super().rows(reading, switch))
        numbers = [row.port for row in ports if row.port is not None]
        cells = [port * RANKS_SHOWN + rank for port in numbers for rank in range(RANKS_SHOWN)]
        names = {"arrivals": "rank_arrivals", "drops": "rank_drops", "inversions": "rank_inversions"}
        found = await asyncio.gather(*(reading.counters(counter, cells) for counter in names.values()))
        read = dict(zip(names, found, strict=True))
        for cell in cells:
            if read["arrivals"][cell].packet_count:
                values = {name: read[name][cell].packet_count for name in names}
                ports.append(Row(cell // RANKS_SHOWN, values, "rank", str(cell % RANKS_SHOWN)))
        return ports
