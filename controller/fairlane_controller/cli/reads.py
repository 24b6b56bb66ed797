# SPDX-License-Identifier: Apache-2.0
"""What the read commands ask the switches for: plain data, the same that `--json` prints."""

from __future__ import annotations

import asyncio
from typing import Any

from fairlane_controller.cli.targets import Targets
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.live.events import EventTail
from fairlane_controller.live.loop_view import read_loop
from fairlane_controller.loop.control import ask, ask_backup
from fairlane_controller.loop.events import EVENTS_FILE
from fairlane_controller.program.registry import find_program, wrong_program
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.policies import Scheme, read_limits, read_policies
from fairlane_controller.state.loop_state import LoopState, read_loop_state
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.difference import read_entries
from fairlane_controller.switch.shared import COUNTER_ADMITTED, COUNTER_DROPS, drops_index

Row = dict[str, Any]
_NOT_REACHED = (ErrorCode.SWITCH_UNREACHABLE, ErrorCode.TIMED_OUT, ErrorCode.TLS_FAILED, ErrorCode.BAD_FILE)
"""Nothing was asked of the switch: it does not answer, TLS fails, or a file of TLS is none."""


async def read_thresholds(targets: Targets) -> list[Row]:
    """One row a managed (port, class)."""
    state = read_loop_state(targets.folder) if targets.folder else LoopState()
    lists = await asyncio.gather(*(_thresholds(e, state, targets.folder is not None) for e in targets.endpoints))
    return [row for rows in lists for row in rows]


async def _thresholds(endpoint: Endpoint, state: LoopState, remembered: bool) -> list[Row]:
    async with SwitchClient(endpoint) as client:
        limits, policies = await read_limits(client), await read_policies(client)
    rows: list[Row] = []
    for port, limit in sorted(limits.items()):
        mine = [p for key, p in sorted(policies.items()) if key[0] == port]
        for policy in mine:
            settings = state.policy(endpoint.name, port, policy.traffic_class)
            packets = policy.qthresh_packets
            qthresh = policy.scheme is Scheme.QTHRESH and packets is not None
            rows.append(
                {
                    "switch": endpoint.name,
                    "port": port,
                    "class": policy.traffic_class,
                    "scheme": policy.scheme.value,
                    "qthresh_packets": packets,
                    "weight": policy.weight if qthresh else settings.weight,
                    "effective_packets": packets * program.encode_weight(policy.weight) // program.WEIGHT_ONE if qthresh and packets else None,
                    "mode": settings.mode.value if qthresh and remembered else None,
                    "k": settings.k,
                    "capacity_packets": limit.max_packets,
                }
            )  # fmt: skip
    return rows


async def read_status(targets: Targets) -> Row:
    """The loop and every switch; a switch that cannot be reached has an `error` instead of its data."""
    loop: list[Row] | None = None
    backup: Row | None = None
    measured: dict[tuple[str, int], Row] = {}
    last_event: Row | None = None
    state = LoopState()
    folder = targets.folder
    if folder:
        backup = await ask_backup(folder)
        try:
            loop = await ask(folder, {"op": "status"})
        except FairlaneError as ex:
            if ex.code is not ErrorCode.NO_LOOP:
                raise
        measured = (await read_loop(folder)).measured if loop is not None else {}
        last_event = next(iter(EventTail(folder / EVENTS_FILE, first=1).new()), None)
        state = read_loop_state(folder)
    switches = await asyncio.gather(*(_status(e) for e in targets.endpoints))
    for switch in switches:
        for port in switch["ports"]:
            port["measured"] = measured.get((switch["switch"], port["port"]))
            settings = {c: state.policy(switch["switch"], port["port"], int(c)) for c in port["schemes"]}
            tuned = [c for c in settings if folder and port["qthresh_packets"].get(c) is not None]
            port["modes"] = {c: settings[c].mode.value if c in tuned else None for c in settings}
    return {
        "topology": targets.run.name if targets.run else None,
        "target": targets.run.target if targets.run else None,
        "loop_running": loop is not None,
        "loop": loop,
        "backup": backup,
        "last_event": last_event,
        "switches": list(switches),
    }


async def _status(endpoint: Endpoint) -> Row:
    base: Row = {"switch": endpoint.name, "grpc": endpoint.grpc, "device_id": endpoint.device_id, "program_kind": None}
    try:
        async with SwitchClient(endpoint, timeout_s=2.0) as client:
            if not client.has_pipeline:
                return {**base, "reachable": True, "program": None, "ports": []}
            names = set(client.table_names())
            program_here = find_program(names)
            kind = program_here.name if program_here is not None else None
            row: Row = {**base, "reachable": True, "program": client.program, "program_kind": kind, "ports": []}
            if kind == "qthresh":
                return {**row, "ports": await _ports(client)}
            if program_here is None:
                return {**row, "error": wrong_program("qthresh", names).to_json()}
            current = await read_entries(client, program_here.tables)
            return {**row, "program_ports": sorted(program_here.ports_of(endpoint.name, current))}
    except FairlaneError as ex:
        return {**base, "reachable": ex.code not in _NOT_REACHED, "program": None, "ports": [], "error": ex.to_json()}


async def _ports(client: SwitchClient) -> list[Row]:
    limits, policies = await read_limits(client), await read_policies(client)
    ports = sorted(limits)
    admitted = await client.read_counters(
        COUNTER_ADMITTED, [program.admitted_index(p, c) for p in ports for c in range(program.CLASSES)]
    )
    reasons = (program.DropReason.QTHRESH, program.DropReason.PORT_FULL)
    drops = await client.read_counters(COUNTER_DROPS, [drops_index(p, r) for p in ports for r in reasons])
    collisions = await client.read_counters(program.COUNTER_COLLISIONS, ports)
    rows: list[Row] = []
    for port in ports:
        cells = [admitted.get(program.admitted_index(port, c)) for c in range(program.CLASSES)]
        hit = collisions.get(port)
        row: Row = {
            "port": port,
            "capacity_packets": limits[port].max_packets,
            "schemes": {str(c): p.scheme.value for (n, c), p in sorted(policies.items()) if n == port},
            "qthresh_packets": {str(c): p.qthresh_packets for (n, c), p in sorted(policies.items()) if n == port},
            "weights": {
                str(c): p.weight if p.qthresh_packets else None for (n, c), p in sorted(policies.items()) if n == port
            },
            "admitted_packets": sum(c.packet_count for c in cells if c),
            "admitted_bytes": sum(c.byte_count for c in cells if c),
            "drops": {},
            "collisions": hit.packet_count if hit else 0,
        }
        for reason in reasons:
            cell = drops.get(drops_index(port, reason))
            row["drops"][reason.name.lower()] = cell.packet_count if cell else 0
        rows.append(row)
    return rows
