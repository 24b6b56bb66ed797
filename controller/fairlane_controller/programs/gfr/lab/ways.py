# SPDX-License-Identifier: Apache-2.0
"""Which managed ports each VC crosses, and where it enters: read from a topology. Nothing is started."""

from __future__ import annotations

from dataclasses import dataclass

from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario, Vc, flows_of
from fairlane_lab.topology_scripts import PortKey, fl_topology, managed_ports

from .ideal import GfrPort


@dataclass(frozen=True)
class Way:
    """One host's way to another."""

    ingress: PortKey
    """The switch and port where it enters."""
    out: tuple[PortKey, ...]
    """The (switch, egress port) that it crosses, in order."""


def way(topology: fl_topology.Topology, sender: str, receiver: str) -> Way:
    """Follows the routes that the switches get. Raises RunError when there is none."""
    node, ingress = _entry(topology, sender)
    here, out = node, list[PortKey]()
    while here in topology.switches:
        port = topology.next_port(here, receiver)
        if port is None or len(out) > len(topology.switches):
            raise RunError(f"there is no way from {sender} to {receiver}: switch {here} has no route")
        out.append((here, port))
        here = dict(topology.neighbours(here))[port]
    return Way((node, ingress), tuple(out))


def senders_of(scenario: Scenario, vc: Vc) -> list[str]:
    """The hosts whose frames are the VC's, in the order of its flows."""
    return list(dict.fromkeys(flow.sender for flow in flows_of(scenario, vc)))


def gfr_ports(scenario: Scenario, topology: fl_topology.Topology) -> dict[PortKey, GfrPort]:
    """The managed ports with the VCs that cross them; ports that none crosses are left out."""
    crossing: dict[PortKey, set[str]] = {}
    for vc in scenario.vcs:
        for flow in flows_of(scenario, vc):
            for port in way(topology, flow.sender, flow.receiver).out:
                crossing.setdefault(port, set()).add(vc.name)
    return {
        key: GfrPort(float(spec.rate_bps or 0), frozenset(crossing[key]))
        for key, spec in managed_ports(topology).items()
        if key in crossing
    }


def _entry(topology: fl_topology.Topology, host: str) -> PortKey:
    """The switch port that a host is plugged into."""
    (node,) = [node for _, node in topology.neighbours(host)]
    number = next(port for port, other in topology.neighbours(node) if other == host)
    return node, number
