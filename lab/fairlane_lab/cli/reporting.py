# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab plot`, `report`, `claims` and `publish`: what becomes of run folders, later and again."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from fairlane_lab.cli.options import (
    JsonOption,
    ResultsOption,
    console,
    errors,
    fail,
    print_json,
    refusals,
)
from fairlane_lab.paths import RESULTS_PAGES, results_root

FolderArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, such as results/demo/latest.")]
PagesOption = Annotated[Path, typer.Option(help="Where the pages are; the archive is in its folder data/.")]


def plot(folder: FolderArgument) -> None:
    """Make the plots of a run folder again."""
    from fairlane_lab.report.figures import make_plots

    with refusals():
        for picture in make_plots(folder):
            console.print(str(picture), soft_wrap=True)


def report(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Run folders; default: the newest of each experiment and runtime.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder of the pages; default results/report.")] = None,
    results: ResultsOption = None,
) -> None:
    """A page in Markdown for each experiment: paper, sim, kernel and Mininet side by side, plots, and where differences come from.

    What was reported into the same folder before stays on its pages, but for newer runs of the same experiment and runtime.
    """
    from fairlane_lab.report import newest_folders
    from fairlane_lab.report.publish import make_report

    root = results or results_root()
    chosen = folders or newest_folders(root)
    if not chosen:
        fail(f"{root}: no run folder of an experiment; run one first: fairlane lab run NAME")
    with refusals():
        for page in make_report(chosen, out or root / "report"):
            console.print(f"page {page}", soft_wrap=True)


def publish(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Run folders that go into the archive; default: none, the pages only.")
    ] = None,
    out: PagesOption = RESULTS_PAGES,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Write nothing; exit code 1 where a page differs.")
    ] = False,
) -> None:
    """The pages of docs/results: tables and pictures from archived runs, and what is met, undecided and not met.

    Refused for runs that are not whole, of a changed tree or of a commit that is not in the history, and for archives that were changed.
    """
    from fairlane_lab.report.archive import archive_problem, archive_run, runs_problem
    from fairlane_lab.report.publish import DATA, find_differing_pages, write_pages
    from fairlane_lab.report.run_folder import open_run

    with refusals(), errors.status("publish") as status:

        def report_page(name: str) -> None:
            status.update(f"publish: {name}")

        origins = {folder: runs_problem(open_run(folder).summary) for folder in folders or ()}
        if problems := [f"{folder}: {problem}" for folder, problem in origins.items() if problem]:
            fail("; ".join(problems))
        for folder in folders or ():
            console.print(f"archived {archive_run(folder, out / DATA)}", soft_wrap=True)
        archives = {path.name: archive_problem(path) for path in sorted((out / DATA).glob("*.runs.parquet"))}
        refused = [f"{name}: {problem}" for name, problem in archives.items() if problem]
        if dry_run and (differing := find_differing_pages(out, report_page)):
            refused.insert(0, f"{', '.join(differing)} in {out}: not what the archive says; run: fairlane lab publish")
        if refused:
            fail("not published; " + "; ".join(refused))
        if not dry_run:
            console.print(f"{len(write_pages(out, report_page))} pages in {out}", soft_wrap=True)


def claims(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Run folders that judge them; default: the archived runs.")
    ] = None,
    out: PagesOption = RESULTS_PAGES,
    as_json: JsonOption = False,
) -> None:
    """What the papers claim, sentence by sentence, and what sim, kernel and Mininet say to it."""
    from fairlane_lab.cli.tables import claims_table
    from fairlane_lab.report.archive import archive_runs
    from fairlane_lab.report.judged import claim_rows, judge_archive
    from fairlane_lab.report.publish import DATA

    with refusals(), errors.status("claims"), TemporaryDirectory() as data:
        archive_runs(folders or [], Path(data))
        rows = claim_rows(judge_archive(Path(data) if folders else out / DATA))
    if as_json:
        print_json({"claims": [row.as_json() for row in rows]})
    else:
        console.print(claims_table(rows))
