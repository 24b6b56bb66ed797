# SPDX-License-Identifier: Apache-2.0
"""`p4src/afd.p4` (docs/schemes.md): AFD's settings, entries and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fairlane import AqmProgram, Column, Duration, Param, PortState, Settings, Size, longest_frame_bytes
from pydantic import Field

ONE = 1 << 10
"""Of the P4 program's gains and of M_fair."""
SHADOW_PACKETS = 512
"""The paper's b: packets in the shadow buffer."""


class Afd(AqmProgram):
    """AFD (CCR 2003): a flow's packets are dropped with the chance that brings its rate down to the fair one."""

    name = "afd"
    tables = ("afd_port",)
    ports_max = 63
    units = {"alpha": "2^-10", "beta": "2^-10", "sample": "packets"}
    dropped = "chosen by chance, by the flow's rate"
    columns = (
        AqmProgram.delay,
        Column("afd_fair_bytes", "fair share", "bytes", "bytes in the shadow buffer above which a flow is dropped (M_fair)", register="fair_share", scale=1 / ONE, value_type=float),
        AqmProgram.drops,
        AqmProgram.sent,
        AqmProgram.waited,
    )  # fmt: skip

    class Settings(Settings):
        """One port."""

        queue_target: Annotated[Size, Param("target_bytes"), Field(ge=64, le=1 << 30)] = 75_000
        "The paper's Q_target: what should wait."
        sample: Annotated[int, Param("sample"), Field(ge=1, le=65_535)] = 5
        "The paper's s: one of so many packets comes into the shadow buffer, which holds 512."
        update: Annotated[Duration, Param("update_us", 1e6), Field(ge=1e-6, le=0.25)] = 0.00625
        "From one update of M_fair to the next."
        alpha: Annotated[float, Param("alpha", ONE, digits=3), Field(ge=0, le=1_000)] = 1.7
        "Gain of the queue before: M_fair grows by `alpha` times what it was above the target."
        beta: Annotated[float, Param("beta", ONE, digits=3), Field(ge=0, le=1_000)] = 1.8
        "Gain of the queue now: M_fair falls by `beta` times what it is above the target; above `alpha`."

    def check_port(self, port: PortState, settings: Any) -> list[str]:
        """Check the order of the gains."""
        problem = f"beta: {settings.beta}: must be above alpha, {settings.alpha}"
        return [problem] if settings.beta <= settings.alpha else []

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """As `PortProgram`; M_fair ends at a shadow buffer full of one flow's longest frames."""
        ceiling = SHADOW_PACKETS * longest_frame_bytes(port.mtu)
        return {**super().arguments(port, settings), "ceiling_bytes": ceiling}
