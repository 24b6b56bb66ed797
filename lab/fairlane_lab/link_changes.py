# SPDX-License-Identifier: Apache-2.0
"""What happens to the links of a run: the scenario's changes beside those of its topology. Pure; both runners play the same."""

from __future__ import annotations

from fairlane_topology import changes as fl_changes
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import LinkChange

from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario


def changes_of(scenario: Scenario, topology: fl_topology.Topology) -> list[tuple[float, LinkChange]]:
    """(s after zero, change) of everything that happens before the end, in order of time. Raises RunError for a bad change."""
    changes = [*topology.changes, *scenario.changes]
    for index, key, message in fl_changes.change_problems(changes, topology.links):
        raise RunError(f"the change at {changes[index].at_s:g} s of {changes[index].link}: {key}: {message}")
    return list(fl_changes.schedule(changes, scenario.duration_s))
