# SPDX-License-Identifier: Apache-2.0
"""What `fairlane gfr show` asks a switch for: QT of its ports; share, occupancy, rate and verdicts of each VC; as plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from finsy import P4CounterData, P4TableAction, P4TableEntry

from fairlane_controller.program.registry import check_program
from fairlane_controller.programs.gfr import names as program
from fairlane_controller.programs.gfr.allocation import Allocation
from fairlane_controller.programs.gfr.paths import Place
from fairlane_controller.state.ask import ask
from fairlane_controller.switch.client import SwitchClient

Row = dict[str, Any]
_CELLS = program.VERDICTS_A_SLOT


async def read_ports(
    client: SwitchClient, allocation: Allocation, config_names: dict[tuple[str, int, str], Row]
) -> list[Row]:
    """One row a managed port with its VCs under `vcs`. What the target's registers would say is None where it reads none.

    `config_names` adds to a VC's row what the configuration says of it, by (switch, port, VC).
    """
    check_program("gfr", client.table_names())
    name = client.endpoint.name
    schemes = {int(e["egress_port"]): e for e in await client.read_table(program.TABLE_PORT_SCHEME)}
    shares = await client.read_table(program.TABLE_VC_SHARE, counters=True)
    slots = sorted(
        {slot for slot in map(_slot, shares) if slot is not None} | {program.NO_VC_SLOT + p for p in schemes}
    )
    qt = await client.read_registers(program.REGISTER_PORT_CELLS, schemes) if schemes else {}
    cells = await client.read_registers(program.REGISTER_VC_CELLS, slots) if slots else {}
    rates = await client.read_registers(program.REGISTER_VC_RATE, slots) if slots else {}
    counted = await client.read_counters(
        program.COUNTER_VERDICTS, (s * _CELLS + i for s in slots for i in range(_CELLS))
    )
    vcs = {number: vc for vc, number in allocation.vc_ids.items()}
    rows: list[Row] = []
    for port, entry in sorted(schemes.items()):
        action = entry.action
        arguments = dict(action.args) if isinstance(action, P4TableAction) else {}
        row: Row = {
            "switch": name,
            "port": port,
            "scheme": action.name if isinstance(action, P4TableAction) else None,
            "queues": "wrr" if arguments.get("per_vc_queue") else "fifo",
            "lbo_cells": arguments.get("lbo"),
            "hbo_cells": arguments.get("hbo"),
            "qmax_cells": arguments.get("qmax"),
            "n": arguments.get("n"),
            "qt_cells": None if qt is None else qt.get(port, 0),
            "vcs": [],
        }
        for share in sorted(shares, key=lambda entry: _slot(entry) or 0):
            if int(share["egress_port"]) == port and _slot(share) is not None:
                vc = vcs.get(int(share["vc"]), f"id {share['vc']}")
                said = config_names.get((name, port, vc), {})
                row["vcs"].append(
                    {"vc": vc, **said, **_share(share), **_vc_counters(_slot(share) or 0, cells, rates, counted)}
                )
        row["no_vc"] = _vc_counters(program.NO_VC_SLOT + port, cells, rates, counted)
        rows.append(row)
    return rows


def _slot(entry: P4TableEntry) -> int | None:
    action = entry.action
    if not isinstance(action, P4TableAction) or action.name != program.ACTION_SET_SHARE:
        return None
    return int(action.args["slot"])


def _share(entry: P4TableEntry) -> Row:
    action = entry.action
    assert isinstance(action, P4TableAction)
    counted = entry.counter_data
    return {
        "slot": int(action.args["slot"]),
        "queue": int(action.args["queue"]),
        "w_bps": int(action.args["w"]),
        "arrived_frames": counted.packet_count if counted else 0,
        "arrived_bytes": counted.byte_count if counted else 0,
    }


def _vc_counters(
    slot: int, cells: dict[int, int] | None, rates: dict[int, int] | None, counted: dict[int, P4CounterData]
) -> Row:
    verdicts: dict[str, dict[str, int]] = {}
    accepted = refused = 0
    for clp in (0, 1):
        for verdict in program.Verdict:
            got = counted.get(program.verdict_index(slot, clp, verdict))
            if got is None or not got.packet_count:
                continue
            verdicts.setdefault(verdict.name.lower(), {})[f"clp{clp}"] = got.packet_count
            if verdict.accepted:
                accepted += got.packet_count
            else:
                refused += got.packet_count
    return {
        "q_cells": None if cells is None else cells.get(slot, 0),
        "r_bps": None if rates is None else rates.get(slot, 0) / program.RATE_ONE,
        "accepted_frames": accepted,
        "refused_frames": refused,
        "verdicts": verdicts,
    }


async def read_active(loop_folder: Path | None) -> dict[Place, list[str]] | None:
    """Names of the active VCs of each managed port, as a running loop holds them; None without one: all of them are."""
    if loop_folder is None:
        return None
    status = await ask(loop_folder, {"op": "status"})
    return {(agent["switch"], port["port"]): port["active"] for agent in status for port in agent["ports"]}
