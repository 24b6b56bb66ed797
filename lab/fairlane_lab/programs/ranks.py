# SPDX-License-Identifier: Apache-2.0
"""The lab's part of programs whose packets have ranks: how many leave before a smaller rank, and how many a PIFO would not have dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

from fairlane_lab.programs.part import LabPart, Name

Ports = Mapping[tuple[str, int], Mapping[str, Any]]
"""By switch and port."""
_RANKS = 10
"""Ranks in one group of the results."""


class RankPart(LabPart):
    """Program with ranks."""

    parameters: ClassVar[Mapping[str, Name]] = {
        "ranks": Name("ranks", kind=str),
        "load": Name("offered load", "%", 100),
        "priority_queues": Name("priority queues", kind=int),
        "queue_limit": Name("room in a queue", "packets", kind=int),
        "window": Name("window", "packets", kind=int),
        "sample": Name("packets for one rank of the window", kind=int),
        "burst": Name("k"),
    }
    switch_parameters: ClassVar[frozenset[str]] = frozenset(
        {"program", "priority_queues", "queue_limit", "window", "sample", "burst"}
    )
    traffic_parameters: ClassVar[frozenset[str]] = frozenset({"ranks"})
    run_metrics: ClassVar[Mapping[str, Name]] = {
        "inversion_share": Name("left before a smaller rank", "%", 100),
        "refused_share": Name("refused", "%", 100),
        "wrong_drops": Name("drops that a PIFO would not make", "%", 100),
        "lowest_refused": Name("lowest rank refused", kind=int),
    }
    object_metrics: ClassVar[Mapping[str, Name]] = {
        "rank_inversions": Name("inversions", "%", 100),
        "rank_drops": Name("dropped", "%", 100),
    }

    def derived_values(self, before: Ports, after: Ports) -> dict[str, float]:
        """Shares, of all packets and of ten ranks each."""
        arrivals, drops, inversions = (_grown(name, before, after) for name in ("arrivals", "drops", "inversions"))
        if not arrivals:
            return {}
        found = {
            "inversion_share": inversions.total() / max(arrivals.total() - drops.total(), 1),
            "refused_share": drops.total() / arrivals.total(),
            "wrong_drops": (drops - pifo_drops(arrivals, drops.total())).total() / max(drops.total(), 1),
        }
        if drops:
            found["lowest_refused"] = float(min(drops))
        for first in range(0, max(arrivals) + 1, _RANKS):
            came, lost, wrong = (
                sum(of[rank] for rank in range(first, first + _RANKS)) for of in (arrivals, drops, inversions)
            )
            if came:
                found[f"rank_drops[{first}]"] = lost / came
                found[f"rank_inversions[{first}]"] = wrong / max(came - lost, 1)
        return found


def pifo_drops(arrivals: Mapping[int, int], count: int) -> Counter[int]:
    """What a PIFO drops of each rank when it drops `count` packets of these `arrivals` (by rank): the largest ranks.

    True of a port that is overloaded all the time: then a large rank that waits is pushed out sooner or later. What waits at the ends of
    the window, a queue full of packets, is the error.
    """
    found: Counter[int] = Counter()
    for rank in sorted(arrivals, reverse=True):
        found[rank] = min(arrivals[rank], count - found.total())
    return +found


def _grown(name: str, before: Ports, after: Ports) -> Counter[int]:
    """What a value of the ranks of all ports grew by."""
    found: Counter[int] = Counter()
    for port, values in after.items():
        start = before.get(port, {}).get("rank", {})
        for rank, of_rank in values.get("rank", {}).items():
            found[int(rank)] += of_rank[name] - start.get(rank, {}).get(name, 0)
    return +found
