# SPDX-License-Identifier: Apache-2.0
"""What shows experiments, runs and results: `fairlane lab list`, `show`, `plot`, `report`, `publish`, `claims`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from fairlane_controller.errors import bad_file, bad_input
from fairlane_controller.units import format_rate, format_time
from fairlane_switch.link_series import Series
from rich.markup import escape
from rich.table import Table

from fairlane_lab.cli.options import (
    JsonOption,
    ResultsOption,
    complete_experiment,
    console,
    errors,
    find_experiments,
    make_table,
    print_json,
    refusals,
)
from fairlane_lab.definition.extend import experiment_names, read_source, shown
from fairlane_lab.definition.strict import runnable
from fairlane_lab.paths import EXPERIMENTS, RESULTS_DATA, RESULTS_PAGES, results_root
from fairlane_lab.problems import ExperimentError

if TYPE_CHECKING:
    from fairlane_topology.topology import Topology

    from fairlane_lab.definition.expansion import Resolution
    from fairlane_lab.definition.loading import Definition


def show(
    what: Annotated[
        str,
        typer.Argument(
            help="An experiment, or a run folder such as results/demo/latest.", autocompletion=complete_experiment
        ),
    ],
    beside: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN]...", help="Other run folders, whose numbers stand below.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """What an experiment is and what is expected of it; or the table of run folders, side by side."""
    folder = Path(what)
    if folder.is_dir() or ("/" in what and not what.endswith(".toml")):
        from fairlane_lab.cli.tables import show_run
        from fairlane_lab.report.run_folder import open_run
        from fairlane_lab.report.tables import result_table

        with refusals():
            runs = [open_run(each) for each in (folder, *(beside or ()))]
            if as_json:
                print_json({"runs": [run.summary for run in runs]} if beside else runs[0].summary)
            elif beside:
                console.print(result_table(runs))
            else:
                show_run(runs[0])
        return
    if beside:
        raise bad_input(f"{what!r} is no run folder; allowed: one experiment, or run folders")
    definition = find_experiments([what])[0]
    from fairlane_lab.definition.expansion import Selection, resolve
    from fairlane_lab.definition.names import RUNTIMES

    points = {
        runtime: [resolution for _, resolution in resolve(definition, Selection(runtime))]
        for runtime in RUNTIMES
        if definition.experiment.runs_in(runtime)
    }
    if as_json:
        names = {runtime: [each.point.name for each in found] for runtime, found in points.items()}
        print_json({**definition.as_json(), "points": names})
    else:
        _print(definition, points)


def _print(definition: Definition, points: dict[str, list[Resolution]]) -> None:
    from fairlane_lab.definition.expansion import scenario_of

    firsts = {runtime: scenario_of(definition, found[0]) for runtime, found in points.items()}
    experiment = definition.experiment
    console.print(f"[bold]{experiment.name}[/bold]: {experiment.title}")
    files = " → ".join([definition.origin, *map(shown, definition.source.files[1:])])
    console.print(f"{experiment.source}   ({files})", style="dim", soft_wrap=True)
    console.print(" ".join(experiment.what.split()))
    flows = next(iter(firsts.values())).flows
    table = make_table(
        "flow", "sender", "from", "to", "application", "connections", "weight", right="connections weight"
    )
    for flow in flows[:8]:
        each = (flow.name, flow.variant, flow.sender, flow.receiver, flow.app.kind)
        table.add_row(*each, str(flow.connections), f"{flow.weight:g}")
    console.print(table)
    if len(flows) > 8:
        console.print(f"… {len(flows)} flows")
    first_point = next(iter(points.values()))[0]
    console.print(f"links of point {first_point.point.name}:", style="dim", highlight=False)
    console.print(_links_table(first_point.topology.checked))
    names = list[str]()
    for runtime, first in firsts.items():
        before, names = names, [each.point.name for each in points[runtime]]
        runs = sum(each.body.run.repeats for each in points[runtime])
        at_most = "at most " if first.ends_with_its_files else ""
        console.print(
            f"[bold]{runtime}[/bold]: {len(names)} points, {runs} runs of {at_most}{first.duration_s:g} s"
            f" ({first.warmup_s:g} s not counted){_took(definition, runtime)}"
        )
        if names != before:
            console.print("  " + ", ".join(names[:12]) + (f", … {names[-1]}" if len(names) > 12 else ""), style="dim")
    bounds = Counter((each.text, each.runtimes) for each in experiment.expect)
    for (text, runtimes), count in bounds.items():
        where = "" if len(runtimes) > 1 else f" [dim]({''.join(runtimes)})[/dim]"
        many = f" [dim]({count} bounds)[/dim]" if count > 1 else ""
        console.print(f"expected: {text}{where}{many}", soft_wrap=True, highlight=False)
    name = experiment.name if experiment.name in experiment_names() else definition.origin
    default, *others = points
    where = "" if default == "sim" else f" --runtime {default}"
    also = f"   (or --runtime {', '.join(others)})" if others else ""
    console.print(f"run it: fairlane lab run {name}{where}{also}", style="dim", soft_wrap=True, highlight=False)


def _links_table(topology: Topology) -> Table:
    """Directions of links that have a rate, a delay or losses, with the queue before each; those that are alike share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for link in topology.links:
        for sender, receiver, way in ((link.a, link.b, link.a_to_b), (link.b, link.a, link.b_to_a)):
            port = topology.ports.get(sender.node, {}).get(sender.port)
            rate = min(filter(None, (port.rate_bps if port else 0, way.rate_bps)), default=0)
            if not rate and way.is_plain:
                continue
            queue = ""
            if port:
                queue = port.qdisc or f"{port.queue_packets} packets, {port.queues} {port.scheduler}"
            more = way.model_dump(exclude_defaults=True, exclude={"delay_us", "rate_bps"}).items()
            also = ", ".join(f"{key} {'varies' if isinstance(value, Series) else value}" for key, value in more)
            numbers = ["" if not rate else "varies" if isinstance(rate, Series) else format_rate(rate)]
            numbers.append("varies" if isinstance(way.delay_us, Series) else format_time(way.delay_us / 1e6))
            rows.setdefault((*numbers, queue, also), []).append(f"{sender} → {receiver}")
    table = make_table("direction", "rate", "delay", "queue", "also", right="rate delay")
    for row, alike in rows.items():
        table.add_row(alike[0] + (f", {len(alike) - 1} more" if len(alike) > 1 else ""), *row)
    return table


