# SPDX-License-Identifier: Apache-2.0
"""About how long a run takes, before it is run: in its own time, and as work of the simulator. Pure functions; no result depends on them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

from fairlane_hosts.variants import VARIANTS
from fairlane_topology import topology as fl_topology
from fairlane_topology.topology import managed_ports

from fairlane_lab.definition.topology import checked_topology
from fairlane_lab.satellite import ceiling_bps, offered_window_bytes, overhead_bytes, path_of
from fairlane_lab.scenario import FRAME_OVERHEAD_BYTES, Flow, Scenario, tcp_of

TYPICAL_FILE_BPS = 1_000_000
"""Where a file's path is not known."""
KERNEL_COST_PER_S = 13_000
"""The same with real hosts, whose kernel has to work as well."""
SIM_COST_PER_S = 250_000
"""What one core simulates in a second of wall time, in units of `cost` (packets of the bottleneck)."""
MININET_RUN_S = 4.0
"""What a real run costs beside its duration."""


def expected_s(scenario: Scenario) -> float:
    """About how long a run lasts in its own time: `duration_s`, or until its files are likely to be done where these end it."""
    if not scenario.ends_with_its_files:
        return scenario.duration_s
    flows = [flow for flow in scenario.flows if flow.app.kind == "bytes"]
    return min(scenario.duration_s, max(_files_s(scenario, flow, len(flows)) for flow in flows))


def cost(scenario: Scenario) -> float:
    """About how much work a simulation is: packets of its busiest managed link, and a little for each second."""
    seconds = expected_s(scenario)
    packets = seconds * _line_bps(scenario) / (8 * (scenario.tcp.mss_bytes + FRAME_OVERHEAD_BYTES))
    if scenario.ends_with_its_files and all(flow.app.kind == "bytes" for flow in scenario.flows):
        files = sum(flow.app.bytes * flow.app.times * flow.connections for flow in scenario.flows)
        packets = min(packets, files / scenario.tcp.mss_bytes)
    return packets + 20 * seconds


def sort_by_repeat_and_cost(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """An order in which an interrupted campaign has something of every point, and several workers end at about the same time."""
    return sorted(scenarios, key=lambda scenario: (scenario.repeat, -cost(scenario)))


def sim_s(scenario: Scenario) -> float:
    """Seconds of wall time in sim, on one core."""
    return cost(scenario) / SIM_COST_PER_S


def kernel_s(scenario: Scenario) -> float:
    """Seconds of wall time with real hosts in virtual time, on one core."""
    return cost(scenario) / KERNEL_COST_PER_S


def mininet_s(scenario: Scenario) -> float:
    """Seconds of wall time in Mininet, in a network that runs already."""
    return expected_s(scenario) + MININET_RUN_S


def _files_s(scenario: Scenario, flow: Flow, sharing: int) -> float:
    """When a flow's last file is likely to be there, of `sharing` flows with files: asked for in time, or as the line lets them."""
    app, tcp = flow.app, tcp_of(scenario, flow)
    sharing *= flow.connections
    topology = _topology(scenario)
    path = path_of(topology, scenario, flow)
    if path is None:
        one_s = 8 * app.bytes * sharing / TYPICAL_FILE_BPS
        return flow.start_s + max((app.times - 1) * app.interval_s + one_s, app.times * one_s)
    loss = max(max(link.a_to_b.loss, link.b_to_a.loss) for link in topology.links)
    lost = 1 - (1 - path.segment_error(tcp.mss_bytes, overhead_bytes(tcp))) * (1 - loss)
    path = replace(path, rate_bps=path.rate_bps / sharing, rtt_s=path.rtt_s + tcp.read_interval_s)
    window_bytes = offered_window_bytes(tcp, flow)
    variant = VARIANTS.get(flow.variant)
    if lost and not (variant and variant.receiver_programs and tcp.receiver_program):
        window_bytes = min(window_bytes, tcp.mss_bytes * math.sqrt(1.5 / lost))  # Mathis et al. 1997, eq. (3)
    rate_bps = ceiling_bps(
        app.bytes, path, tcp.mss_bytes, window_bytes, tcp.initial_window_packets, overhead_bytes(tcp)
    )
    line_s = 8 * app.bytes * app.times / path.rate_bps
    return flow.start_s + path.rtt_s + max((app.times - 1) * app.interval_s + 8 * app.bytes / rate_bps, line_s)


def _line_bps(scenario: Scenario) -> float:
    """Rate of the fastest managed port."""
    rates = [port.rate_bps or 0 for port in managed_ports(_topology(scenario)).values()]
    return max(rates, default=0) or TYPICAL_FILE_BPS


def _topology(scenario: Scenario) -> fl_topology.Topology:
    return checked_topology(json.dumps(scenario.topology))
