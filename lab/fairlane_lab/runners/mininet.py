# SPDX-License-Identifier: Apache-2.0
"""The Mininet runner: scenarios as real runs of real Linux senders, several topologies side by side.

Scenarios with the same topology use one running network, one after the other. As many networks as `MininetOptions`
allows run side by side as a batch, each with a control loop of its own, and go round by round: each begins its next scenario
at the same time, so that no network starts or stops while another measures.
"""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from fairlane_controller.errors import FairlaneError
from fairlane_switch.control import ControlError
from fairlane_switch.process import Service
from fairlane_topology import control as fl_control
from fairlane_topology.network import NetworkOptions
from fairlane_topology.ports import INSTANCE_MAX

from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep.runners import processor_s
from fairlane_lab.testbed.bed import Bed, Changes, Running
from fairlane_lab.testbed.collect import VoidError, collect
from fairlane_lab.testbed.grouping import Group, claimed_instances, groups_of, next_batch, split
from fairlane_lab.testbed.port_watch import PortWatch, WatchLoop

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
Report = Callable[[str], None]
"""Called with what happens now."""


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


def run_many(
    scenarios: Sequence[Scenario],
    options: MininetOptions,
    on_result: OnResult,
    report: Report = lambda _text: None,
) -> None:
    """Run all scenarios; one that cannot be run does not stop the others. Whatever was started is removed in any case.

    Args:
        scenarios: What is run.
        options: How.
        on_result: Called with each scenario's result, or why there is none, as soon as it is known. What it raises ends all.
        report: Called with what happens.

    Raises:
        RuntimeError: A control loop ended in the middle of a run.

    """
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
            raw = options.raw or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlane-runs-")))
            _Batch(batch, options, raw, count_void, report, stack).run()


def tree_s() -> float:
    """Processor time of this process and all below it, those that run too: switches, control loops, hosts."""
    total_s = processor_s()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            total_s += sum(process.cpu_times()[:4])
    return total_s


def _fail_all(groups: Sequence[Group], on_result: OnResult, why: object) -> None:
    for job in [job for group in groups for job in group.jobs]:
        on_result(job.scenario, RunError(f"{job.scenario.point}: {why}"))


@dataclass
class _Active:
    """The first run of a group, under way on a bed."""

    group: Group
    bed: Bed
    running: Running
    changes: Changes
    watch: PortWatch
    begun_s: float
    problem: RunError | ControlError | None = None
    """Why it was given up before its end."""
    used_s: float = 0.0
    """Its part of the round's processor time."""

    @property
    def scenario(self) -> Scenario:
        return self.group.jobs[0].scenario


