# SPDX-License-Identifier: Apache-2.0
"""What happens to the links of a run: the scenario's changes beside those of its topology. Pure; both runners play the same."""

from __future__ import annotations

from dataclasses import asdict

from pydantic import ValidationError

from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Change, Scenario
from fairlane_lab.topology_scripts import LinkChange, fl_changes, fl_topology


def changes_of(scenario: Scenario, topology: fl_topology.Topology) -> list[tuple[float, LinkChange]]:
    """(s after zero, change) of everything that happens before the end, in order of time. Raises RunError for a bad change."""
    changes = [*topology.changes, *(_link_change(change, topology) for change in scenario.changes)]
    for index, key, message in fl_changes.change_problems(changes, topology.links):
        raise RunError(f"the change at {changes[index].at_s:g} s of {changes[index].link}: {key}: {message}")
    return list(fl_changes.schedule(changes, scenario.duration_s))


def _link_change(change: Change, topology: fl_topology.Topology) -> LinkChange:
    names = [link.name for link in topology.links]
    if change.link not in names:
        raise RunError(f"the change at {change.at_s:g} s names no link {change.link!r}; there are {', '.join(names)}")
    try:
        return LinkChange.model_validate({name: value for name, value in asdict(change).items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise RunError(f"the change at {change.at_s:g} s of {change.link}: {place}: {first['msg']}") from None
