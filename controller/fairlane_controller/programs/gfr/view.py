# SPDX-License-Identifier: Apache-2.0
"""What `gfr.p4` shows: QT of its ports; share, Q_i, r_i and verdicts of its VCs, and whether each gets its MCR."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import product
from operator import itemgetter
from typing import Any

from fairlane import Column, Kind, P4TableAction, Reading, Row
from fairlane.measure import BW, TAU
from fairlane.switch import COUNTER_ADMITTED, COUNTER_PASSED
from finsy import P4CounterData

from . import names
from .config import GfrState, gfr_store

TOLERANCE = 0.97
"""A rate measured over a second or so is this near at least when the VC gets its MCR: the meters' granularity and one burst."""
CELL_OVERHEAD = 53 / 48
"""Of a line with cells, at least; MCR is bits on the line, counted frames are not."""

COLUMNS = (
    Column("scheme", "scheme"),
    Column("queues", "queues", doc="wrr: a queue for each VC; fifo: one", wide=True),
    Column("waiting_cells", "QT", "cells", "Cells that wait at the port (QT).", register=names.REGISTER_PORT_CELLS, plot="queue", metric="fairlane_queue_cells"),
    Column("lbo_cells", "LBO", "cells", "low buffer occupancy", plot="control"),
    Column("hbo_cells", "HBO", "cells", "high buffer occupancy", plot="control"),
    Column("capacity_cells", "QMAX", "cells", "Cells that may wait at the port (QMAX).", plot="capacity", metric="fairlane_queue_capacity_cells"),
    Column("active_vcs", "N", doc="active VCs", value_type=int),
)  # fmt: skip
MEASURED = (BW, TAU)
MEASURING_NEEDS = "BW needs frames that wait at the port, τ a switch of ours at the other end"
VC = Kind(
    "vc",
    "VCs (rates in bits on the line)",
    (
        Column("active", "active", doc="1 when the loop counts the VC among the active ones.", value_type=bool),
        Column("waiting_cells", "Q_i", "cells", "Cells of the VC that wait (Q_i).", plot="queue"),
        Column("mcr_bps", "MCR", "bit/s", "MCR, bits on the line."),
        Column("w_bps", "w_i", "bit/s", "w_i, bits on the line.", plot="control", metric="fairlane_vc_share_bits_per_second"),
        Column("rate_bps", "r_i", "bit/s", "r_i as the data plane has it, bits on the line.", plot="control"),
        Column("mcr_met", "MCR met", doc="yes, no (the part it gets), asks less, idle"),
        Column("goodput_bps", "goodput", "bit/s", "Frames accepted since the scrape before.", plot="goodput"),
        Column("accepted_packets", "accepted", "packets", total=True, metric=None),
        Column("refused_packets", "refused", "packets", "Frames refused, by any verdict.", total=True, metric="fairlane_vc_refused_frames_total"),
        Column("drops_per_s", "drops/s", "/s", plot="drops", metric=None),
        Column("slot", "slot", value_type=int, wide=True),
        Column("arrived_packets", "arrived", "packets", total=True, wide=True),
        Column("offered_bps", "offered", "bit/s", wide=True),
        Column("verdicts", "verdicts", doc='{"case_3": {"clp0", "clp1"}}: frames by verdict and CLP', wide=True),
    ),
)  # fmt: skip
KINDS = (VC,)
PARAMETERS = {"lbo_cells": "lbo", "hbo_cells": "hbo", "capacity_cells": "qmax", "active_vcs": "n"}
"""Columns of a port that are parameters of its scheme's action."""


