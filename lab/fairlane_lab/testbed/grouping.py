# SPDX-License-Identifier: Apache-2.0
"""Which scenarios share a running network, and which networks run side by side. Pure: everything that can be checked without a network is checked here."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairlane_hosts.errors import HostsError
from fairlane_topology import topology as fl_topology
from fairlane_topology.topology import managed_ports

from fairlane_lab.compiled import find_program
from fairlane_lab.estimates import expected_s
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import FRAME_OVERHEAD_BYTES, Scenario
from fairlane_lab.testbed.plan import make_plan
from fairlane_lab.wishes import wishes

SPLIT_LEAST_S = 40.0
"""A second network for scenarios that take less in all is not worth its start."""


@dataclass
class Job:
    """One scenario to run."""

    scenario: Scenario
    order: int
    attempts: int = 0
    """How often it was run and was void."""


@dataclass
class Group:
    """Scenarios that share a running network."""

    document: dict[str, Any]
    program: str
    seed: int
    """Of the links' chance and of the program's."""
    rate_bps: int
    """Of the managed ports together."""
    frame_bytes: int
    """Of a full segment."""
    jobs: deque[Job] = field(default_factory=deque[Job])


def groups_of(scenarios: Sequence[Scenario], on_error: Callable[[Scenario, RunError], None]) -> list[Group]:
    """All scenarios in groups, in order; one that cannot be run goes to `on_error`, and no further."""
    groups: dict[str, Group] = {}
    for order, scenario in enumerate(scenarios):
        try:
            key, group = _group_of(scenario)
        except (RunError, fl_topology.TopologyError, HostsError) as error:
            on_error(scenario, RunError(f"{scenario.point}: {error}"))
            continue
        groups.setdefault(key, group).jobs.append(Job(scenario, order))
    return list(groups.values())


def _group_of(scenario: Scenario) -> tuple[str, Group]:
    """The group's key and an empty group."""
    document = json.loads(json.dumps(scenario.topology))
    topology = fl_topology.check(document, str(document.get("name") or "topology"))
    make_plan(scenario, dict.fromkeys(topology.hosts, "0.0.0.0"), Path())
    wishes(scenario)
    links = {link.name for link in topology.links}
    for change in scenario.changes:
        if change.link not in links:
            raise RunError(f"there is no link {change.link!r} to change; there are {', '.join(sorted(links))}")
    managed = managed_ports(topology)
    if not managed:
        raise RunError("no port of the topology is a bottleneck or has a rate: there is nothing to measure")
    ways = [way for link in topology.links for way in (link.a_to_b, link.b_to_a)]
    by_chance = any(way.loss or way.ber or way.jitter_us or way.ge_enter for way in ways)
    by_chance = by_chance or any(
        change.loss or change.ber or change.jitter_ms or change.ge_enter or change.preset
        for change in (*scenario.changes, *topology.changes)
    )
    by_chance = by_chance or find_program(scenario.program).by_chance
    seed = scenario.seed % 2**31 if by_chance else 1
    mss = scenario.tcp.mss_bytes
    key = json.dumps([document, scenario.program, seed, mss], sort_keys=True)
    rate_bps = sum(spec.rate_bps or 0 for spec in managed.values())
    return key, Group(document, scenario.program, seed, rate_bps, mss + FRAME_OVERHEAD_BYTES)


def split(groups: Sequence[Group], parallel: int, total_rate_bps: int) -> list[Group]:
    """`groups`, and the one with most to do in several networks alike as long as fewer than `parallel` would run side by side."""
    found = list(groups)
    while len(found) < parallel:
        candidates = [group for group in found if len(group.jobs) > 1 and _longest_s(group) >= SPLIT_LEAST_S]
        if not candidates:
            break
        largest = max(candidates, key=_weight)
        if sum(group.rate_bps for group in found) + largest.rate_bps > total_rate_bps:
            break
        jobs = list(largest.jobs)
        other = replace(largest, jobs=deque(jobs[1::2]))
        largest.jobs = deque(jobs[::2])
        found.insert(found.index(largest) + 1, other)
    return found


def _longest_s(group: Group) -> float:
    """How long the group may take."""
    return sum(job.scenario.duration_s for job in group.jobs)


def _weight(group: Group) -> float:
    """How much a group has to do, seconds."""
    return sum(expected_s(job.scenario) for job in group.jobs)


def next_batch(groups: list[Group], parallel: int, total_rate_bps: int) -> list[Group]:
    """Takes out of `groups` those that run next, side by side: in order, as long as they fit; the first one always."""
    batch = [groups.pop(0)]
    rate_bps = batch[0].rate_bps
    index = 0
    while index < len(groups) and len(batch) < parallel:
        if rate_bps + groups[index].rate_bps <= total_rate_bps:
            rate_bps += groups[index].rate_bps
            batch.append(groups.pop(index))
        else:
            index += 1
    return batch
