# SPDX-License-Identifier: Apache-2.0
"""`p4src/packs.p4` (docs/schemes.md): strict-priority queues, filled and closed by the quantile of a rank."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairlane import PortState, StrictProgram, StrictSettings, WindowProgram, WindowSettings

QUEUES_MAX = 8
"""Of the P4 program."""


class Packs(StrictProgram, WindowProgram):
    """PACKS (NSDI 2025): a few strict-priority queues that serve and refuse nearly as a PIFO does."""

    name = "packs"
    tables = ("packs_port", "rank_draw")

    class Settings(StrictSettings, WindowSettings):
        """One port."""

    def check_port(self, port: PortState, settings: Any) -> Iterator[str]:
        """As `StrictProgram`; and what the P4 program has."""
        yield from super().check_port(port, settings)
        if settings.priority_queues > QUEUES_MAX:
            yield f"priority_queues: {settings.priority_queues}: packs has 1 to {QUEUES_MAX} queues"