@dataclass
class _Batch:
    """Networks side by side, until their scenarios are done."""

    groups: list[Group]
    options: MininetOptions
    raw: Path
    on_result: OnResult
    report: Report
    stack: ExitStack
    loops: list[Service] = field(default_factory=list[Service])
    """The control loops of the networks whose program needs one."""

    def run(self) -> None:
        """Start, go round by round, stop."""
        self._watches = self.stack.enter_context(WatchLoop())
        try:
            beds = self._start_all()
        except (RuntimeError, FairlaneError) as error:  # the scenarios of other batches may still run
            _fail_all(self.groups, self.on_result, error)
            return
        while any(group.jobs for group in self.groups):
            self._round(beds)

    def _start_all(self) -> list[Bed]:
        first = self.options.first_instance
        instances = self.stack.enter_context(claimed_instances(len(self.groups), first, INSTANCE_MAX))
        beds = [self._start(group, instance) for group, instance in zip(self.groups, instances, strict=True)]
        self.report("programming the switches")
        with ThreadPoolExecutor() as pool:
            list(pool.map(fl_control.program_switches, [bed.network for bed in beds]))
        for bed in beds:
            bed.shape()
        probes = any(job.scenario.control.probes for group in self.groups for job in group.jobs)
        for bed in (each for each in beds if each.part.has_loop):
            self.loops.append(fl_control.start_loop(bed.network, probes=probes))
            self.stack.callback(self.loops[-1].stop)
        for loop in self.loops:
            loop.wait_ready()
        return beds

    def _start(self, group: Group, instance: int) -> Bed:
        chosen = self.options
        options = NetworkOptions(instance, chosen.target, group.program, group.seed, frame_bytes=group.frame_bytes)
        bed = Bed(group.document, options)
        self.report(f"starting network {instance}")
        self.stack.callback(bed.stop)
        bed.start()
        return bed

    def _round(self, beds: list[Bed]) -> None:
        """The next scenario of every network."""
        due = [(group, bed) for group, bed in zip(self.groups, beds, strict=True) if group.jobs]
        used_s = tree_s()
        with ExitStack() as stack:
            begun = [self._begin(*each, stack, START_S * (len(due) - place)) for place, each in enumerate(due, 1)]
            active = [one for one in begun if one is not None]
            self._wait(active)
        used_s = (tree_s() - used_s) / max(1, len(active))
        for one in active:
            one.used_s = used_s
            self._finish(one)
        waits = [max(min(DRAIN_MAX_S, one.bed.drain_s()), one.changes.over_s - time.monotonic()) for one in active]
        time.sleep(max(PAUSE_BETWEEN_RUNS_S, *waits) if active else 0.0)

    def _begin(self, group: Group, bed: Bed, stack: ExitStack, wait_s: float) -> _Active | None:
        job = group.jobs[0]
        scenario = job.scenario
        try:
            running = bed.begin(scenario, self.raw / f"{job.order:04d}-{job.attempts}", wait_s)
            changes = Changes(bed.network, scenario, running.zero_ns)
        except FairlaneError as error:
            self._failed(group, bed, error)
            return None
        ports = [sink.port for sink in running.plan.sinks]
        watch = stack.enter_context(self._watches.watch(bed, max(WATCH_S, scenario.sample_s), scenario.series, ports))
        return _Active(group, bed, running, changes, watch, time.monotonic())

    def _wait(self, active: list[_Active]) -> None:
        """Until every run's time is over; makes the changes meanwhile."""
        self.report(", ".join(dict.fromkeys(one.scenario.point for one in active)))
        ends = {id(one): one.running.zero_ns / 1e9 + one.scenario.duration_s + WATCH_AFTER_RUN_S for one in active}
        while (now := time.monotonic()) < max(ends.values(), default=0.0):
            if any(loop.has_ended for loop in self.loops):
                raise RuntimeError("a control loop ended in the middle of a run")
            due = [max(ends.values()), now + TICK_S]
            for one in (each for each in active if each.problem is None):
                if one.bed.look_for_end():
                    ends[id(one)] = min(ends[id(one)], (one.running.done_ns or 0) / 1e9 + WATCH_AFTER_RUN_S)
                try:
                    if dead := one.bed.network.dead():
                        raise RunError(f"in the middle of the run {' and '.join(dead)}")
                    one.running.captures.look()
                    if one.running.done_ns is None:
                        one.changes.apply_due()
                        due += [] if one.changes.due_s is None else [one.changes.due_s]
                except (RunError, ControlError) as error:  # the others go on
                    one.problem, ends[id(one)] = error, now
            time.sleep(max(0.0, min(due) - time.monotonic()))

    def _finish(self, one: _Active) -> None:
        job, bed, before_s = one.group.jobs[0], one.bed, processor_s()
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
                self._failed(one.group, bed, VoidError(f"{error}; {job.attempts} times in a row"))
            else:
                self.report(f"{job.scenario.point} again: {error}")
            return
        except FairlaneError as error:
            self._failed(one.group, bed, error)
            return
        result.wall_s = time.monotonic() - one.begun_s
        result.cpu_s = one.used_s + processor_s() - before_s
        result.capture_problems = one.running.capture_problems
        result.about = {
            **bed.about,
            "kernel": platform.release(),
            "variants": one.running.variants,
            "repeated": job.attempts,
            "not_sampled": one.watch.samples.problems,
        }
        self.on_result(one.group.jobs.popleft().scenario, result)

    def _failed(self, group: Group, bed: Bed, error: Exception) -> None:
        bed.abandon()
        scenario = group.jobs.popleft().scenario
        kind = VoidError if isinstance(error, VoidError) else RunError
        self.on_result(scenario, kind(f"{scenario.point}: {error}"))
