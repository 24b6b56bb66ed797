# SPDX-License-Identifier: Apache-2.0
# pyright: reportPrivateUsage=false
"""Changes of links in a Mininet run, without a network: what is done when, and that the next run meets none of it."""

from __future__ import annotations

import time
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.runners.mininet import GIVEN_UP_AFTER, MininetOptions, _Active, _Batch, run_many
from fairlane_lab.scenario import Flow, Scenario
from fairlane_lab.testbed.bed import Changes
from fairlane_lab.testbed.collect import VoidError
from fairlane_lab.testbed.grouping import Group, Job
from fairlane_topology import changes as fl_changes
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import TOPOLOGIES, LinkChange

TOPOLOGY = fl_topology.read(TOPOLOGIES / "satellite.json")


@dataclass
class FakeBed:
    """A network that takes changes, refuses some, and whose senders may have broken."""

    refuses: bool = False
    broken: bool = False
    stands_still: bool = False
    changed: list[float | None] = field(default_factory=list[float | None])
    restored: int = 0
    abandoned: bool = False
    topology: fl_topology.Topology = field(default_factory=lambda: fl_topology.check(TOPOLOGY))

    @property
    def network(self) -> Any:
        return self

    def dead(self) -> list[str]:
        return []

    def apply(self, change: LinkChange) -> tuple[tuple[str, int, int], ...]:
        if self.refuses:
            raise RuntimeError("the wire says no")
        self.changed.append(change.delay_ms)
        return ()

    def restore(self, changes: list[LinkChange]) -> None:
        self.restored += len(changes)

    def look_for_end(self) -> bool:
        return False

    def end(self) -> None:
        if self.stands_still:
            raise VoidError("this machine stood still")
        if self.broken:
            raise RunError("the sender of flow file ended with 1")

    def abandon(self) -> None:
        self.abandoned = True


@pytest.fixture(autouse=True)
def _changes_of_the_fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fl_changes, "apply", FakeBed.apply)
    monkeypatch.setattr(fl_changes, "restore", FakeBed.restore)


def scenario(*changes: LinkChange, duration_s: float = 60.0) -> Scenario:
    flow = Flow(name="file", group="file", sender="h1", receiver="h2")
    return Scenario("x", "p", {}, TOPOLOGY, (flow,), duration_s, 0.0, changes=changes)


def changes_of(bed: FakeBed, *changes: LinkChange, since_s: float) -> Changes:
    """Those of a run that began so long ago."""
    return Changes(cast("Any", bed), scenario(*changes), time.monotonic_ns() - round(since_s * 1e9))


def finish(bed: FakeBed, changes: Changes, problem: RunError | None, folder: Path) -> list[RunResult | RunError]:
    """What becomes of a run on `bed`."""
    results: list[RunResult | RunError] = []
    job = Job(scenario(), 0)
    group = Group({}, "qthresh", 1, 1_000_000, 1014, deque([job]))
    batch = _Batch([group], MininetOptions(), folder, lambda _, result: results.append(result), print, ExitStack())
    batch._finish(_Active(group, cast("Any", bed), cast("Any", None), changes, cast("Any", None), 0.0, problem))
    assert not group.jobs, "it is not tried again"
    return results


def test_what_is_due_is_done_in_order_and_an_outage_is_known_to_last() -> None:
    bed = FakeBed()
    later, outage = LinkChange(at_s=5.0, link="s1-s2", delay_ms=7), LinkChange(at_s=1.0, link="s1-s2", outage_s=100)
    changes = changes_of(bed, later, LinkChange(at_s=2.0, link="s1-s2", delay_ms=3), outage, since_s=3)
    changes.apply_due()
    assert bed.changed == [None, 3]
    assert changes.due_s is not None
    left_s = changes.over_s - time.monotonic()
    assert 50 < left_s <= 100
    changes.undo()
    assert bed.restored == 2


@pytest.mark.parametrize("given_up", [False, True])
def test_links_are_put_back_after_a_run_that_failed(given_up: bool, tmp_path: Path) -> None:
    bed = FakeBed(broken=True)
    changes = changes_of(bed, LinkChange(at_s=1.0, link="s1-s2", delay_ms=3), since_s=2)
    changes.apply_due()
    (result,) = finish(bed, changes, RunError("at 1 s: no") if given_up else None, tmp_path)
    assert isinstance(result, RunError)
    assert ("at 1 s: no" if given_up else "ended with 1") in str(result)
    assert bed.restored == 1
    assert bed.abandoned


def test_a_change_that_is_refused_ends_its_own_run_alone(tmp_path: Path) -> None:
    refusing, other = FakeBed(refuses=True), FakeBed()
    runs: list[_Active] = []
    for bed in (refusing, other):
        changes = changes_of(bed, LinkChange(at_s=0.5, link="s1-s2", delay_ms=3), since_s=1)
        group = Group({}, "qthresh", 1, 1_000_000, 1014, deque([Job(scenario(duration_s=1.0), 0)]))
        captures = SimpleNamespace(look=lambda: None)
        running = SimpleNamespace(zero_ns=time.monotonic_ns() - 1_000_000_000, done_ns=None, captures=captures)
        runs.append(_Active(group, cast("Any", bed), cast("Any", running), changes, cast("Any", None), 0.0))
    results: list[RunResult | RunError] = []
    batch = _Batch([], MininetOptions(), tmp_path, lambda _, result: results.append(result), print, ExitStack())
    batch._wait(runs)
    assert not results
    assert "at 0.5 s: the wire says no" in str(runs[0].problem)
    assert runs[1].problem is None
    assert other.changed == [3]


def test_where_run_after_run_is_void_the_rest_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bed = FakeBed(stands_still=True)
    tried: list[int] = []

    def start_all(_batch: _Batch) -> list[FakeBed]:
        return [bed]

    def one_round(batch: _Batch, _beds: object) -> None:
        (group,) = batch.groups
        tried.append(group.jobs[0].order)
        changes = changes_of(bed, since_s=0)
        batch._finish(_Active(group, cast("Any", bed), cast("Any", None), changes, cast("Any", None), 0.0))

    monkeypatch.setattr(_Batch, "_start_all", start_all)
    monkeypatch.setattr(_Batch, "_round", one_round)
    results: list[RunResult | RunError] = []
    runs = [replace(scenario(), topology={**TOPOLOGY, "name": f"t{one}"}) for one in range(GIVEN_UP_AFTER + 2)]
    run_many(runs, MininetOptions(parallel=1, raw=tmp_path), lambda _, result: results.append(result))
    assert tried == sorted([*range(GIVEN_UP_AFTER)] * 3)
    assert [("not tried" in str(result)) for result in results] == [False] * GIVEN_UP_AFTER + [True] * 2
