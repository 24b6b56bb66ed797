# SPDX-License-Identifier: Apache-2.0
"""What `gfr.p4` counted of each VC: its verdicts, summed over the managed ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from fairlane.switch import SwitchClient

from .. import names as gfr_program
from ..allocation import Allocation
from ..names import Verdict

VERDICTS_A_SLOT = 32
REFUSALS = tuple(verdict for verdict in Verdict if not verdict.accepted)

Verdicts = Mapping[str, Mapping[str, int]]
"""VC → name of verdict → frames."""


async def read_refusals(client: SwitchClient, allocation: Allocation) -> dict[str, dict[str, int]]:
    """Frames of each VC that the switch has refused since it began, by verdict; `clp0` are those of CLP 0 that the scheme refused."""
    found: dict[str, dict[str, int]] = {}
    for assignment in allocation.assignments:
        if assignment.switch != client.endpoint.name:
            continue
        places = {
            gfr_program.verdict_index(assignment.slot, clp, verdict): (clp, verdict)
            for verdict in REFUSALS
            for clp in (0, 1)
        }
        cells = await client.read_counters(gfr_program.COUNTER_VERDICTS, list(places))
        mine = found.setdefault(assignment.vc, {**{verdict.name.lower(): 0 for verdict in REFUSALS}, "clp0": 0})
        for index, cell in cells.items():
            clp, verdict = places[index]
            mine[verdict.name.lower()] += cell.packet_count
            if clp == 0 and verdict not in (Verdict.PCR, Verdict.MFS):
                mine["clp0"] += cell.packet_count
    return found


def added(parts: Iterable[Verdicts]) -> dict[str, dict[str, int]]:
    """The sum over switches."""
    total: dict[str, Counter[str]] = {}
    for part in parts:
        for vc, counts in part.items():
            total.setdefault(vc, Counter()).update(counts)
    return {vc: dict(counts) for vc, counts in total.items()}


def grown(before: Verdicts, after: Verdicts) -> dict[str, dict[str, int]]:
    """What was counted between two readings."""
    return {
        vc: {name: count - before.get(vc, {}).get(name, 0) for name, count in counts.items()}
        for vc, counts in after.items()
    }
