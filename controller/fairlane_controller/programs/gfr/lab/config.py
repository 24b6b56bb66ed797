# SPDX-License-Identifier: Apache-2.0
"""A scenario as the controller's configuration of GFR (`gfr.toml` of docs/concepts/gfr.md). Pure."""

from __future__ import annotations

import ipaddress
from typing import Any

from fairlane import FairlaneError
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario, Vc, flows_of
from fairlane_lab.topology_scripts import PortKey, fl_topology, managed_ports

from ..config import GfrConfig, parse_config
from . import Control
from .ways import gfr_ports, senders_of, way


def gfr_config(scenario: Scenario, topology: fl_topology.Topology) -> GfrConfig:
    """Every managed port that a VC crosses has the scenario's scheme; a VC is what its hosts send, policed where it enters.

    Raises RunError with what the controller's own schema refuses; its checks of the whole are `make_plan`'s.
    """
    options: Control = scenario.control.settings or Control()
    ports = gfr_ports(scenario, topology)
    managed = set(managed_ports(topology))
    document: dict[str, Any] = {
        "ports": [
            {
                "switch": switch,
                "port": number,
                "capacity": port.capacity_bps,
                "queues": options.scheduler,
                "rate_period": f"{options.rate_period_us}us",
                **options.model_dump(exclude={"scheduler", "wrr_weights", "probes", "rate_period_us"}),
                "scheme": scenario.control.scheme,
            }
            for (switch, number), port in ports.items()
        ],
        "vcs": [_vc(scenario, topology, vc, managed) for vc in scenario.vcs],
    }
    if options.wrr_weights == "mcr":
        # What is left is divided as the guarantees are, so that w_i is a multiple of MCR_i.
        total_bps = sum(vc.mcr_bps for vc in scenario.vcs)
        for given, vc in zip(document["vcs"], scenario.vcs, strict=True):
            given["weight"] = vc.mcr_bps / total_bps
    try:
        return parse_config(document, scenario.point)
    except FairlaneError as problem:
        raise RunError(problem.message) from None


def _vc(scenario: Scenario, topology: fl_topology.Topology, vc: Vc, managed: set[PortKey]) -> dict[str, Any]:
    ways = [way(topology, flow.sender, flow.receiver) for flow in flows_of(scenario, vc)]
    crossed = dict.fromkeys(port for each in ways for port in each.out)
    switches = dict.fromkeys(switch for switch, _ in crossed)
    sources = [str(ipaddress.ip_interface(topology.hosts[host].ip).ip) for host in senders_of(scenario, vc)]
    document: dict[str, Any] = {
        "name": vc.name,
        "mcr": vc.mcr_bps,
        "mbs_cells": vc.mbs_cells,
        "mfs_bytes": vc.mfs_bytes,
        "match": [{"switch": switch, "src": f"{source}/32"} for switch in switches for source in sources],
        "edge": [{"switch": s, "ingress_port": p} for s, p in dict.fromkeys(each.ingress for each in ways)],
        "path": [{"switch": switch, "port": port} for switch, port in crossed if (switch, port) in managed],
    }
    return document | ({"pcr": vc.pcr_bps} if vc.pcr_bps else {})
