# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab list` and `show`: which experiments there are, what one of them is, and the table of a run folder."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from fairlane_lab.cli.options import JsonOption, complete_experiment, find_experiments
from fairlane_lab.cli.output import console, fail, print_json
from fairlane_lab.cli.tables import show_summary
from fairlane_lab.definition import Definition, ExperimentError, Selection, expand, experiment_names, load, repeats_of
from fairlane_lab.definition.extend import shown
from fairlane_lab.definition.judging import PaperNumbers
from fairlane_lab.definition.strict import Between, Condition, matches
from fairlane_lab.estimates import kernel_s, mininet_s, sim_s
from fairlane_lab.results.summary_file import RunFolderError, read_summary
from fairlane_lab.scenario import Change, Scenario, connections_of

WIDE_COLUMNS = 120
"""Terminal width from which on the list says what each experiment reproduces."""


def list_experiments(as_json: JsonOption = False) -> None:
    """The experiments that there are: paper, where they run, how many points and runs, about how long."""
    rows: list[dict[str, Any]] = []
    broken: list[str] = []
    for name in experiment_names():
        try:
            rows.append(_row(load(name)))
        except ExperimentError as error:
            broken.append(str(error))
    if as_json:
        print_json({"experiments": rows, "broken": broken})
    else:
        console.print(list_table(rows, console.width))
        console.print(
            "Times are estimates, sim on one core. `fairlane lab show NAME` tells more, `fairlane lab run NAME` runs it.",
            style="dim",
        )
    if broken:
        fail("\n".join(broken))


def list_table(rows: Sequence[Mapping[str, Any]], width: int) -> Table:
    """One line an experiment, those of a paper together; what it reproduces where `width` columns have room for it."""
    wide = width >= WIDE_COLUMNS
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, expand=True)
    table.add_column("name", no_wrap=True)
    table.add_column("what", no_wrap=True, overflow="ellipsis", ratio=3)
    if wide:
        table.add_column("reproduces", no_wrap=True, overflow="ellipsis", ratio=2)
    for head, least in (("points\nx runs", 7), ("sim", 6), ("Mininet", 7)):
        table.add_column(head, justify="right", no_wrap=True, min_width=least)
    for paper, mine in itertools.groupby(
        sorted(rows, key=lambda row: _paper_order(row["paper"])), lambda row: row["paper"]
    ):
        table.add_section()
        table.add_row("", f"[bold]{escape(paper.replace('none:', 'no paper:'))}[/bold]")
        for row in mine:
            times = [_duration(row["estimated_s"].get(runtime)) for runtime in ("sim", "mininet")]
            said = [row["title"], row["reproduces"]] if wide else [row["title"]]
            table.add_row(row["name"], *map(escape, said), f"{row['points']} x {row['repeats']}", *times)
    return table


def _paper_order(paper: str) -> tuple[bool, str]:
    """Papers by their name; what is of no paper comes last."""
    return paper.startswith("none"), paper


def _row(definition: Definition) -> dict[str, Any]:
    experiment = definition.experiment
    found: dict[str, Any] = {
        "name": experiment.name,
        "also": list(experiment.also),
        "title": experiment.title,
        "paper": experiment.paper,
        "reproduces": experiment.reproduces,
        "runtimes": list(experiment.runtimes),
        "estimated_s": {},
    }
    for runtime in experiment.runtimes:
        selection = Selection(runtime=runtime, repeats=1)  # the others take as long
        scenarios = expand(definition, selection)
        repeats = repeats_of(definition, selection)
        found.setdefault("points", len(scenarios))
        found.setdefault("runs", len(scenarios) * repeats)
        found.setdefault("repeats", repeats)
        found["estimated_s"][runtime] = round(estimate_s(definition, runtime, scenarios) * repeats, 1)
    return found


