# SPDX-License-Identifier: Apache-2.0
"""The Mininet runner: scenarios as real runs of real Linux senders, several topologies side by side.

Scenarios with the same topology use one running network, one after the other. As many networks as `MininetOptions`
allows run side by side as a batch, all served by one control loop, and go round by round: each begins its next scenario
at the same time, so that no network starts or stops while another measures.
"""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from fairlane_controller.errors import FairlaneError
from fairlane_hosts.errors import HostsError
from fairlane_topology import control as fl_control
from fairlane_topology import processes as fl_processes

from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.scenario import Scenario
from fairlane_lab.testbed.bed import Bed, Running
from fairlane_lab.testbed.changes import Changes
from fairlane_lab.testbed.claims import claimed_instances
from fairlane_lab.testbed.collect import VoidError, collect
from fairlane_lab.testbed.facts import describe_bed
from fairlane_lab.testbed.grouping import Group, Job, groups_of, next_batch, split
from fairlane_lab.testbed.port_watch import PortWatch, WatchLoop

TARGETS = ("embedded", "bmv2")
INSTANCE_MAX = 99
REPEATS_OF_A_VOID_RUN = 2
"""How often one run is made again because this machine stood still."""
GIVEN_UP_AFTER = 3
"""So many runs in a row of which every repeat was void show that this machine is too slow for the rest."""
PAUSE_BETWEEN_RUNS_S = 0.5
START_S = 0.8
"""A run waits so long for each network whose run begins after it, so that no process is started beside a run. `Bed.begin` takes 0.14 to 0.32 s (n = 11), and
its senders still start when it returns."""
DRAIN_MAX_S = 10.0
TICK_S = 0.25
WATCH_S = 0.1
"""The ports are not sampled more often than this: it costs the switch and this machine time."""
WATCH_AFTER_RUN_S = 0.25
"""The watch goes on for so long: a counter is read at an instant by what was sampled around it."""

OnResult = Callable[[Scenario, "RunResult | RunError"], None]
Tell = Callable[[str, float], None]
"""Told what happens now, and the seconds that have passed since the start."""


@dataclass(frozen=True)
class MininetOptions:
    """How to run."""

    target: str = "embedded"
    """`embedded` or `bmv2`."""
    parallel: int = 4
    """Networks side by side at most."""
    first_instance: int = 20
    """Their instance numbers begin here (docs/architecture.md, names); what another run has claimed is passed over."""
    total_rate_bps: int = 20_000_000
    """The managed ports of the networks side by side together; a network with more runs alone."""
    raw: Path | None = None
    """Where the processes' own records stay; None: nowhere."""

    def check(self) -> None:
        """Raises RunError naming the option and what is allowed."""
        if self.target not in TARGETS:
            raise RunError(f"target {self.target!r}: must be {' or '.join(TARGETS)}")
        if not 1 <= self.parallel <= 16:
            raise RunError(f"parallel {self.parallel}: must be between 1 and 16")
        if not 1 <= self.first_instance <= INSTANCE_MAX + 1 - self.parallel:
            most = INSTANCE_MAX + 1 - self.parallel
            raise RunError(
                f"first_instance {self.first_instance}: must be between 1 and {most} for {self.parallel} networks"
            )


def run_many(
    scenarios: Sequence[Scenario], options: MininetOptions, on_result: OnResult, tell: Tell = lambda _text, _s: None
) -> None:
    """Run all scenarios; `on_result` gets each one's result, or why there is none, as soon as it is known.

    A scenario that cannot be run does not stop the others. Raises RunError for bad options, RuntimeError when the control
    loop ends in the middle of a run, and what `on_result` raises. Whatever was started is removed in any case.
    """
    options.check()
    started_s = time.monotonic()

    def say(text: str) -> None:
        tell(text, time.monotonic() - started_s)

    void_in_a_row = 0

    def count_void(scenario: Scenario, result: RunResult | RunError) -> None:
        nonlocal void_in_a_row
        if isinstance(result, VoidError):
            void_in_a_row += 1
        elif isinstance(result, RunResult):
            void_in_a_row = 0
        on_result(scenario, result)

    groups = split(groups_of(scenarios, on_result), options.parallel, options.total_rate_bps)
    while groups:
        batch = next_batch(groups, options.parallel, options.total_rate_bps)
        if void_in_a_row >= GIVEN_UP_AFTER:
            why = f"not tried, because {void_in_a_row} runs before it were void: this machine is too slow for them"
            _fail_all(batch, on_result, why)
            continue
        with ExitStack() as stack:
            _Batch(batch, options, count_void, say, stack).run()


def _fail_all(groups: Sequence[Group], on_result: OnResult, why: object) -> None:
    for job in [job for group in groups for job in group.jobs]:
        on_result(job.scenario, RunError(f"{job.scenario.point}: {why}"))


@dataclass
class _Active:
    """A run that is under way on a bed."""

    job: Job
    bed: Bed
    running: Running
    changes: Changes
    watch: PortWatch
    begun_s: float
    problem: RunError | None = None
    """Why it was given up before its end."""


