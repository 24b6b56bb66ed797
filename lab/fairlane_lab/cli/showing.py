# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab show`: what an experiment is, and the table of a run folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from fairlane_topology.links import LinkChange
from rich import box
from rich.table import Table

from fairlane_lab.cli.listing import duration
from fairlane_lab.cli.options import complete_experiment, find_experiments
from fairlane_lab.cli.output import JsonOption, console, fail, print_json
from fairlane_lab.cli.tables import show_summary
from fairlane_lab.definition import Definition, Selection, expand, experiment_names
from fairlane_lab.definition.extend import shown
from fairlane_lab.definition.judging import PaperNumbers
from fairlane_lab.definition.strict import Between, Condition, matches
from fairlane_lab.estimates import kernel_s, mininet_s, sim_s
from fairlane_lab.results.summary_file import RunFolderError, read_summary
from fairlane_lab.scenario import Scenario, connections_of


def estimate_s(definition: Definition, runtime: str, scenarios: list[Scenario]) -> float:
    """About how long these runs take: on one core in sim, with the file's topologies side by side in Mininet."""
    if runtime != "mininet":
        return sum((sim_s if runtime == "sim" else kernel_s)(scenario) for scenario in scenarios)
    return sum(mininet_s(scenario) for scenario in scenarios) / definition.experiment.mininet.parallel


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
            f" ({first.warmup_s:g} s not counted), about {duration(estimate_s(definition, runtime, mine))}"
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


def _change(change: LinkChange) -> str:
    values = {
        name: value for name, value in change.model_dump().items() if name not in ("at_s", "link") and value is not None
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
