# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false
"""Archived runs: the data of the pages in docs/results, small enough to be kept in the repository.

    NAME.RUNTIME.runs.parquet     a row a run; in the file's metadata, under `fairlane`, what was run, when and with what, and of
                                  an experiment that is not in lab/experiments its definition: JSON, by zlib, in base 64
    NAME.RUNTIME.inputs           of such an experiment the files that decided its runs, its own program among them
    NAME.RUNTIME.series.parquet   only what the experiment's plots draw; so are `flows` and `transfers`

Measured numbers have seven digits. Points and verdicts are not kept: they come from the rows and from the experiment's file as it is now.
Whether archived runs would come out the same today is asked by making one run of each point again and comparing it, value by value (`Archived`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import shutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.extend import experiment_names
from fairlane_lab.definition.judging import Cdf, Series
from fairlane_lab.definition.loading import Definition
from fairlane_lab.definition.names import LIMIT_SERIES, RUNTIMES, TRANSFER_METRICS
from fairlane_lab.definition.strict import Runtime
from fairlane_lab.inputs import COPIES, configuration
from fairlane_lab.paths import digest_files
from fairlane_lab.problems import ExperimentError, RunFolderError
from fairlane_lab.report.run_folder import Measured, RunFolder, copy_of, definition_of, open_run, run_of
from fairlane_lab.results import tables
from fairlane_lab.results.folder import origin_problem
from fairlane_lab.results.rows import make_rows, values_of
from fairlane_lab.results.summary import read_rows, summary_of
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep.runners import Executor, Outcome

KEPT = ("runtime", "target", "seed", "quick", "complete", "asked_runs", "definition_sha256", "metadata", "speed", "about")  # fmt: skip
"""Of a summary: what the rows do not say."""
_METADATA = b"fairlane"


def archive_runs(folders: Sequence[Path], data: Path) -> None:
    """Archive run folders; of several of the same experiment and runtime the newest stays. Raises RunFolderError."""
    for run in sorted(map(open_run, folders), key=lambda run: run.started):
        archive_run(run.path, data)


def archive_run(folder: Path, data: Path) -> Path:
    """Put a run folder into the archive `data`, in the place of what it has of this experiment and runtime. Returns the file of the runs.

    Raises RunFolderError for a folder that is none, or is of an experiment that is not valid any more.
    """
    run = open_run(folder)
    try:
        definition_of(run.experiment, run.summary["definition"], run.copy_of_file)
    except ExperimentError as error:
        raise RunFolderError(f"{folder}: {error}") from None
    runs = tables.read(folder / "runs.parquet")
    if runs is None:
        raise RunFolderError(f"{folder}: has no runs.parquet")
    about = {name: run.summary[name] for name in KEPT if name in run.summary}
    if run.experiment not in experiment_names():
        about["definition"] = run.summary["definition"]
        if run.copy_of_file and run.copy_of_file.is_file():
            shutil.copytree(run.path / COPIES, data / f"{run.experiment}.{run.runtime}.{COPIES}", dirs_exist_ok=True)
    data.mkdir(parents=True, exist_ok=True)
    stem = f"{run.experiment}.{run.runtime}"
    for older in archive_files(data, stem):
        older.unlink()
    for name, table in _drawn(run).items():
        tables.write_small(data / f"{stem}.{name}.parquet", table, {})
    path = data / f"{stem}.runs.parquet"
    kept = _once_a_point(runs.select([name for name in runs.column_names if runs[name].null_count < len(runs)]))
    about["rows"] = _rows_digest(tables.as_archived(kept))
    packed = base64.b64encode(zlib.compress(json.dumps(about, sort_keys=True).encode(), 9))
    tables.write_small(path, kept, {_METADATA.decode(): packed.decode()})
    return path


def _once_a_point(runs: pa.Table) -> pa.Table:
    """The runs with the configuration of each point's first repeat alone, which is what `is_stale` asks for: hashes do not get smaller in a file."""
    place, text = runs.column_names.index("configuration"), runs["configuration"]
    first = pc.if_else(pc.equal(runs["repeat"], 0), text, None)  # pyright: ignore[reportAttributeAccessIssue]
    return runs.set_column(place, "configuration", first)


