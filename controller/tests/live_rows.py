# SPDX-License-Identifier: Apache-2.0
"""Snapshots made by hand for tests of what shows them: a dumbbell with flows, a port with VCs, a switch that is gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairlane_controller.live.model import DropRow, LoopRow, ObjectRow, PortRow, Snapshot, SwitchRow
from fairlane_controller.program.registry import load_program

PROGRAMS = {name: load_program(name) for name in ("qthresh", "gfr")}

MEASURED: dict[str, Any] = {
    "bw_bps": {"value": 2e6, "count": 40, "age_s": 0.1, "uncertainty": 0.0},
    "t_res_s": {"value": 0.00726, "count": 90, "age_s": 12.0, "uncertainty": 1e-5},
    "tau_s": None,
    "l_d_bytes": {"value": 1014.0, "count": 40, "age_s": 0.1, "uncertainty": 0.0},
    "n_c": {"value": 3.0, "count": 24, "age_s": 0.1, "uncertainty": 0.0},
}


def switch_row(name: str = "s1", **changes: Any) -> SwitchRow:
    """A switch that answers."""
    return replace(SwitchRow(switch=name, grpc="127.0.0.1:50051", device_id=1, reachable=True, program="qthresh", read_ms=4.2), **changes)  # fmt: skip


def gone(name: str = "s2") -> SwitchRow:
    """A switch that does not answer."""
    error = {"code": "switch_unreachable", "message": f"switch {name} at 127.0.0.1:50052 does not answer"}
    return switch_row(name, reachable=False, program=None, error=error, read_ms=None)


def policy(qthresh: int | None = 5) -> ObjectRow:
    """Class 0 of port 3 of s1 with a threshold, or drop-tail."""
    values: dict[str, Any] = {"traffic_class": 0, "scheme": "drop_tail" if qthresh is None else "qthresh", "qthresh_packets": qthresh, "weight": 1.0, "effective_packets": qthresh, "mode": None if qthresh is None else "auto", "manual": None if qthresh is None else False, "k": 1.95}  # fmt: skip
    return ObjectRow("s1", 3, "policy", "0", values)


def port_row(switch: str = "s1", port: int = 3, **changes: Any) -> PortRow:
    """A managed port that is busy."""
    return replace(PortRow(switch=switch, port=port, interface=f"{switch}-eth{port}", managed=True, rate_bps=2e6, tx_bps=1.98e6, utilisation=0.99, waiting_packets=9, waiting_bytes=9126, capacity_packets=50, drops_per_s=5.9, dropped_packets=2073, sent_packets=98072, sent_bytes=99_439_272, values={"qthresh_packets": 5, "scheme": "qthresh", "mode": "auto", "collisions": 0}, measured=MEASURED), **changes)  # fmt: skip


def flow_row(slot: int, **changes: Any) -> ObjectRow:
    """A flow of port 3 of s1."""
    src, src_port = f"10.0.{slot // 250 + 1}.{slot % 250 + 1}", 40_000 + slot
    values = {"slot": slot, "src": src, "src_port": src_port, "dst": "10.0.3.3", "dst_port": 5001, "traffic_class": 0, "waiting_packets": slot % 6, "qthresh_packets": 5, "weight": 1.0, "packets": 1000, "dropped_packets": 10, "goodput_bps": 1e5 + 1000.0 * slot, "drops_per_s": 2.0}  # fmt: skip
    return ObjectRow("s1", 3, "flow", f"tcp {src}:{src_port} > 10.0.3.3:5001", values | changes)


def vc_row(slot: int, **changes: Any) -> ObjectRow:
    """A VC of port 6 of s1."""
    values: dict[str, Any] = {"slot": slot, "mcr_bps": 2e6, "w_bps": 9.2e6, "rate_bps": 9.1e6, "waiting_cells": 40 * slot, "arrived_packets": 100, "accepted_packets": 90, "refused_packets": 10, "offered_bps": 1e7, "goodput_bps": 9e6, "drops_per_s": 1.5, "active": True, "mcr_met": "yes", "verdicts": {}}  # fmt: skip
    return ObjectRow("s1", 6, "vc", f"vc{slot}", values | changes)


def picture(flows: int = 3, **changes: Any) -> Snapshot:
    """The dumbbell: one managed port, so many flows, a loop that runs."""
    loop = tuple(LoopRow(name, True, None, {"flows": flows, "flows_missed": 0}) for name in ("s1", "s2"))
    return replace(Snapshot(time_s=1.8e9, topology="60", target="embedded", switches=(switch_row(), switch_row("s2")), ports=(port_row(), port_row("s2", 1, managed=False, values={}, measured=None, waiting_packets=None)), objects=(policy(), *(flow_row(i) for i in range(flows))), drops=(DropRow("s1", 3, "qthresh", 2073, 5.9, "program"), DropRow("s1", 1, "ttl", 2, 0.0, "program")), loop=loop, interval_s=0.5, programs={"qthresh": PROGRAMS["qthresh"]}), **changes)  # fmt: skip


def gfr_picture(vcs: int = 4) -> Snapshot:
    """One port that GFR manages."""
    values = {"waiting_cells": 1200, "capacity_cells": 4000, "scheme": "proposed", "lbo_cells": 1000, "hbo_cells": 3000, "active_vcs": vcs}  # fmt: skip
    port = port_row(port=6, waiting_packets=None, waiting_bytes=None, capacity_packets=None, values=values, measured=None, rate_bps=51.84e6)  # fmt: skip
    return picture(
        flows=0,
        switches=(switch_row(program="gfr"),),
        ports=(port,),
        objects=tuple(vc_row(i, active=i != 2) for i in range(vcs)),
        drops=(),
        programs={"gfr": PROGRAMS["gfr"]},
    )
