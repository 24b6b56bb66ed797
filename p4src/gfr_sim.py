# SPDX-License-Identifier: Apache-2.0
"""gfr.p4 in virtual time: its VCs, schemes and verdicts in a `sim_world.World`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import finsy as fy
from sim_world import SINK_PORT, Cbr, World


class GfrWorld(World):
    """The network with gfr.p4 loaded and routes set; port 9 is the one to manage."""

    def __init__(self, flows: Iterable[Cbr], **options: Any) -> None:
        super().__init__("gfr", flows, **options)

    def verdicts(self, slot: int) -> dict[tuple[int, int], int]:
        """{(CLP, verdict): packets} of a slot, where there are any."""
        cells = [fy.P4CounterEntry("vc_verdicts", index=slot << 5 | low) for low in range(32)]
        return {(e.index >> 4 & 1, e.index & 15): e.packet_count for e in self.read(*cells) if e.packet_count}

    # ---- GFR ----------------------------------------------------------------------------------------

    def proposed(
        self, *, rate_form: int = 0, alpha: int = 0, at_arrival: int = 0, period_us: int = 64, qmax: int = 60_000
    ) -> None:
        """Port 9 by the proposed scheme, with limits that no frame of CLP 0 meets."""
        args = {"qmax": qmax, "lbo": qmax - 2, "hbo": qmax - 1, "per_vc_queue": 0, "n": 1}
        self.insert(
            "port_scheme",
            {"egress_port": SINK_PORT},
            "proposed",
            rate_form=rate_form,
            alpha=alpha,
            at_arrival=at_arrival,
            period_us=period_us,
            **args,
        )

    def add_vc(self, vc: int, ingress_port: int, **share: Any) -> None:
        """All of one port is a VC, its slot that of its number; `share` are parameters of set_share."""
        values = {"slot": vc, "queue": 0, "w": 10**12 - 1, "weight": 0, "share": 65536, "inv_share": 65536}
        values |= {"inv_rest": 65536, "threshold": 0} | share
        self.insert("vc_classify", {"ingress_port": f"{ingress_port}/&0x1ff"}, "set_vc", priority=1, vc=vc)
        self.insert("vc_share", {"egress_port": SINK_PORT, "vc": vc}, "set_share", **values)

    def police(self, vc: int, ingress_port: int, **rates: int) -> None:
        """The port is the VC's edge; rates in bytes of frame: cir, cburst, pir, pburst."""
        match = {"ingress_port": ingress_port, "vc": vc}
        self.insert("vc_edge", match, "set_edge", mfs=1514, mark_dscp=0, set_dscp=0)
        self.insert("vc_police", match, "police")
        entry = fy.P4TableEntry("vc_police", match=fy.Match(**match))
        self.write(~fy.P4DirectMeterEntry(table_entry=entry, config=fy.P4MeterConfig(**rates)))
