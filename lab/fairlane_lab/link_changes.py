# SPDX-License-Identifier: Apache-2.0
"""What every runtime checks of a scenario, and what happens to its links: its changes beside those of its topology. Pure."""

from __future__ import annotations

from fairlane_topology import changes as fl_changes
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import LinkChange

from fairlane_lab.problems import unknown
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario, names_of


def checked_topology(scenario: Scenario) -> fl_topology.Topology:
    """The topology of a scenario that can be run. Raises RunError naming what cannot."""
    if not 0 <= scenario.warmup_s < scenario.duration_s:
        raise RunError(f"warmup_s {scenario.warmup_s:g} must be 0 or more and below duration_s {scenario.duration_s:g}")
    try:
        topology = fl_topology.check(dict(scenario.topology))
    except fl_topology.TopologyError as problem:
        raise RunError(str(problem)) from None
    seen: set[str] = set()
    for flow in scenario.flows:
        for role, host in (("sender", flow.sender), ("receiver", flow.receiver)):
            if host not in topology.hosts:
                raise RunError(f"flow {flow.name}: {role}: {unknown('host', host, topology.hosts)}")
        if flow.sender == flow.receiver:
            raise RunError(f"flow {flow.name}: {flow.sender} would send to itself")
        if flow.connections < 1:
            raise RunError(f"flow {flow.name}: connections must be 1 or more, not {flow.connections}")
        end_s = scenario.duration_s if flow.stop_s is None else flow.stop_s
        if not 0 <= flow.start_s < end_s:
            raise RunError(f"flow {flow.name}: start_s {flow.start_s:g} is not between 0 and its end {end_s:g}")
        if twice := seen.intersection(names_of(flow)):
            raise RunError(f"two flows are called {min(twice)!r}")
        seen.update(names_of(flow))
    return topology


def changes_of(scenario: Scenario, topology: fl_topology.Topology) -> list[tuple[float, LinkChange]]:
    """(s after zero, change) of everything that happens before the end, in order of time. Raises RunError for a bad change."""
    changes = [*topology.changes, *scenario.changes]
    for index, key, message in fl_changes.change_problems(changes, topology.links):
        raise RunError(f"the change at {changes[index].at_s:g} s of {changes[index].link}: {key}: {message}")
    return list(fl_changes.schedule(changes, scenario.duration_s))
