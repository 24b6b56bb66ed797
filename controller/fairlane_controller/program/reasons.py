# SPDX-License-Identifier: Apache-2.0
"""What drop reasons of programs, of queues and of links mean, in words (docs/p4.md, docs/switch.md)."""

from __future__ import annotations

from fairlane_controller.program.contract import Program
from fairlane_controller.program.rows import Reason
from fairlane_controller.switch.shared import PACKET_REASONS

_ELSEWHERE = {
    "queue": "the queue had no room (packets, bytes, cells, or the shared buffer)",
    "link": "lost at the interface",
    "not_received": "lost at reception (as when offloads are on), or no program was there yet",
}


def reasons_of(program: Program | None) -> dict[int, Reason]:
    """Every drop reason of a program by its number, those that all share first."""
    shared = {number: Reason(name, meaning) for number, (name, meaning) in PACKET_REASONS.items()}
    return {**shared, **(program.reasons if program is not None else {})}


def meaning(program: Program | None, reason: str, by: str = "program") -> str:
    """What a drop reason means.

    Args:
        program: The program of the switch.
        reason: The name of the reason.
        by: What dropped the packet: `program`, or `queue` or `link`, whose reasons are the target's own.

    Returns:
        One short sentence.
    """
    own = {one.name: one.meaning for one in reasons_of(program).values()} | dict(program.meanings if program else {})
    return own.get(reason) or _ELSEWHERE.get(reason) or _ELSEWHERE.get(by, "a reason of the program's own")
