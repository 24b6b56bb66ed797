# SPDX-License-Identifier: Apache-2.0
"""A scenario's topology as every runtime reads it, and what happens to its links: its changes beside those of its topology. Pure."""

from __future__ import annotations

from fairlane_topology import changes as fl_changes
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import LinkChange

from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario


def checked_topology(scenario: Scenario) -> fl_topology.Topology:
    """The topology of a scenario. Raises RunError for one that what was drawn has broken; all else the definition has checked."""
    try:
        return fl_topology.check(dict(scenario.topology))
    except fl_topology.TopologyError as problem:
        raise RunError(str(problem)) from None


def changes_of(scenario: Scenario, topology: fl_topology.Topology) -> list[tuple[float, LinkChange]]:
    """(s after zero, change) of everything that happens before the end, in order of time."""
    return list(fl_changes.schedule([*topology.changes, *scenario.changes], scenario.duration_s))