def open_archived(data: Path, definition: Definition, runtime: str) -> RunFolder | None:
    """The archived runs of an experiment in a runtime, judged by its file as it is now; None without any."""
    path = runs_file(data, definition, runtime)
    if not path.exists():
        return None
    about = archived_about(path)
    if about.get("runtime") != runtime:
        raise RunFolderError(f"{path}: not of `fairlane lab publish`: it does not say what was run")
    return run_of(data, summary_of(read_rows(path), definition, about), path.name.removesuffix("runs.parquet"))


def runs_file(data: Path, definition: Definition, runtime: str) -> Path:
    """Where an archive has, or would have, an experiment's runs."""
    return data / f"{definition.experiment.name}.{runtime}.runs.parquet"


def is_stale(data: Path, definition: Definition, run: RunFolder) -> bool:
    """Whether archived runs are of points that are no more, or are run otherwise now; what is asked of them may have changed, and they may be a part of the points."""
    path = runs_file(data, definition, run.runtime)
    rows = pq.read_table(path, columns=["point", "configuration"], filters=[("repeat", "=", 0)]).to_pydict()
    selection = Selection(runtime=run.runtime, seed=run.seed, repeats=1)
    now = {scenario.point: configuration(scenario) for scenario in expand(definition, selection)}
    return not dict(zip(rows["point"], rows["configuration"], strict=True)).items() <= now.items()


def open_measured(data: Path, definition: Definition) -> Measured:
    """The archive's runs of an experiment in every runtime."""
    runs = (open_archived(data, definition, runtime) for runtime in RUNTIMES)
    return Measured(definition, tuple(run for run in runs if run))


def archived_definitions(data: Path) -> list[Definition]:
    """The experiments of which an archive has runs, in alphabetical order: by their files as they are now, others as they were run.

    Raises ExperimentError for a file with errors.
    """
    paths = {path.name.split(".")[0]: path for path in sorted(data.glob("*.runs.parquet"))}
    found: list[Definition | None] = []
    for name, path in sorted(paths.items()):
        about = archived_about(path)
        copy = copy_of(data, path.name.removesuffix("runs.parquet"), about.get("metadata", {}))
        found.append(definition_of(name, about.get("definition"), copy))
    return [definition for definition in found if definition]


def archive_files(data: Path, stem: str) -> list[Path]:
    """The files of `NAME.RUNTIME`, or of `NAME`, sorted."""
    return sorted(data.glob(f"{stem}.*.parquet"))


def digest(data: Path, name: str) -> str:
    """Of all that an archive has of an experiment: 16 hexadecimal digits."""
    return digest_files(archive_files(data, name), 16)


def archive_problem(path: Path) -> str:
    """Why an archive's runs may not be published; empty where they may (`runs_problem`) and are as they were archived."""
    return runs_problem(archived_about(path)) or numbers_problem(path)


def runs_problem(about: Mapping[str, Any]) -> str:
    """Why runs with this summary may not be published; empty where they may: they are whole, and of a commit of the history."""
    if about.get("quick") or not about.get("complete", True):
        return "only complete runs are published, and none of --quick"
    return origin_problem(about.get("metadata", {}))


def numbers_problem(path: Path) -> str:
    """Why an archive's numbers are not to be trusted; empty where they are as they were archived."""
    runs = tables.read(path)
    same = runs is not None and _rows_digest(runs) == archived_about(path).get("rows")
    return "" if same else "its numbers are not those that were archived"


def _rows_digest(runs: pa.Table) -> str:
    """Of all numbers of a table of runs, whatever wrote the file."""
    hashed = hashlib.blake2b(digest_size=8)
    for name in runs.column_names:
        hashed.update(json.dumps([name, runs[name].to_pylist()]).encode())
    return hashed.hexdigest()


def archived_about(path: Path) -> dict[str, Any]:
    """What an archive says of its runs beside the rows."""
    packed = (pq.read_metadata(path).metadata or {}).get(_METADATA)
    return json.loads(zlib.decompress(base64.b64decode(packed))) if packed else {}


