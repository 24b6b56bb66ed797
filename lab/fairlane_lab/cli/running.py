# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab run`: experiments in virtual time, in Mininet, or on a cluster.

Ctrl-C, SIGTERM (`timeout`, a batch system) and SIGHUP (a closed terminal) end a campaign in the same way: workers stop, what was measured is written.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from fairlane_controller.errors import FairlaneError, bad_input
from fairlane_topology.signals import handled
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from fairlane_lab.cli.options import (
    FAILED,
    JsonOption,
    ResultsOption,
    complete_experiment,
    console,
    errors,
    find_experiments,
    make_selection,
    note,
    print_json,
    refusals,
)
from fairlane_lab.definition.strict import Runtime
from fairlane_lab.paths import RESULTS_DATA
from fairlane_lab.problems import RunFolderError
from fairlane_lab.results.folder import hand_over, new_folder
from fairlane_lab.run_result import KERNEL, MININET, SIM

if TYPE_CHECKING:
    from fairlane_lab.definition.loading import Definition
    from fairlane_lab.scenario import Scenario
    from fairlane_lab.sweep.campaign import Campaign
    from fairlane_lab.sweep.runners import Executor, OnOutcome, Outcome


@dataclass
class Stop:
    """Which signal came, if any."""

    number: int | None = None

    @property
    def is_requested(self) -> bool:
        """Whether a signal asked this process to stop, also when the KeyboardInterrupt was caught elsewhere."""
        return self.number is not None

    @property
    def exit_code(self) -> int:
        """As a shell would give it: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
        return 128 + (self.number or signal.SIGINT)


@contextmanager
def stoppable() -> Generator[Stop]:
    """SIGTERM, SIGHUP and Ctrl-C raise KeyboardInterrupt in the block; the first two once: `timeout` sends SIGTERM twice, and the second must not break the writing.

    The first is remembered in any case: what the interrupt meets may lose it (a destructor) or raise an error of its own in its place
    (pydantic for a serializer in Python, a library that is closed). Such an error ends the block as the signal does, with the exit code.
    """
    stop = Stop()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        repeated, stop.number = stop.is_requested, stop.number or number
        if number == signal.SIGINT or not repeated:
            raise KeyboardInterrupt

    try:
        with handled(on_signal):
            yield stop
    except (FairlaneError, typer.Exit):
        raise
    except (Exception, KeyboardInterrupt):
        if not stop.is_requested:
            raise
        raise typer.Exit(stop.exit_code) from None


def _ends_with(stop: Stop, executor: Executor) -> Executor:
    """An executor that a signal interrupts at the next outcome at the latest, and by which no run fails."""

    def execute(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        def take(outcome: Outcome) -> None:
            if outcome.result is not None or not stop.is_requested:
                on_outcome(outcome)
            if stop.is_requested:
                raise KeyboardInterrupt

        try:
            executor(scenarios, take)
        except Exception as error:
            if stop.is_requested:
                raise KeyboardInterrupt from error
            raise

    return execute


RUNNERS = {"sim": SIM, "kernel": KERNEL, "mininet": MININET}
"""Runtime -> its runner, as `module:function`; tests put others in."""


def run(
    names: Annotated[
        list[str],
        typer.Argument(
            help="Experiments: names, files (.toml), patterns ('name-*') or all.", autocompletion=complete_experiment
        ),
    ],
    runtime: Annotated[
        Runtime,
        typer.Option(
            help="Where to run: in virtual time, with Linux's TCP in virtual time (after `make kernel`) or in real time (needs root).",
        ),
    ] = "sim",
    target: Annotated[
        Literal["embedded", "bmv2"], typer.Option(help="Which switch runs the program in Mininet.")
    ] = "embedded",
    seed: Annotated[int, typer.Option(help="Seed of everything that is left to chance.", min=0)] = 1,
    repeats: Annotated[int | None, typer.Option(help="Runs of each point; default: the experiment's.", min=1)] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="PARAM=VALUE[,VALUE…] or PARAM=1..20: other values of a sweep, or only these cases. A value with a comma in double quotes: 'case=\"near, 1 MB\",far'.",
        ),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes of this machine; default: its cores.", min=1)] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            help="Threads of one run of 8 switches and more, or 2,000 flows and more, in the simulator, with the same results; default: 1.",
            min=1,
            max=1024,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option(help="Fewer and shorter runs, to see whether it works.")] = False,
    plots: Annotated[
        bool, typer.Option(help="Make the plots too (`fairlane lab plot FOLDER` makes them later).")
    ] = True,
    check: Annotated[
        bool,
        typer.Option(
            help="Exit code 1 when an expectation is not met; with --archived: and its file does not say why."
        ),
    ] = False,
    archived: Annotated[
        bool,
        typer.Option(
            "--archived",
            help="Judge the runs that docs/results has, and make a sample of them again; exit code 1 where one differs, or they are not of the file as it is.",
        ),
    ] = False,
    results: ResultsOption = None,
    folder: Annotated[
        Path | None, typer.Option(help="The run folder; of one experiment. What is in it already is not run again.")
    ] = None,
    capture: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LINK",
            help="Write the packets of this link, as its end a sees them, to captures/POINT/REPEAT/LINK.pcapng in the run folder.",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Address of a dask scheduler, such as tcp://host:8786."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run experiments, each into a new run folder, or one into `--folder`; Ctrl-C keeps what is there (exit code 130), a failed run stops no other."""
    from fairlane_lab.definition.expansion import Selection
    from fairlane_lab.sweep.campaign import Campaign

    selection = make_selection(runtime, seed, repeats, values, quick, target)
    if archived and (runtime == "mininet" or folder or selection != Selection(runtime=runtime)):
        raise bad_input("--archived: the archive has the runs of the files as they are; allowed: --runtime sim or kernel, no --folder, --seed, --repeats, --set or --quick")  # fmt: skip
    if capture and (archived or dask is not None):
        raise bad_input(
            "--capture: the files are written where the runs are made anew; allowed: no --archived, no --dask"
        )
    code = 0
    with stoppable() as stop:
        executor = _ends_with(stop, _executor(runtime, jobs, dask, threads))
        definitions = find_experiments(names, selection)
        if folder and (results or len(definitions) > 1):
            raise bad_input("--folder is the folder of one experiment's runs; of several allowed: --results")
        for definition in definitions:
            if archived:
                code = max(code, _check_archive(definition, runtime, executor, check, as_json))
                continue
            with refusals():
                where = folder or new_folder(definition.experiment.name, results)
            campaign = Campaign(definition, selection, where, target, tuple(dict.fromkeys(capture or ())))
            code = max(code, _run(campaign, executor, stop, plots, check, as_json))
            if stop.is_requested:
                break
    if code:
        raise typer.Exit(code)


