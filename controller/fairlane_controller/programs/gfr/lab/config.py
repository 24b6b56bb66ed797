# SPDX-License-Identifier: Apache-2.0
"""A scenario as the controller's configuration of GFR (`gfr.toml` of docs/concepts/gfr.md), by the routes of its topology. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fairlane.text import describe
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario, Vc, flows_of
from fairlane_topology import topology as fl_topology
from fairlane_topology.topology import PortKey, managed_ports
from pydantic import Field, ValidationError

from ..config import GfrState, Scheme, SchemeSettings
from ..names import RATE_PERIOD_MAX_US, RATE_PERIOD_MIN_US


class Control(SchemeSettings):
    """`[control]`: what it does at every managed port; symbols are the GFR paper's. A file that compares schemes may give the keys of all."""

    scheme: Scheme = "drop_tail"
    probes: bool = False
    """Measure the lines' rates, and by probes τ of the links; off in the paper's experiments."""
    scheduler: Literal["fifo", "wrr"] = "wrr"
    """`wrr`: a queue for each VC, weighted by w_i; `fifo`: one queue."""
    wrr_weights: Literal["w", "mcr"] = "w"
    """`pervc_threshold`: the queues' weights, w_i of (3) or MCR_i; fair shares are those of (3) with both."""
    rate_period_us: Annotated[int, Field(ge=RATE_PERIOD_MIN_US, le=RATE_PERIOD_MAX_US)] = RATE_PERIOD_MIN_US
    """The paper's T, at least: 64 is the time between arrivals, more a period; `rate_form = "alpha"` only."""


def way(topology: fl_topology.Topology, sender: str, receiver: str) -> list[PortKey]:
    """One host's way to another: the switch port where it enters, then each egress port. Raises RunError when there is none."""
    ((_, here),) = topology.neighbours(sender)
    ports = [(here, next(port for port, other in topology.neighbours(here) if other == sender))]
    while here in topology.switches:
        port = topology.next_port(here, receiver)
        if port is None or len(ports) > len(topology.switches) + 1:
            raise RunError(f"there is no way from {sender} to {receiver}: switch {here} has no route")
        ports.append((here, port))
        here = dict(topology.neighbours(here))[port]
    return ports


def gfr_config(scenario: Scenario, topology: fl_topology.Topology) -> GfrState:
    """Every managed port that a VC crosses has the scenario's scheme; a VC is what its hosts send, policed where it enters.

    Raises:
        RunError: What the controller's own schema refuses, a VC that no managed port limits; the checks of the whole are `make_plan`'s.
    """
    options: Control = scenario.control.settings or Control()
    common = {
        **options.model_dump(exclude={"probes", "scheduler", "wrr_weights", "rate_period_us"}),
        "scheme": scenario.control.scheme,
        "queues": options.scheduler,
        "rate_period": f"{options.rate_period_us}us",
    }
    vcs = [_vc(scenario, topology, vc) for vc in scenario.vcs]
    crossed = {place for vc in vcs for place in vc["path"]}
    ports = [
        {"switch": switch, "port": port, "capacity": spec.rate_bps or 0, **common}
        for (switch, port), spec in managed_ports(topology).items()
        if f"{switch}:{port}" in crossed
    ]
    if options.wrr_weights == "mcr":
        # What is left is divided as the guarantees are, so that w_i is a multiple of MCR_i.
        total_bps = sum(vc.mcr_bps for vc in scenario.vcs)
        vcs = [{**vc, "weight": vc["mcr"] / total_bps} for vc in vcs]
    try:
        return GfrState.model_validate({"ports": ports, "vcs": vcs})
    except ValidationError as ex:
        raise RunError("; ".join(describe(ex, GfrState))) from None


def _vc(scenario: Scenario, topology: fl_topology.Topology, vc: Vc) -> dict[str, Any]:
    flows, managed = flows_of(scenario, vc), managed_ports(topology)
    ways = [way(topology, flow.sender, flow.receiver) for flow in flows]
    crossed = dict.fromkeys(port for each in ways for port in each[1:])
    path = [f"{switch}:{port}" for switch, port in crossed if (switch, port) in managed]
    if not path:
        raise RunError(f"{vc.name} crosses no managed port: nothing would limit it")
    senders = dict.fromkeys(flow.sender for flow in flows)
    addresses = [address for host in senders for address in topology.addresses(host)]
    switches = dict.fromkeys(switch for switch, _ in crossed)
    return {
        "name": vc.name,
        "mcr": vc.mcr_bps,
        "pcr": vc.pcr_bps or None,
        "mbs_cells": vc.mbs_cells,
        "mfs_bytes": vc.mfs_bytes,
        "match": [{"switch": switch, "src": str(address)} for switch in switches for address in addresses],
        "edge": [f"{switch}:{port}" for switch, port in dict.fromkeys(each[0] for each in ways)],
        "path": path,
    }
