# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab run` and `sweep`: experiments in virtual time, in Mininet, or on a cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from fairlane_lab.cli.options import (
    NamesArgument,
    QuickOption,
    RepeatsOption,
    RuntimeOption,
    SeedOption,
    SetOption,
    TargetOption,
    complete_experiment,
    cores,
    find_experiments,
    make_selection,
)
from fairlane_lab.cli.output import FAILED, JsonOption, console, errors, fail, print_json
from fairlane_lab.cli.stopping import Stop, stoppable
from fairlane_lab.cli.tables import MAX_SHOWN_FAILURES, show_failures, show_summary
from fairlane_lab.definition import Definition, ExperimentError, Selection, expand
from fairlane_lab.paths import RESULTS_DATA, results_root
from fairlane_lab.results.folder import hand_over, new_folder
from fairlane_lab.results.summary_file import RunFolderError
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep.campaign import Campaign, CampaignError, CampaignResult, run_campaign, set_aside
from fairlane_lab.sweep.runners import KERNEL, MININET, SIM, Executor, Outcome, local_executor, mininet_testbed
from fairlane_lab.sweep.workers import dask_cluster, process_pool

RUNNERS = {"sim": SIM, "kernel": KERNEL, "mininet": MININET}
"""Runtime → its runner, as `module:function`; tests put others in."""

ResultsOption = Annotated[
    Path | None, typer.Option(help="Where run folders go; default results/ of fairlane's tree, or here.")
]
PlotsOption = Annotated[bool, typer.Option(help="Make the plots too (`fairlane lab plot FOLDER` makes them later).")]
ArchivedOption = Annotated[
    bool,
    typer.Option(
        "--archived",
        help="Judge the runs that docs/results has, and make a sample of them again; exit code 1 where one differs, or they are not of the file as it is.",
    ),
]
CheckOption = Annotated[
    bool,
    typer.Option(help="Exit code 1 when an expectation is not met; with --archived: and its file does not say why."),
]