class _Batch:
    """Networks side by side, until their scenarios are done."""

    def __init__(
        self,
        groups: list[Group],
        options: MininetOptions,
        on_result: OnResult,
        say: Callable[[str], None],
        stack: ExitStack,
    ) -> None:
        self._groups = groups
        self._options = options
        self._on_result = on_result
        self._say = say
        self._stack = stack
        self._loop: fl_processes.Service | None = None
        """The control loop of the networks whose program needs one."""
        self._raw = options.raw
        if self._raw is None:
            self._raw = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlane-runs-")))

    def run(self) -> None:
        """Start, go round by round, stop."""
        self._watches = self._stack.enter_context(WatchLoop())
        try:
            beds = self._start_all()
        except (RuntimeError, HostsError) as error:  # the scenarios of other batches may still run
            _fail_all(self._groups, self._on_result, error)
            return
        while any(group.jobs for group in self._groups):
            self._round(beds)

    def _start_all(self) -> list[Bed]:
        count, first = len(self._groups), self._options.first_instance
        instances = self._stack.enter_context(claimed_instances(count, first, INSTANCE_MAX))
        beds = [self._start(group, instance) for group, instance in zip(self._groups, instances, strict=True)]
        self._say("programming the switches")
        for bed in beds:
            fl_control.program_switches(bed.network)
        for bed in beds:
            bed.shape()
        followed = [bed.network for bed in beds if bed.part.part.has_loop]
        if followed:
            probes = any(job.scenario.control.probes for group in self._groups for job in group.jobs)
            self._loop = fl_control.start_loop(followed, probes=probes)
            self._stack.callback(self._loop.stop)
        self._facts = [describe_bed(bed) for bed in beds]
        return beds

    def _start(self, group: Group, instance: int) -> Bed:
        bed = Bed(group.document, group.program, instance, self._options.target, group.seed, group.frame_bytes)
        self._say(f"starting network {instance}")
        self._stack.callback(bed.stop)
        bed.start()
        return bed

    def _round(self, beds: list[Bed]) -> None:
        """The next scenario of every network."""
        active: list[_Active] = []
        with ExitStack() as stack:
            due = [(bed, group.jobs[0]) for bed, group in zip(beds, self._groups, strict=True) if group.jobs]
            for number, (bed, job) in enumerate(due, 1):
                self._begin(bed, job, active, stack, START_S * (len(due) - number))
            self._wait(active)
        for one in active:
            self._finish(one)
        drains = [min(DRAIN_MAX_S, one.bed.drain_s()) for one in active]
        held = [one.changes.over_s - time.monotonic() for one in active]
        time.sleep(max(PAUSE_BETWEEN_RUNS_S, *drains, *held) if active else 0.0)

    def _begin(self, bed: Bed, job: Job, active: list[_Active], stack: ExitStack, wait_s: float) -> None:
        scenario = job.scenario
        assert self._raw is not None
        folder = self._raw / f"{job.order:04d}-{job.attempts}"
        try:
            running = bed.begin(scenario, folder, wait_s)
            changes = Changes(bed, scenario, running.zero_ns)
        except (RunError, HostsError, FairlaneError) as error:
            self._failed(job, bed, error)
            return
        ports = [sink.port for sink in running.plan.sinks]
        watch = stack.enter_context(self._watches.watch(bed, max(WATCH_S, scenario.sample_s), scenario.series, ports))
        active.append(_Active(job, bed, running, changes, watch, time.monotonic()))

    def _wait(self, active: list[_Active]) -> None:
        """Until every run's time is over; makes the changes meanwhile."""
        points = ", ".join(dict.fromkeys(one.job.scenario.point for one in active))
        ends = {id(one): one.running.zero_ns / 1e9 + one.job.scenario.duration_s + WATCH_AFTER_RUN_S for one in active}
        while (now := time.monotonic()) < max(ends.values(), default=0.0):
            for one in active:
                if one.bed.look_for_end():
                    ends[id(one)] = min(ends[id(one)], (one.running.done_ns or 0) / 1e9 + WATCH_AFTER_RUN_S)
            if self._loop is not None and self._loop.has_ended:
                raise RuntimeError("the control loop ended in the middle of a run")
            for one in active:
                if one.problem is None and (dead := one.bed.network.dead()):
                    one.problem, ends[id(one)] = RunError(f"in the middle of the run {' and '.join(dead)}"), now
            self._say(points)
            going_on = [one for one in active if one.problem is None and one.running.done_ns is None]
            for one in going_on:
                try:
                    one.changes.apply_due()
                except RunError as error:  # the others go on
                    one.problem, ends[id(one)] = error, now
            due = [one.changes.due_s for one in going_on if one.problem is None and one.changes.due_s is not None]
            until = min([*due, max(ends.values()), now + TICK_S])
            time.sleep(max(0.0, until - time.monotonic()))

    def _finish(self, one: _Active) -> None:
        job, bed = one.job, one.bed
        try:
            try:
                if one.problem is not None:
                    raise one.problem
                bed.end()
            finally:
                one.changes.undo()  # the network's next run is not to meet them
            result = collect(bed, one.running, one.watch.samples, one.changes.rates)
        except VoidError as error:
            job.attempts += 1
            if job.attempts > REPEATS_OF_A_VOID_RUN:
                self._failed(job, bed, VoidError(f"{error}; {job.attempts} times in a row"))
            else:
                self._say(f"{job.scenario.point} again: {error}")
            return
        except (RunError, HostsError, FairlaneError) as error:
            self._failed(job, bed, error)
            return
        result.wall_s = time.monotonic() - one.begun_s
        result.about = {
            **self._facts[self._groups.index(self._group_with(job))],
            "kernel": platform.release(),
            "variants": one.running.variants,
            "repeated": job.attempts,
            "not_sampled": one.watch.samples.problems,
        }
        self._remove_job(job)
        self._on_result(job.scenario, result)

    def _group_with(self, job: Job) -> Group:
        return next(group for group in self._groups if group.jobs and group.jobs[0] is job)

    def _failed(self, job: Job, bed: Bed, error: Exception) -> None:
        bed.abandon()
        self._remove_job(job)
        kind = VoidError if isinstance(error, VoidError) else RunError
        self._on_result(job.scenario, kind(f"{job.scenario.point}: {error}"))

    def _remove_job(self, job: Job) -> None:
        self._group_with(job).jobs.popleft()
