# SPDX-License-Identifier: Apache-2.0
"""What the read commands ask the switches for: plain data, the same that `--json` prints."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fairlane_controller.cli.targets import Targets
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.loop_state import LoopState, read_loop_state
from fairlane_controller.programs.qthresh.policies import Scheme, read_limits, read_policies, why_no_lanes
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.client import Endpoint, SwitchClient

Row = dict[str, Any]


async def read_thresholds(targets: Targets) -> list[Row]:
    """One row a managed (port, class)."""
    state = read_loop_state(targets.folder) if targets.folder else LoopState()
    states = {} if targets.run is None else {one.name: one for one in targets.run.switches}
    read = (_thresholds(e, state, states.get(e.name), targets.folder is not None) for e in targets.endpoints)
    lists = await asyncio.gather(*read)
    return [row for rows in lists for row in rows]


async def _thresholds(endpoint: Endpoint, state: LoopState, switch: SwitchState | None, remembered: bool) -> list[Row]:
    async with SwitchClient(endpoint) as client:
        limits, policies = await read_limits(client), await read_policies(client)
    rows: list[Row] = []
    for port, limit in sorted(limits.items()):
        mine = [p for key, p in sorted(policies.items()) if key[0] == port]
        for policy in mine:
            settings = state.policy(endpoint.name, port, policy.traffic_class)
            packets = policy.qthresh_packets
            qthresh = policy.is_limited
            of_lanes = policy.scheme is Scheme.LANES
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
                    "lanes": policy.lanes.own if of_lanes else None,
                    "why_no_lanes": why_no_lanes(switch.port(port) if switch else None) if of_lanes and not policy.lanes.own else None,
                }
            )  # fmt: skip
    return rows


async def explain_flows(targets: Targets, switches: Sequence[str], port: int) -> list[Row]:
    """Why each flow of a port has what it has, as the running loop says; nothing without a loop."""
    folder = targets.loop_folder
    if folder is None:
        return []
    asked = ({"op": "explain", "switch": switch, "port": port} for switch in dict.fromkeys(switches))
    answers = await asyncio.gather(*(ask(folder, one) for one in asked))
    return [row for rows in answers for row in rows]
