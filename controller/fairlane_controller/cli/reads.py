# SPDX-License-Identifier: Apache-2.0
"""What the read commands ask the switches for: plain data, the same that `--json` prints."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fairlane_controller.cli.targets import Targets
from fairlane_controller.ena.apply import far_side_ports
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.control import ask, ask_backup
from fairlane_controller.loop.flow_keeper import flow_of
from fairlane_controller.loop.flows import PROTOCOLS
from fairlane_controller.state.loop_state import LoopState, read_loop_state
from fairlane_controller.switch import ena_program, gfr_program, program
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.policies import Scheme, read_limits, read_policies

Row = dict[str, Any]


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
    if targets.folder:
        backup = await ask_backup(targets.folder)
        try:
            loop = await ask(targets.folder, {"op": "status"})
        except FairlaneError as ex:
            if ex.code is not ErrorCode.NO_LOOP:
                raise
    switches = await asyncio.gather(*(_status(e) for e in targets.endpoints))
    return {
        "topology": targets.run.name if targets.run else None,
        "target": targets.run.target if targets.run else None,
        "loop_running": loop is not None,
        "loop": loop,
        "backup": backup,
        "switches": list(switches),
    }


async def _status(endpoint: Endpoint) -> Row:
    base: Row = {"switch": endpoint.name, "grpc": endpoint.grpc, "device_id": endpoint.device_id}
    try:
        async with SwitchClient(endpoint, timeout_s=2.0) as client:
            if not client.has_pipeline:
                return {**base, "reachable": True, "program": None, "ports": []}
            names = set(client.table_names())
            if gfr_program.check_tables(names) is None:
                schemes = await client.read_table(gfr_program.TABLE_PORT_SCHEME)
                managed = sorted(int(entry["egress_port"]) for entry in schemes)
                return {**base, "reachable": True, "program": client.program, "ports": [], "gfr_ports": managed}
            if ena_program.check_tables(names) is None:
                far = await far_side_ports(client)
                return {**base, "reachable": True, "program": client.program, "ports": [], "ena_ports": far}
            wrong = program.check_tables(names)
            if wrong:
                return {**base, "reachable": True, "program": client.program, "ports": [], "error": wrong.to_json()}
            return {**base, "reachable": True, "program": client.program, "ports": await _ports(client)}
    except FairlaneError as ex:
        unreachable = ex.code is ErrorCode.SWITCH_UNREACHABLE
        return {**base, "reachable": not unreachable, "program": None, "ports": [], "error": ex.to_json()}


async def _ports(client: SwitchClient) -> list[Row]:
    limits, policies = await read_limits(client), await read_policies(client)
    ports = sorted(limits)
    admitted = await client.read_counters(
        program.COUNTER_ADMITTED, [program.admitted_index(p, c) for p in ports for c in range(program.CLASSES)]
    )
    reasons = (program.DropReason.QTHRESH, program.DropReason.PORT_FULL)
    drops = await client.read_counters(
        program.COUNTER_DROPS, [program.drops_index(p, r) for p in ports for r in reasons]
    )
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
            "admitted_packets": sum(c.packet_count for c in cells if c),
            "admitted_bytes": sum(c.byte_count for c in cells if c),
            "drops": {},
            "collisions": hit.packet_count if hit else 0,
        }
        for reason in reasons:
            cell = drops.get(program.drops_index(port, reason))
            row["drops"][reason.name.lower()] = cell.packet_count if cell else 0
        rows.append(row)
    return rows


async def read_flows(targets: Targets, interval_s: float) -> list[Row]:
    """One row a flow entry; with `interval_s` the rate of arrival between two reads that far apart."""
    lists = await asyncio.gather(*(_flows(e, interval_s) for e in targets.endpoints))
    return [row for rows in lists for row in rows]


async def _flows(endpoint: Endpoint, interval_s: float) -> list[Row]:
    async with SwitchClient(endpoint) as client:
        before: dict[tuple[str, int], int] = {}
        started = time.monotonic()
        if interval_s > 0:
            before = {(row["flow"], row["slot"]): row["bytes"] for row in await _flow_rows(client)}
            await asyncio.sleep(interval_s)
        elapsed_s = time.monotonic() - started
        rows = await _flow_rows(client)
    for row in rows:
        first = before.get((row["flow"], row["slot"]))
        row["rate_bps"] = None if first is None else 8 * (row["bytes"] - first) / elapsed_s
        row["switch"] = endpoint.name
    return rows


async def _flow_rows(client: SwitchClient) -> list[Row]:
    rows: list[Row] = []
    for table in program.TABLE_FLOW.values():
        for entry in await client.read_table(table, counters=True, idle=True):
            key, slot = flow_of(entry)
            counted = entry.counter_data
            rows.append(
                {
                    "flow": str(key),
                    "slot": slot,
                    "protocol": PROTOCOLS.get(key.protocol, str(key.protocol)),
                    "src": str(key.src),
                    "src_port": key.src_port,
                    "dst": str(key.dst),
                    "dst_port": key.dst_port,
                    "packets": counted.packet_count if counted else 0,
                    "bytes": counted.byte_count if counted else 0,
                    "idle_s": None if entry.time_since_last_hit is None else entry.time_since_last_hit / 1e9,
                }
            )
    drops = await client.read_counters(program.COUNTER_FLOW_DROPS, [row["slot"] for row in rows])
    for row in rows:
        cell = drops.get(row["slot"])
        row["dropped_packets"] = cell.packet_count if cell else 0
    return sorted(rows, key=lambda row: row["slot"])
