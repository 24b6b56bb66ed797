# SPDX-License-Identifier: Apache-2.0
"""Experiments from Python: `fairlane.run_experiment`."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.loading import load
from fairlane_lab.definition.strict import Scalar
from fairlane_lab.problems import ExperimentError, Problem, RunFolderError
from fairlane_lab.report.run_folder import RunFolder, open_run
from fairlane_lab.results.folder import new_folder
from fairlane_lab.run_result import SIM, RunError
from fairlane_lab.sweep.campaign import Campaign, run_campaign
from fairlane_lab.sweep.runners import local_executor
from fairlane_lab.sweep.workers import process_pool


def run_experiment(
    experiment: str | Path,
    *,
    repeats: int | None = None,
    seed: int = 1,
    quick: bool = False,
    values: Mapping[str, Scalar | Sequence[Scalar]] | None = None,
    processes: int = 1,
    results: Path | None = None,
) -> RunFolder:
    """Run an experiment in virtual time, as `fairlane lab run` does, and return what it measured.

    Args:
        experiment: Name of an experiment of fairlane's, or path of a file (.toml).
        repeats: Runs of each point; None: as the experiment says.
        seed: Of all runs: the same seed gives the same numbers.
        quick: The short form that the experiment has for trying.
        values: Parameter -> its value, or the values to sweep over (`--set`).
        processes: How many run side by side, each in a process of its own where there are more than one.
        results: Folder for the run folder; None: `results/`.

    Returns:
        The run folder: `table` (a row a point), `runs`, `flows`, `series` as pandas data frames, `summary["verdicts"]`, `path`.

    Raises:
        ExperimentError: Nothing of that name, a mistake in it, a value that it does not have, or a run that failed.

    """
    chosen = {
        name: (value,) if isinstance(value, str | int | float) else tuple(value)
        for name, value in (values or {}).items()
    }
    definition = load(str(experiment))
    selection = Selection(seed=seed, repeats=repeats, quick=quick, values=chosen)
    expand(definition, selection)
    campaign = Campaign(definition, selection, new_folder(definition.experiment.name, results))
    try:
        done = run_campaign(campaign, local_executor(SIM) if processes == 1 else process_pool(SIM, processes))
    except (RunFolderError, RunError) as error:
        with contextlib.suppress(OSError):  # it may have something in it
            campaign.folder.rmdir()
        raise ExperimentError(definition.origin, [Problem("", str(error))]) from None
    if done.failures or done.stopped:
        problems = [Problem(f"{one.scenario.point}, run {one.scenario.repeat}", one.error) for one in done.failures]
        raise ExperimentError(definition.origin, problems or [Problem("", done.stopped)])
    return open_run(done.path.parent)