def _drawn(run: RunFolder) -> dict[str, pa.Table]:
    """Of the larger tables, what the plots need: a row once, although several plots draw it."""
    wanted: dict[str, pc.Expression] = {}
    for plot in run.definition.plots:
        here = pc.field("point").isin([point.name for point in run.select(plot.where)])
        needs: dict[str, pc.Expression] = {}
        if isinstance(plot, Series):
            here &= pc.field("repeat") == plot.repeat
            needs = {"flows": here, "series": here & pc.field("metric").isin([*plot.metrics, *LIMIT_SERIES])}
        elif isinstance(plot, Cdf) and plot.metric in TRANSFER_METRICS:
            needs = {"transfers": here}
        for name, rows in needs.items():
            wanted[name] = wanted[name] | rows if name in wanted else rows
    found = {name: tables.read(run.path / f"{name}.parquet") for name in wanted}
    return {name: table.filter(wanted[name]) for name, table in found.items() if table is not None}


SAMPLE_S = 20.0
"""What making an experiment's sample again may take on one core, by what its runs took: 66 experiments take less than 15 minutes on two."""
TOLD = ("experiment", "runtime", "target")
"""Columns that name a run and are no result of it."""
GONE = ("bw_reaction_s", "t_res_reaction_s")
"""Metrics of archives that the lab measures no longer: the series `bw_bps` and `t_res_ms` have the reaction to a change."""


@dataclass(frozen=True)
class Archived:
    """An experiment's archived runs, and the sample that shows whether they hold."""

    definition: Definition
    summary: Mapping[str, Any]
    """As a run folder has it, judged by the experiment's file as it is now."""
    rows: Mapping[tuple[str, int], Mapping[str, Any]]
    sample: Sequence[Scenario]
    """One run of each point: of point i the repeat i modulo the repeats, so that every seed has its turn; of points evenly apart where all
    would take longer than `SAMPLE_S`."""

    def rerun(self, executor: Executor, on_outcome: Callable[[Outcome], None]) -> list[str]:
        """Run the sample; returns what differs, a line each: none where the archive is what would be run today."""
        differences: list[str] = []

        def compare(outcome: Outcome) -> None:
            differences.extend(self._differences(outcome))
            on_outcome(outcome)

        executor(self.sample, compare)
        return sorted(differences)

    def _differences(self, outcome: Outcome) -> list[str]:
        scenario = outcome.scenario
        where = f"{scenario.point}, run {scenario.repeat}"
        if outcome.result is None:
            return [f"{where}: {outcome.error}"]
        now = tables.archived_row(make_rows(scenario, outcome.result, "", "")["runs"][0])
        then = self.rows[scenario.point, scenario.repeat]
        for name in {**then, **now}:
            archived, made = values_of((then, now), name)
            if name not in (*TOLD, *GONE) and archived is not None and made != archived:
                return [f"{where}: {name} is {made}, archived is {archived}"]
        return []


def find_archived(data: Path, definition: Definition, runtime: str) -> Archived | None:
    """The archive's runs of an experiment; None without any. Raises RunFolderError for a damaged or changed archive, and where the
    experiment's file asks for other or more points, or runs them otherwise now."""
    run = open_archived(data, definition, runtime)
    if run is None:
        return None
    path = runs_file(data, definition, runtime)
    problem = numbers_problem(path)
    if not problem and is_stale(data, definition, run):
        problem = "the experiment's file runs other points, or runs them otherwise now: run it anew"
    if problem:
        raise RunFolderError(f"{path.name}: {problem}")
    rows = {(row["point"], row["repeat"]): row for row in read_rows(path)}
    repeats = 1 + max(repeat for _, repeat in rows)
    selection = Selection(runtime=cast("Runtime", runtime), seed=run.seed, repeats=repeats)
    places = {point: place for place, point in enumerate(dict.fromkeys(point for point, _ in rows))}
    scenarios = expand(definition, selection)
    if any(each.point not in places for each in scenarios):
        raise RunFolderError(f"{path.name}: the experiment's file has points that were not run: run it anew")
    sample = [each for each in scenarios if each.repeat == places[each.point] % repeats]
    took_s = (run.speed.get("wall_s_of_runs") or 0.0) / len(rows) * len(sample)
    sample = sample[:: max(1, math.ceil(took_s / SAMPLE_S))]
    return Archived(definition, run.summary, rows, sample)
