# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab plot`, `report`, `compare`, `claims`, `publish` and `bundle`: what becomes of run folders, later and again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlane_lab.cli.options import complete_experiment
from fairlane_lab.cli.output import JsonOption, console, errors, fail, print_json
from fairlane_lab.definition import ExperimentError
from fairlane_lab.definition.names import RUNTIMES
from fairlane_lab.paths import RESULTS_PAGES, results_root
from fairlane_lab.results.folder import newest_folder
from fairlane_lab.results.metadata import origin_problem
from fairlane_lab.results.summary_file import RunFolderError, read_summary


def plot(folder: Annotated[Path, typer.Argument(help="A run folder, such as results/demo/latest.")]) -> None:
    """Make the plots of a run folder again."""
    from fairlane_lab.report.figures import make_plots

    try:
        pictures = make_plots(folder)
    except RunFolderError as error:
        fail(str(error))
    except (OSError, KeyError, ValueError) as error:
        fail(f"{folder}: not a run folder: {error}")
    for picture in pictures:
        console.print(str(picture), soft_wrap=True)


def report(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Run folders; default: the newest of each experiment and runtime.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder of the pages; default results/report.")] = None,
    results: Annotated[Path | None, typer.Option(help="Where run folders are looked for; default results/.")] = None,
) -> None:
    """A page in Markdown for each experiment: paper, sim, kernel and Mininet side by side, plots, and where differences come from."""
    from fairlane_lab.report import newest_folders
    from fairlane_lab.report.publish import make_report

    root = results or results_root()
    chosen = folders or newest_folders(root)
    if not chosen:
        fail(f"{root}: no run folder of an experiment; run one first: fairlane lab run NAME")
    try:
        for page in make_report(chosen, out or root / "report"):
            console.print(f"page {page}", soft_wrap=True)
    except (RunFolderError, OSError) as error:
        fail(str(error))


def publish(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Run folders that go into the archive; default: none, the pages only.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the pages are; the archive is in its folder data/.")] = RESULTS_PAGES,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Write nothing; exit code 1 where a page differs.")
    ] = False,
) -> None:
    """The pages of docs/results: tables and pictures from archived runs, and what is met, undecided and not met.

    Refused for runs of a changed tree or of a commit that is not in the history, and for archives that were changed.
    """
    from fairlane_lab.report.archive import archive_problem, archive_run
    from fairlane_lab.report.publish import DATA, find_differing_pages, write_pages
    from fairlane_lab.report.run_folder import open_run

    try:
        origins = [(str(folder), origin_problem(open_run(folder).metadata)) for folder in folders or ()]
        if any(problem for _, problem in origins):
            fail("; ".join(f"{name}: {problem}" for name, problem in origins if problem))
        for folder in folders or ():
            console.print(f"archived {archive_run(folder, out / DATA)}", soft_wrap=True)
        archives = [(path.name, archive_problem(path)) for path in sorted((out / DATA).glob("*.runs.parquet"))]
        if not dry_run and any(problem for _, problem in archives):
            fail("not published; " + "; ".join(f"{name}: {problem}" for name, problem in archives if problem))
        with errors.status("publish") as status:

            def say(name: str) -> None:
                status.update(f"publish: {name}")

            differing = find_differing_pages(out, say) if dry_run else []
            pages = [] if dry_run else write_pages(out, say)
    except (RunFolderError, ExperimentError, OSError) as error:
        fail(str(error))
    refused = [f"{name}: {problem}" for name, problem in archives if problem]
    if dry_run and (differing or refused):
        said = f"{', '.join(differing)} in {out}: not what the archive says; run: fairlane lab publish"
        fail("; ".join([*([said] if differing else []), *refused]))
    if pages:
        console.print(f"{len(pages)} pages in {out}", soft_wrap=True)


def claims(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Run folders that judge them; default: the archived runs.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the pages are; the archive is in its folder data/.")] = RESULTS_PAGES,
    as_json: JsonOption = False,
) -> None:
    """What the papers claim, sentence by sentence, and what sim, kernel and Mininet say to it."""
    from fairlane_lab.cli.tables import claims_table
    from fairlane_lab.report.judged import claim_rows, judge_archive, judge_folders
    from fairlane_lab.report.publish import DATA

    try:
        with errors.status("claims"):
            rows = claim_rows(judge_folders(folders) if folders else judge_archive(out / DATA))
    except (RunFolderError, ExperimentError, OSError) as error:
        fail(str(error))
    if as_json:
        print_json({"claims": [row.as_json() for row in rows]})
    else:
        console.print(claims_table(rows))


def bundle(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, such as results/demo/latest.")],
    out: Annotated[Path | None, typer.Option(help="The archive; default NAME-TIME.tar.gz, here.")] = None,
) -> None:
    """One archive of a run folder with all files that decided its runs: unpack it, and one command makes them again, byte for byte."""
    from fairlane_lab.sweep.bundle import COMMAND, make_bundle

    try:
        name = f"{read_summary(run)['experiment']}-{run.resolve().name}.tar.gz"
        target = out or Path(name)
        notes = make_bundle(run, target)
    except (RunFolderError, OSError) as error:
        fail(str(error))
    for note in notes:
        errors.print(f"note: {note}", style="yellow", soft_wrap=True, highlight=False, markup=False)
    folder = target.name.removesuffix(".tar.gz")
    console.print(f"bundle {target}; to repeat it: tar xzf {target.name} && sh {folder}/{COMMAND}", soft_wrap=True)


def compare(
    a: Annotated[
        str, typer.Argument(help="A run folder, or an experiment (its newest run).", autocompletion=complete_experiment)
    ],
    b: Annotated[str, typer.Argument(help="What to set beside it: a run folder, or `sim` or `mininet` of the same.")],
    outside: Annotated[bool, typer.Option(help="Only what lies outside both confidence ranges.")] = False,
    results: Annotated[Path | None, typer.Option(help="Where run folders are looked for; default results/.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Two runs side by side: sim and Mininet, before and after, one seed and another."""
    from fairlane_lab.report import compare_runs, compare_table

    first, second = _run_folders(a, b, results)
    try:
        comparison = compare_runs(first, second)
    except RunFolderError as error:
        fail(str(error))
    if as_json:
        print_json(comparison.as_json())
    else:
        console.print(compare_table(comparison, only_outside=outside))


def _run_folders(a: str, b: str, root: Path | None) -> tuple[Path, Path]:
    """The folders that the arguments of `compare` mean. Leaves with what is wrong."""
    if b in RUNTIMES and not Path(a).is_dir():
        other = "mininet" if b == "sim" else "sim"
        return _newest(a, other, root), _newest(a, b, root)
    first = Path(a) if Path(a).is_dir() else _newest(a, None, root)
    second = Path(b) if Path(b).is_dir() else _newest(b, None, root)
    return first, second


def _newest(name: str, runtime: str | None, root: Path | None) -> Path:
    found = newest_folder(name, root, runtime)
    if found is None:
        where = f" in {runtime}" if runtime else ""
        text = (
            f"{name!r} is no run folder, and {root or results_root()} has no run of an experiment of that name{where}"
        )
        fail(f"{text}. Allowed: a run folder, an experiment that was run, or as the second sim, kernel or mininet")
    return found