def run(
    names: NamesArgument,
    runtime: RuntimeOption = "sim",
    target: TargetOption = "embedded",
    seed: SeedOption = 1,
    repeats: RepeatsOption = None,
    values: SetOption = None,
    jobs: Annotated[int | None, typer.Option(help="Processes of the simulator; default: the cores.", min=1)] = None,
    quick: QuickOption = False,
    plots: PlotsOption = True,
    check: CheckOption = False,
    archived: ArchivedOption = False,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run experiments, each into a new run folder; Ctrl-C keeps what is there (exit code 130)."""
    selection = make_selection(runtime, target, seed, repeats, values, quick)
    if archived and selection != Selection(runtime=selection.runtime):
        fail("--archived: the archive has the runs of the files as they are: no --seed, --repeats, --set or --quick")
    if archived and selection.runtime == "mininet":
        fail("--archived: a run in Mininet does not come out the same twice; allowed: sim, kernel")
    definitions = find_experiments(names, runtime)
    jobs = jobs or cores()
    _check_selections(definitions, selection)
    _need_root(selection.runtime)
    code = 0
    with ExitStack() as stack:
        stop = stack.enter_context(stoppable())
        bar = stack.enter_context(_Bar())
        virtual = RUNNERS["sim" if selection.runtime == "mininet" else selection.runtime]
        pool = stack.enter_context(process_pool(virtual, jobs))
        for definition in definitions:
            executor: Executor
            if selection.runtime == "mininet":
                executor = _mininet(definition, target, bar)
            elif jobs == 1:
                executor = local_executor(virtual, bar.record_progress)
            else:
                executor = pool.execute
            if archived:
                code = max(code, _hold(definition, selection.runtime, executor, bar, check, as_json))
                continue
            try:
                folder = new_folder(definition.experiment.name, results)
            except OSError as error:
                fail(f"cannot make {error.filename}: {error.strerror}; --results says where else run folders go")
            campaign = Campaign(definition, selection, folder, target)
            done = _run(campaign, executor, bar, stop)
            code = max(code, _finish(campaign, done, bar, plots, check, as_json))
            if done.interrupted:
                code = stop.exit_code
                break
    if code:
        raise typer.Exit(code)


def sweep(
    name: Annotated[str, typer.Argument(help="An experiment, or a file (.toml).", autocompletion=complete_experiment)],
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Address of a dask scheduler, such as tcp://host:8786."),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes of this machine; default: the cores.", min=1)] = None,
    runtime: RuntimeOption = "sim",
    seed: SeedOption = 1,
    repeats: RepeatsOption = None,
    values: SetOption = None,
    quick: QuickOption = False,
    folder: Annotated[Path | None, typer.Option(help="The data set; default results/NAME/sweep.")] = None,
    fresh: Annotated[bool, typer.Option(help="Begin again; what is there is set aside, not deleted.")] = False,
    plots: PlotsOption = False,
    check: CheckOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run in virtual time on dask.distributed into one data set; goes on where it stopped, a failed run stops no other."""
    if dask is not None and workers is not None:
        fail("--workers is for a cluster of this machine; the one at --dask has its own")
    if dask is not None and not re.fullmatch(r"(\w+://)?[^:/\s]+:\d+|\w+://\S+", dask):
        fail(f"--dask {dask!r}: must be the address of a dask scheduler, such as tcp://host:8786")
    selection = make_selection(runtime, "embedded", seed, repeats, values, quick)
    if selection.runtime == "mininet":
        fail(
            "--runtime mininet has one machine to itself: `fairlane lab run`; a sweep runs in virtual time: sim or kernel"
        )
    definition = find_experiments([name], runtime)[0]
    _check_selections([definition], selection)
    where = folder or results_root() / definition.experiment.name / "sweep"
    if fresh and (aside := set_aside(where)):
        errors.print(f"set aside {aside}", style="dim", soft_wrap=True)
    campaign = Campaign(definition, selection, where)
    with stoppable() as stop, _Bar() as bar:
        executor = dask_cluster(RUNNERS[selection.runtime], dask, workers or (None if dask else cores()))
        done = _run(campaign, executor, bar, stop)
        code = _finish(campaign, done, bar, plots, check, as_json)
    code = stop.exit_code if done.interrupted else code
    if code:
        raise typer.Exit(code)


def _check_selections(definitions: Sequence[Definition], selection: Selection) -> None:
    """Everything that is asked for exists, in every experiment, before the first one runs."""
    try:
        for definition in definitions:
            expand(definition, selection)
    except ExperimentError as error:
        fail(str(error))


def _need_root(runtime: str) -> None:
    if runtime == "mininet" and os.geteuid() != 0:
        fail("Mininet needs root: run it with sudo, or use --runtime sim")


def _mininet(definition: Definition, target: str, bar: _Bar) -> Executor:
    return mininet_testbed(target, definition.experiment.mininet.parallel, bar.say, RUNNERS["mininet"])


def _run(campaign: Campaign, executor: Executor, bar: _Bar, stop: Stop) -> CampaignResult:
    bar.begin(campaign.definition.experiment.name, campaign.scenarios())
    try:
        done = run_campaign(campaign, executor, bar.finished)
        return replace(done, interrupted=True, stopped="") if stop.is_requested else done
    except CampaignError as error:
        bar.close()
        fail(f"{error}; --fresh begins again")
    except ExperimentError as error:
        bar.close()
        fail(str(error))
    except RunError as error:
        bar.close()
        fail(str(error), FAILED)


def _hold(definition: Definition, runtime: str, executor: Executor, bar: _Bar, check: bool, as_json: bool) -> int:
    """Make a sample of an experiment's archived runs again, and show what the archive says; returns the exit code."""
    from fairlane_lab.report.archived import find_archived

    name = definition.experiment.name
    try:
        found = find_archived(RESULTS_DATA, definition, runtime)
    except RunFolderError as error:
        errors.print(f"{name}: {error}", style="red", soft_wrap=True, markup=False)
        return FAILED
    if found is None:
        errors.print(f"{name}: no archived runs in {runtime}", style="dim", soft_wrap=True)
        return 0
    bar.begin(name, list(found.sample))
    try:
        differences = found.rerun(executor, bar.finished)
    except RunError as error:
        bar.close()
        fail(str(error))
    bar.end()
    of = f"{name}: {len(found.sample) - len(differences)} of {len(found.sample)} runs that were made again"
    errors.print(f"{of} are the archive's", style="dim", soft_wrap=True)
    for line in differences[:MAX_SHOWN_FAILURES]:
        errors.print(f"  {line}", style="yellow", soft_wrap=True, markup=False)
    if as_json:
        print_json({**_kept(found.summary), "folder": str(RESULTS_DATA), "interrupted": False})
    else:
        show_summary(found.summary, RESULTS_DATA)
    explained = {each.text for each in definition.experiment.expect if each.why}
    surprises = any(each["state"] == "not met" and each["text"] not in explained for each in found.summary["verdicts"])
    return FAILED if differences or (check and surprises) else 0


def _kept(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {key: summary[key] for key in ("experiment", "complete", "runs", "points", "verdicts", "failures")}


def _is_not_met(summary: Mapping[str, Any]) -> bool:
    return any(verdict.get("within", verdict["met"]) is not True for verdict in summary["verdicts"])


def _finish(campaign: Campaign, done: CampaignResult, bar: _Bar, plots: bool, check: bool, as_json: bool) -> int:
    """Show what came out; returns the exit code."""
    bar.end()
    for note in done.notes:
        errors.print(note, style="yellow", soft_wrap=True, highlight=False, markup=False)
    try:
        pictures = _plots(campaign.folder) if plots and done.summary["points"] else []
    except OSError as error:
        fail(f"{campaign.folder}: no plots: {error.strerror or error}; `fairlane lab plot` makes them later", FAILED)
    hand_over(campaign.folder)
    if as_json:
        print_json({**_kept(done.summary), "folder": str(campaign.folder), "interrupted": done.interrupted})
    else:
        show_summary(done.summary, campaign.folder)
        if done.skipped:
            there = "run was" if done.skipped == 1 else "runs were"
            console.print(f"{done.skipped} {there} there already", style="dim")
        if done.summary["points"]:
            console.print(f"data   {done.path}", soft_wrap=True)
        for picture in pictures:
            console.print(f"plot   {picture}", soft_wrap=True)
    show_failures(done.failures)
    if done.stopped:
        errors.print(f"error: {done.stopped}", style="red", soft_wrap=True, highlight=False, markup=False)
    if done.interrupted:
        kept = (
            "what was measured until then is kept" if done.summary["points"] else "no run had finished, nothing is kept"
        )
        errors.print(f"interrupted: {kept}", style="yellow")
        return 0
    return FAILED if done.failures or done.stopped or (check and _is_not_met(done.summary)) else 0


def _plots(folder: Path) -> list[Path]:
    from fairlane_lab.report.figures import make_plots

    return [picture for picture in make_plots(folder) if picture.suffix == ".png"]


class _Bar:
    """The progress of one campaign after the other, in seconds of the runs, on standard error."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<40}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[runs]}"),
            TimeRemainingColumn(),
            console=errors,
            transient=True,
        )
        self._task: TaskID | None = None
        self._name = ""
        self._total = 0
        self._runs = 0
        self._partial: dict[tuple[str, int], float] = {}

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar away."""
        self._progress.stop()

    def begin(self, name: str, scenarios: list[Scenario]) -> None:
        """Start the bar of a campaign."""
        self._name, self._total, self._runs = name, len(scenarios), 0
        self._partial = {}
        self._task = self._progress.add_task(name, total=sum(each.duration_s for each in scenarios), runs="")
        self._progress.start()

    def end(self) -> None:
        """Take the bar of a finished campaign away."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._progress.stop()
        self._task = None

    def record_progress(self, scenario: Scenario, passed_s: float) -> None:
        """Record the progress of a run: `passed_s` seconds of it are done."""
        key = (scenario.point, scenario.repeat)
        self._advance(passed_s - self._partial.get(key, 0.0))
        self._partial[key] = passed_s

    def finished(self, outcome: Outcome) -> None:
        """A run is over."""
        key = (outcome.scenario.point, outcome.scenario.repeat)
        self._runs += 1
        self._advance(outcome.scenario.duration_s - self._partial.pop(key, 0.0))

    def say(self, text: str, _seconds: float) -> None:
        """What happens now."""
        if self._task is not None:
            self._progress.update(self._task, description=f"{self._name}: {text}")

    def _advance(self, seconds: float) -> None:
        if self._task is not None:
            self._progress.update(self._task, advance=seconds, runs=f"{self._runs} of {self._total} runs")