async def read_rows(reading: Reading) -> list[Row]:
    """Managed ports and their VCs."""
    of_ports, shares = await asyncio.gather(
        reading.table(names.TABLE_PORT_SCHEME), reading.table(names.TABLE_VC_SHARE, counters=True)
    )
    schemes = {int(entry["egress_port"]): entry for entry in of_ports}
    vcs = sorted(((int(names.args_of(entry)["slot"]), entry) for entry in shares), key=itemgetter(0))
    slots = [slot for slot, _ in vcs]
    counted, cells, rates, passed, admitted = await asyncio.gather(
        reading.counters(
            names.COUNTER_VERDICTS, [names.verdict_index(*cell) for cell in product(slots, (0, 1), names.Verdict)]
        ),
        reading.registers(names.REGISTER_VC_CELLS, slots),
        reading.registers(names.REGISTER_VC_RATE, slots),
        reading.counters(COUNTER_PASSED, schemes),
        reading.counters(COUNTER_ADMITTED, schemes),
    )
    if "store" not in reading.memory:
        reading.memory["store"] = gfr_store(reading.folder)
    state: GfrState = reading.memory["store"].get()
    by_id = {number: name for name, number in state.numbers.get("", {}).items()}
    mcr = {vc.name: float(vc.mcr) for vc in state.vcs}
    active = {one["port"]: one["active"] for one in (reading.loop or {}).get("ports", ())}
    rows: list[Row] = []
    for slot, entry in vcs:
        port, vc = int(entry["egress_port"]), by_id.get(entry["vc"], f"id {entry['vc']}")
        arrived, verdicts = entry.counter_data or P4CounterData(), dict[str, dict[str, int]]()
        accepted_packets = accepted_bytes = refused_packets = 0
        for clp, verdict in product((0, 1), names.Verdict):
            cell = counted[names.verdict_index(slot, clp, verdict)]
            if cell.packet_count:
                verdicts.setdefault(verdict.name.lower(), {})[f"clp{clp}"] = cell.packet_count
            if verdict.accepted:
                accepted_packets, accepted_bytes = (
                    accepted_packets + cell.packet_count,
                    accepted_bytes + cell.byte_count,
                )
            else:
                refused_packets += cell.packet_count
        values = {
            "slot": slot,
            "mcr_bps": mcr.get(vc),
            "w_bps": float(names.args_of(entry)["w"]),
            "rate_bps": rates[slot] / names.RATE_ONE if rates is not None else None,
            "waiting_cells": cells[slot] if cells is not None else None,
            "active": vc in active[port] if port in active else None,
            "arrived_packets": arrived.packet_count,
            "accepted_packets": accepted_packets,
            "refused_packets": refused_packets,
            "offered_bps": reading.per_s(("vc", slot, "arrived"), 8 * arrived.byte_count),
            "goodput_bps": reading.per_s(("vc", slot, "accepted"), 8 * accepted_bytes),
            "drops_per_s": reading.per_s(("vc", slot, "refused"), refused_packets),
            "verdicts": verdicts,
        }
        rows.append(Row(port, values | {"mcr_met": mcr_met(values)}, "vc", vc))
    for port, entry in sorted(schemes.items()):
        args, sent = names.args_of(entry), (passed[port], admitted[port])
        values = {
            **{name: args.get(parameter) for name, parameter in PARAMETERS.items()},
            "scheme": entry.action.name if isinstance(entry.action, P4TableAction) else None,
            "queues": "wrr" if args.get("per_vc_queue") else "fifo",
            "sent_packets": sum(cell.packet_count for cell in sent),
            "sent_bytes": sum(cell.byte_count for cell in sent),
        }
        rows.append(Row(port, values))
    return rows


def mcr_met(vc: Mapping[str, Any]) -> str | None:
    """Whether a VC gets its minimum rate.

    Returns:
        `yes`, `no (80%)` (frames were refused below MCR), `asks less` (it sends less, and nothing was refused), `idle` (nothing
        arrives); None where no rate is known.
    """
    mcr_bps, offered_bps, goodput_bps = vc["mcr_bps"], vc["offered_bps"], vc["goodput_bps"]
    # In bits on the line: r_i of the data plane, else what was accepted with the cells' headers (a little low).
    rate_bps = vc["rate_bps"] or (None if goodput_bps is None else goodput_bps * CELL_OVERHEAD)
    if rate_bps is None or mcr_bps is None or offered_bps is None:
        return None
    if offered_bps <= 0:
        return "idle"
    if rate_bps >= TOLERANCE * mcr_bps:
        return "yes"
    return f"no ({rate_bps / mcr_bps:.0%})" if vc["drops_per_s"] else "asks less"
