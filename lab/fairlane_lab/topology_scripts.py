# SPDX-License-Identifier: Apache-2.0
"""The scripts of `mininet/` that describe topologies and their links: they need no Mininet (`testbed/scripts.py` has those that do)."""

from __future__ import annotations

import sys

from fairlane_lab.paths import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "mininet"))  # a folder of scripts, never a package: it would shadow Mininet

import fl_changes
import fl_state
import fl_topology
from fl_link_spec import (
    NO_TRACE,
    TRACE_FOLDER,
    DelayMs,
    Direction,
    ErrorsIn,
    Leave,
    LinkChange,
    PresetName,
    QueuePackets,
    Rate,
    Share,
)

FOLDER = REPOSITORY / "mininet"

PortKey = tuple[str, int]
"""(switch, port)."""


def managed_ports(topology: fl_topology.Topology) -> dict[PortKey, fl_topology.PortSpec]:
    """The ports that the control plane manages: those marked as bottlenecks, else every port with a rate."""
    ports = {(name, number): spec for name, ports in topology.ports.items() for number, spec in ports.items()}
    marked = {key: spec for key, spec in ports.items() if spec.bottleneck}
    return marked or {key: spec for key, spec in ports.items() if spec.rate_bps}


__all__ = [
    "FOLDER",
    "NO_TRACE",
    "TRACE_FOLDER",
    "DelayMs",
    "Direction",
    "ErrorsIn",
    "Leave",
    "LinkChange",
    "PortKey",
    "PresetName",
    "QueuePackets",
    "Rate",
    "Share",
    "fl_changes",
    "fl_state",
    "fl_topology",
    "managed_ports",
]
