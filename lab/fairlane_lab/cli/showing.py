# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab show`: what an experiment is, and the table of run folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlane_lab.cli.options import (
    JsonOption,
    complete_experiment,
    console,
    fail,
    find_experiments,
    make_table,
    print_json,
    refusals,
)
from fairlane_lab.cli.tables import show_summary
from fairlane_lab.definition import Definition, Selection, expand, experiment_names
from fairlane_lab.definition.extend import shown
from fairlane_lab.paths import RESULTS_DATA
from fairlane_lab.results.summary_file import read_summary
from fairlane_lab.scenario import Scenario


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
    from fairlane_lab.report.run_folder import RunFolder
    from fairlane_lab.report.tables import result_table

    folder = Path(what)
    if folder.is_dir() or ("/" in what and not what.endswith(".toml")):
        with refusals():
            runs = [RunFolder(each, read_summary(each)) for each in (folder, *(beside or ()))]
            summaries = [run.summary for run in runs]
            if as_json:
                print_json({"runs": summaries} if beside else summaries[0])
            elif beside:
                console.print(result_table(runs))
            else:
                show_summary(summaries[0], folder)
        return
    if beside:
        fail(f"{what!r} is no run folder; allowed: one experiment, or run folders")
    definition = find_experiments([what])[0]
    runs = {runtime: expand(definition, Selection(runtime)) for runtime in definition.experiment.runtimes}
    points = {runtime: list(dict.fromkeys(each.point for each in mine)) for runtime, mine in runs.items()}
    if as_json:
        print_json({**definition.as_json(), "points": points})
    else:
        _print(definition, runs, points)


def _print(definition: Definition, runs: dict[str, list[Scenario]], points: dict[str, list[str]]) -> None:
    experiment = definition.experiment
    console.print(f"[bold]{experiment.name}[/bold]: {experiment.title}")
    files = " → ".join([definition.origin, *map(shown, definition.source.files[1:])])
    console.print(f"{experiment.paper}: {experiment.reproduces}   ({files})", style="dim", soft_wrap=True)
    console.print(" ".join(experiment.what.split()))
    flows = next(iter(runs.values()))[0].flows
    table = make_table(
        "flow", "sender", "from", "to", "application", "connections", "weight", right="connections weight"
    )
    for flow in flows[:8]:
        each = (flow.name, flow.variant, flow.sender, flow.receiver, flow.app.kind)
        table.add_row(*each, str(flow.connections), f"{flow.weight:g}")
    console.print(table)
    if len(flows) > 8:
        console.print(f"… {len(flows)} flows")
    for runtime, mine in runs.items():
        first, names = mine[0], points[runtime]
        at_most = "at most " if first.ends_with_its_files else ""
        console.print(
            f"[bold]{runtime}[/bold]: {len(names)} points, {len(mine)} runs of {at_most}{first.duration_s:g} s"
            f" ({first.warmup_s:g} s not counted){_took(definition, runtime)}"
        )
        console.print("  " + ", ".join(names[:12]) + (f", … {names[-1]}" if len(names) > 12 else ""), style="dim")
    for expectation in experiment.expect:
        where = "" if len(expectation.runtimes) > 1 else f" [dim]({''.join(expectation.runtimes)})[/dim]"
        console.print(f"expected: {expectation.text}{where}", soft_wrap=True, highlight=False)
    name = experiment.name if experiment.name in experiment_names() else definition.origin
    console.print(f"run it: fairlane lab run {name}", style="dim", soft_wrap=True, highlight=False)


def _took(definition: Definition, runtime: str) -> str:
    """What the archived runs took; empty without any."""
    from fairlane_lab.report.archive import archived_about, runs_file
    from fairlane_lab.report.run_folder import RunFolder

    path = runs_file(RESULTS_DATA, definition, runtime)
    return f"; the archived ones took {RunFolder(path, archived_about(path)).minutes} min" if path.exists() else ""