def _executor(runtime: str, jobs: int | None, dask: str | None, threads: int | None) -> Executor:
    """What makes runs in virtual time: this process, several, or a dask scheduler. Raises BAD_INPUT."""
    if dask is not None and not re.fullmatch(r"(\w+://)?[^:/\s]+:\d+|\w+://\S+", dask):
        raise bad_input(f"--dask {dask!r}: must be the address of a dask scheduler, such as tcp://host:8786")
    if dask is not None and (jobs is not None or runtime == "mininet"):
        raise bad_input("--dask: the scheduler has processes of its own; allowed: --runtime sim or kernel, no --jobs")
    if threads is not None:
        if dask is not None or runtime != "sim":
            raise bad_input("--threads: of runs in the simulator on this machine; allowed: --runtime sim, no --dask")
        from fairlane_lab.sim.config import THREADS_VARIABLE

        os.environ[THREADS_VARIABLE] = str(threads)
    from fairlane_lab.sweep.runners import local_executor
    from fairlane_lab.sweep.workers import dask_cluster, process_pool

    if dask is not None:
        return dask_cluster(RUNNERS[runtime], dask)
    runner = RUNNERS["sim" if runtime == "mininet" else runtime]
    cores = len(os.sched_getaffinity(0))
    return local_executor(runner) if jobs == 1 else process_pool(runner, jobs or max(1, cores // (threads or 1)))


@contextmanager
def _bar(name: str, scenarios: Sequence[Scenario]) -> Generator[tuple[OnOutcome, Callable[[str], None]]]:
    """The progress of a campaign, in seconds of the runs, on standard error: what to call when a run is over, and with what happens."""
    columns = (TextColumn("{task.description:<40}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task(name, total=sum(each.duration_s for each in scenarios))
        yield (
            lambda outcome: progress.advance(task, outcome.scenario.duration_s),
            lambda text: progress.update(task, description=f"{name}: {text}"),
        )


def _run(campaign: Campaign, executor: Executor, stop: Stop, plots: bool, check: bool, as_json: bool) -> int:
    """Run a campaign and show what came out; returns the exit code."""
    from fairlane_controller.program.registry import load_program

    from fairlane_lab.cli.tables import show_failures
    from fairlane_lab.sweep.campaign import run_campaign
    from fairlane_lab.sweep.runners import mininet_testbed

    experiment, problems = campaign.definition.experiment, list[str]()
    with refusals():
        for program in dict.fromkeys(each.program for each in campaign.scenarios):
            load_program(program).pipeline().warn_if_outdated()
    with refusals(), _bar(experiment.name, campaign.scenarios) as (advance, report):
        if campaign.selection.runtime == "mininet":
            mininet = mininet_testbed(campaign.target, experiment.mininet, report, RUNNERS["mininet"])
            executor = _ends_with(stop, mininet)

        def take(outcome: Outcome) -> None:
            problems.extend(outcome.result.capture_problems if outcome.result else ())
            advance(outcome)

        done = run_campaign(campaign, executor, take)
    summary, interrupted = done.summary, done.interrupted or stop.is_requested
    lines = [f"runs that were there already: {done.skipped}"] if done.skipped else []
    if summary["points"]:
        with refusals():
            pictures = _plots(campaign.folder) if plots else []
        lines += [f"data   {done.path}", *(f"plot   {picture}" for picture in pictures)]
    hand_over(campaign.folder)
    _show(summary, campaign.folder, as_json, interrupted)
    for line in () if as_json else lines:
        console.print(line, soft_wrap=True)
    show_failures(summary["failures"], done.path.exists())
    for problem in problems:
        note(f"a capture is not whole: {problem}", "yellow")
    if interrupted:
        kept = "no run had finished, nothing is kept"
        if summary["points"]:
            kept = f"what was measured until then is kept; the same command with --folder {campaign.folder} goes on"
        note(f"interrupted: {kept}", "yellow")
        return stop.exit_code
    if done.stopped:
        note(f"error: {done.stopped}", "red")
    is_not_met = any(verdict["within"] is not True for verdict in summary["verdicts"])
    return FAILED if done.failures or done.stopped or (check and is_not_met) else 0


def _check_archive(definition: Definition, runtime: str, executor: Executor, check: bool, as_json: bool) -> int:
    """Make a sample of an experiment's archived runs again, and show what the archive says; returns the exit code."""
    from fairlane_lab.cli.tables import MAX_SHOWN
    from fairlane_lab.report.archive import find_archived

    name = definition.experiment.name
    try:
        found = find_archived(RESULTS_DATA, definition, runtime)
    except RunFolderError as error:
        note(f"{name}: {error}", "red")
        return FAILED
    if found is None:
        note(f"{name}: no archived runs in {runtime}")
        return 0
    with refusals(), _bar(name, found.sample) as (advance, _):
        differences = found.rerun(executor, advance)
    same = len(found.sample) - len(differences)
    note(f"{name}: {same} of {len(found.sample)} runs that were made again are the archive's")
    for line in differences[:MAX_SHOWN]:
        note(f"  {line}", "yellow")
    _show(found.summary, RESULTS_DATA, as_json)
    explained = {each.text for each in definition.experiment.expect if each.why}
    surprises = any(each["state"] == "not met" and each["text"] not in explained for each in found.summary["verdicts"])
    return FAILED if differences or (check and surprises) else 0


def _show(summary: Mapping[str, Any], folder: Path, as_json: bool, interrupted: bool = False) -> None:
    from fairlane_lab.cli.tables import show_run
    from fairlane_lab.report.run_folder import run_of

    if not as_json:
        show_run(run_of(folder, summary))
        return
    names = ("experiment", "complete", "runs", "points", "verdicts", "failures")
    print_json({**{name: summary.get(name, []) for name in names}, "folder": str(folder), "interrupted": interrupted})


def _plots(folder: Path) -> list[Path]:
    from fairlane_lab.report.figures import make_plots

    return [picture for picture in make_plots(folder) if picture.suffix == ".png"]
