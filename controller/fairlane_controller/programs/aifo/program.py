# SPDX-License-Identifier: Apache-2.0
"""`p4src/aifo.p4` (docs/schemes.md): admission by rank into one FIFO queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fairlane import Column, Packets, Param, PortState, RankProgram, RankSettings, Reason
from pydantic import Field

REASON_RANK = 11
K_SCALE = 1 << 16
"""k is in 1/65536."""
DEFAULT_CAPACITY = 80
"""Packets, where the queue's is not known."""


class Aifo(RankProgram):
    """AIFO (SIGCOMM 2021): one FIFO queue that refuses by rank what a PIFO would drop later."""

    name = "aifo"
    tables = ("aifo_port", "rank_draw")
    reasons = {
        **RankProgram.reasons,
        REASON_RANK: Reason("rank", "the rank was too large for what waited", in_queue=True),
    }
    columns = (
        *RankProgram.columns,
        Column("refused_by_rank", "by rank", "packets", "of these, for their rank", reason=REASON_RANK),
    )
    units = {"k": "1/65536"}

    class Settings(RankSettings):
        """One port."""

        queue_capacity: Annotated[Packets | None, Param("capacity_packets")] = None
        "The paper's C: packets that may wait; default: what the queue holds."
        burst: Annotated[float, Param("k", K_SCALE, digits=4), Field(ge=0, lt=1)] = 0.1
        "The paper's k: the part of the capacity that any rank may fill."
        window: Annotated[int, Param("window"), Field(ge=1, le=32)] = 20
        "The paper's |W|: recent ranks with which a rank is compared."
        sample: Annotated[int, Param("sample"), Field(ge=1, le=65_535)] = 1
        "The rank of one of so many packets comes into the window."

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """As `PortProgram`; C is the queue's capacity where it is not given."""
        return {"capacity_packets": port.queue_packets or DEFAULT_CAPACITY, **super().arguments(port, settings)}

    def settings_for_queue(self, settings: Any, packets: int | None, size: int | None) -> Any:
        """Let C follow the queue's capacity."""
        return settings if packets is None else settings.model_copy(update={"queue_capacity": packets})
