# SPDX-License-Identifier: Apache-2.0
"""Which scenarios share a running network, which networks run side by side, and their instance numbers. Everything that can be checked without a
network is checked here.

Two runs at a time must not remove each other's network, so a number is claimed: a lock on a file beside the run states, which ends with its
process, however that ends.
"""

from __future__ import annotations

import json
import re
import socket
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairlane_controller.errors import FairlaneError
from fairlane_controller.state.locks import take_lock
from fairlane_topology import state as fl_state
from fairlane_topology.topology import managed_ports

from fairlane_lab.programs import find_program
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import FRAME_OVERHEAD_BYTES, Scenario, checked_topology
from fairlane_lab.testbed.plan import make_plan
from fairlane_lab.wishes import wishes

SPLIT_LEAST_S = 40.0
"""A second network for scenarios that take less in all is not worth its start."""
_OF_CHANCE = ("loss", "ber", "jitter_us", "jitter_ms", "ge_enter", "ge_good_us", "ge_good_ms", "duplicate", "preset")
"""Settings of a link, or of its change, that draw from its seed."""


@dataclass(eq=False)
class Job:
    """One scenario to run."""

    scenario: Scenario
    order: int
    attempts: int = 0
    """How often it was run and was void."""


@dataclass(eq=False)
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
            group = _group_of(scenario)
        except FairlaneError as error:
            on_error(scenario, RunError(f"{scenario.point}: {error}"))
            continue
        key = json.dumps([group.document, group.program, group.seed, group.frame_bytes], sort_keys=True)
        groups.setdefault(key, group).jobs.append(Job(scenario, order))
    return list(groups.values())


def _group_of(scenario: Scenario) -> Group:
    """An empty group for a scenario that can be run."""
    topology = checked_topology(scenario)
    plan = make_plan(scenario, dict.fromkeys(topology.hosts, "0.0.0.0"), Path())
    for sender in plan.senders:
        sender.command(scenario, 0)
    for name in plan.commands:
        plan.words(name)
    wishes(scenario)
    ways = [way for link in topology.links for way in (link.a_to_b, link.b_to_a)]
    drawing = [
        getattr(each, name, None) for each in (*ways, *scenario.changes, *topology.changes) for name in _OF_CHANCE
    ]
    by_chance = any(drawing) or find_program(scenario.program).by_chance
    document = json.loads(json.dumps(scenario.topology))
    rate_bps = sum(spec.rate_bps or 0 for spec in managed_ports(topology).values())
    frame_bytes = scenario.tcp.mss_bytes + FRAME_OVERHEAD_BYTES
    return Group(document, scenario.program, scenario.seed % 2**31 if by_chance else 1, rate_bps, frame_bytes)


def split(groups: Sequence[Group], parallel: int, total_rate_bps: int) -> list[Group]:
    """`groups`, and the one with most to do in several networks alike as long as fewer than `parallel` would run side by side."""
    found = list(groups)
    while len(found) < parallel:
        largest = max((group for group in found if len(group.jobs) > 1), key=_duration_s, default=None)
        if largest is None or _duration_s(largest) < SPLIT_LEAST_S:
            break
        if sum(group.rate_bps for group in found) + largest.rate_bps > total_rate_bps:
            break
        jobs = list(largest.jobs)
        found.insert(found.index(largest) + 1, replace(largest, jobs=deque(jobs[1::2])))
        largest.jobs = deque(jobs[::2])
    return found


def _duration_s(group: Group) -> float:
    return sum(job.scenario.duration_s for job in group.jobs)


def next_batch(groups: list[Group], parallel: int, total_rate_bps: int) -> list[Group]:
    """Takes out of `groups` those that run next, side by side: in order, as long as they fit; the first one always."""
    batch = [groups[0]]
    for group in groups[1:]:
        if len(batch) < parallel and sum(each.rate_bps for each in (*batch, group)) <= total_rate_bps:
            batch.append(group)
    for group in batch:
        groups.remove(group)
    return batch


@contextmanager
def claimed_instances(count: int, first: int, last: int) -> Generator[list[int]]:
    """The lowest `count` numbers of `first`..`last` that no other process has claimed and no topology runs at, by the run states or by its interfaces. Raises RunError when there are too few."""
    root = fl_state.state_root()
    root.mkdir(parents=True, exist_ok=True)
    found: list[int] = []
    with ExitStack() as stack:
        for number in range(first, last + 1):
            file = take_lock(root, f".claim-{number}")
            if file is None:
                continue
            stack.enter_context(file)
            if fl_state.alive(str(number)):  # somebody's `make run`, or what a killed run left for `make stop`
                continue
            if fl_state.read(str(number)) is None and _has_interfaces(number):  # of a run with another state folder
                continue
            found.append(number)
            if len(found) == count:
                yield found
                return
        raise RunError(
            f"only {len(found)} of {count} networks can be numbered: other runs have the rest of {first} to {last}"
        )


def _has_interfaces(number: int) -> bool:
    """Whether this machine has an interface of a topology with that number (docs/architecture.md, names)."""
    return any(re.match(rf"n{number}\D", name) for _, name in socket.if_nameindex())