def estimate_s(definition: Definition, runtime: str, scenarios: list[Scenario]) -> float:
    """About how long these runs take: on one core in sim, with the file's topologies side by side in Mininet."""
    if runtime != "mininet":
        return sum((sim_s if runtime == "sim" else kernel_s)(scenario) for scenario in scenarios)
    return sum(mininet_s(scenario) for scenario in scenarios) / definition.experiment.mininet.parallel


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 1 else "< 1 s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def show(
    what: Annotated[
        str,
        typer.Argument(
            help="An experiment, or a run folder such as results/demo/latest.", autocompletion=complete_experiment
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """What an experiment is and what is expected of it; or the table of a run folder."""
    folder = Path(what)
    if folder.is_dir() or ("/" in what and not what.endswith(".toml")):
        show_folder(folder, as_json)
        return
    definition = find_experiments([what])[0]
    if as_json:
        print_json(_everything(definition))
        return
    _show_definition(definition)


def show_folder(folder: Path, as_json: bool) -> None:
    """The table of a run folder, with its verdicts."""
    try:
        summary = read_summary(folder)
        if as_json:
            print_json(summary)
        else:
            show_summary(summary, folder)
    except RunFolderError as error:
        fail(str(error))


def _everything(definition: Definition) -> dict[str, Any]:
    runtimes = definition.experiment.runtimes
    return {
        **definition.as_json(),
        "points": {
            runtime: list(dict.fromkeys(s.point for s in expand(definition, Selection(runtime=runtime))))
            for runtime in runtimes
        },
    }


def _show_definition(definition: Definition) -> None:
    experiment = definition.experiment
    console.print(f"[bold]{experiment.name}[/bold]: {experiment.title}")
    files = " → ".join([definition.origin, *map(shown, definition.source.bases)])
    console.print(f"{experiment.paper}: {experiment.reproduces}   ({files})", style="dim", soft_wrap=True)
    console.print(" ".join(experiment.what.split()))
    for index, runtime in enumerate(experiment.runtimes):
        mine = expand(definition, Selection(runtime=runtime))
        if index == 0:
            _show_setting(mine[0])
        points = list(dict.fromkeys(scenario.point for scenario in mine))
        first = mine[0]
        at_most = "at most " if first.ends_with_its_files else ""
        console.print(
            f"[bold]{runtime}[/bold]: {len(points)} points, {len(mine)} runs of {at_most}{first.duration_s:g} s"
            f" ({first.warmup_s:g} s not counted), about {_duration(estimate_s(definition, runtime, mine))}"
        )
        console.print("  " + ", ".join(points[:12]) + (f", … {points[-1]}" if len(points) > 12 else ""), style="dim")
    params = [scenario.params for runtime in experiment.runtimes for scenario in expand(definition, Selection(runtime))]
    numbers = [each for each in experiment.paper_numbers if any(matches(each.where, point) for point in params)]
    for source in dict.fromkeys(each.source for each in numbers):
        console.print(_paper_table(source, [each for each in numbers if each.source == source]))
    for expectation in experiment.expect:
        where = "" if len(expectation.runtimes) > 1 else f" [dim]({''.join(expectation.runtimes)})[/dim]"
        console.print(f"expected: {expectation.text}{where}", soft_wrap=True, highlight=False)
    name = experiment.name if experiment.name in experiment_names() else definition.origin
    console.print(f"run it: fairlane lab run {name}", style="dim", soft_wrap=True, highlight=False)


def _show_setting(scenario: Scenario) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for flow in scenario.flows[:8]:
        extras = [flow.app.kind]
        extras += [f"{flow.connections} connections"] if flow.connections > 1 else []
        extras += [f"weight {flow.weight:g}"] if flow.weight != 1 else []
        extras += [f"window {flow.window_packets}"] if flow.window_packets else []
        table.add_row("flow", flow.name, flow.variant, f"{flow.sender} → {flow.receiver}", ", ".join(extras))
    if len(scenario.flows) > 8:
        table.add_row("", f"… {len(scenario.flows)} flows", "", "", "")
    for vc in scenario.vcs:
        flows = connections_of(scenario, vc)
        table.add_row(
            "VC",
            vc.name,
            f"MCR {vc.mcr_bps / 1e6:g} Mbit/s",
            f"{len(flows)} {'flow' if len(flows) == 1 else 'flows'}",
            f"MFS {vc.mfs_bytes} bytes",
        )
    for change in scenario.changes:
        table.add_row("change", f"at {change.at_s:g} s", change.link, "", _change(change))
    console.print(table)


def _change(change: Change) -> str:
    values = {
        name: value for name, value in asdict(change).items() if name not in ("at_s", "link") and value is not None
    }
    if values["direction"] == "both":
        del values["direction"]
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )


def _paper_table(source: str, numbers: Sequence[PaperNumbers]) -> Table:
    """The paper's numbers, or those of another source: a row for each condition, in the units of the results."""
    from fairlane_lab.report import labels

    metrics = list(dict.fromkeys(metric for each in numbers for metric in each.values))
    names = labels.rate_names({metric: max(each.values.get(metric, 0.0) for each in numbers) for metric in metrics})
    title = f"Numbers of {source}" if source else "The paper's numbers"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), show_edge=False)
    table.add_column("where", no_wrap=True)
    for metric in metrics:
        base, _, group = names[metric].label.partition(", ")
        table.add_column("\n".join(part for part in (group, base, names[metric].unit) if part), justify="right")
    for each in numbers:
        where = ", ".join(f"{name} {_condition(condition)}" for name, condition in each.where.items())
        values = (labels.format_metric(metric, each.values.get(metric), names[metric]) for metric in metrics)
        table.add_row(where or "everywhere", *values)
    return table


def _condition(condition: Condition) -> str:
    if isinstance(condition, Between):
        return f"{condition.min:g}..{condition.max:g}"
    return ", ".join(map(str, condition)) if isinstance(condition, list) else str(condition)