def _took(definition: Definition, runtime: str) -> str:
    """What the archived runs took; empty without any."""
    from fairlane_lab.report.archive import archived_about, runs_file
    from fairlane_lab.report.run_folder import minutes

    path = runs_file(RESULTS_DATA, definition, runtime)
    return f"; core minutes of the archived ones: {minutes(archived_about(path))}" if path.exists() else ""


_SHOWN = ("name", "title", "paper", "reproduces", "runtimes")


def list_experiments(as_json: JsonOption = False) -> None:
    """The experiments that there are: paper, and where they run."""
    rows: list[dict[str, Any]] = []
    broken: list[str] = []
    for name in experiment_names():
        try:
            document = read_source(EXPERIMENTS / f"{name}.toml").document
            rows.append({key: document[key] for key in _SHOWN})
        except ExperimentError as error:
            broken.append(str(error))
        except KeyError:  # it was not checked: `show` says all that is wrong
            broken.append(f"{name}: has mistakes: `fairlane lab show {name}` says which")
    if as_json:
        print_json({"experiments": rows, "broken": broken})
    else:
        _print_list(rows)
    if broken:
        raise bad_file("\n".join(broken))


def _print_list(rows: list[dict[str, Any]]) -> None:
    """One line an experiment, those of a paper together; what is of no paper comes last."""
    table = make_table("name", "what", "runs in", expand=True)
    for column in table.columns:
        column.no_wrap = True
    table.columns[1].overflow, table.columns[1].ratio = "ellipsis", 1
    paper = ""
    for row in sorted(rows, key=lambda row: (row["paper"].startswith("none"), row["paper"])):
        if row["paper"] != paper:
            paper = row["paper"]
            table.add_section()
            table.add_row("", f"[bold]{escape(paper.replace('none:', 'no paper:'))}[/bold]")
        table.add_row(row["name"], escape(row["title"]), ", ".join(runnable(row["runtimes"])))
    console.print(table)
    console.print("`fairlane lab show NAME` says more.", style="dim")


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
    from fairlane_lab.report.publish import make_report
    from fairlane_lab.report.run_folder import newest_folders

    root = results or results_root()
    chosen = folders or newest_folders(root)
    if not chosen:
        raise bad_file(f"{root}: no run folder of an experiment; run one first: fairlane lab run NAME")
    with refusals():
        for page in make_report(chosen, out or root / "report"):
            console.print(f"page {page}", soft_wrap=True)


def publish(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Run folders that go into the archive; default: none, the pages only.")
    ] = None,
    out: PagesOption = RESULTS_PAGES,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Write nothing; exit code 3 where a page differs.")
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
            raise bad_file("; ".join(problems))
        for folder in folders or ():
            console.print(f"archived {archive_run(folder, out / DATA)}", soft_wrap=True)
        archives = {path.name: archive_problem(path) for path in sorted((out / DATA).glob("*.runs.parquet"))}
        refused = [f"{name}: {problem}" for name, problem in archives.items() if problem]
        if dry_run and (differing := find_differing_pages(out, report_page)):
            refused.insert(0, f"{', '.join(differing)} in {out}: not what the archive says; run: fairlane lab publish")
        if refused:
            raise bad_file("not published; " + "; ".join(refused))
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
