# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab list` and `show`: which experiments there are, what one of them is, and the table of a run folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from fairlane_lab.cli.demo import comparison_table
from fairlane_lab.cli.options import JsonOption, find_experiments
from fairlane_lab.cli.output import console, fail, print_json
from fairlane_lab.cli.tables import show_summary
from fairlane_lab.definition import Definition, ExperimentError, Selection, expand, experiment_names, load
from fairlane_lab.definition.judging import PaperNumbers
from fairlane_lab.definition.strict import Between, Condition
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep.runners import cost

SIM_COST_PER_S = 70_000
"""What one core simulates in a second of wall time, in units of `cost` (packets of the bottleneck); for estimates only."""
MININET_RUN_S = 4.0
"""What a real run costs beside its duration, for estimates only."""


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
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
        for head in ("name", "what", "reproduces"):
            table.add_column(head, overflow="fold")
        for head in ("points", "runs", "sim", "Mininet"):
            table.add_column(head, justify="right", no_wrap=True)
        for row in rows:
            times = [_duration(row["estimated_s"].get(runtime)) for runtime in ("sim", "mininet")]
            table.add_row(row["name"], row["title"], row["reproduces"], str(row["points"]), str(row["runs"]), *times)
        console.print(table)
        console.print("Times are estimates: sim on one core. `fairlane lab show NAME` tells more.", style="dim")
    if broken:
        fail("\n".join(broken))


def _row(definition: Definition) -> dict[str, Any]:
    experiment = definition.experiment
    found: dict[str, Any] = {
        "name": experiment.name,
        "title": experiment.title,
        "paper": experiment.paper,
        "reproduces": experiment.reproduces,
        "runtimes": list(experiment.runtimes),
        "estimated_s": {},
    }
    for runtime in experiment.runtimes:
        scenarios = expand(definition, Selection(runtime=runtime))
        found.setdefault("points", len({scenario.point for scenario in scenarios}))
        found.setdefault("runs", len(scenarios))
        found["estimated_s"][runtime] = round(estimate_s(definition, runtime, scenarios), 1)
    return found


def estimate_s(definition: Definition, runtime: str, scenarios: list[Scenario]) -> float:
    """About how long these runs take: on one core in sim, with the file's topologies side by side in Mininet."""
    if runtime == "sim":
        return sum(cost(scenario) for scenario in scenarios) / SIM_COST_PER_S
    seconds = sum(scenario.duration_s + MININET_RUN_S for scenario in scenarios)
    return seconds / definition.experiment.mininet.parallel


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 1 else "< 1 s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def show(
    what: Annotated[str, typer.Argument(help="An experiment, or a run folder such as results/demo/latest.")],
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
    """The table of a run folder: a demo's, or an experiment's with its verdicts."""
    try:
        summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    except (OSError, json.JSONDecodeError) as error:
        fail(f"{folder}: not a run folder with a summary.json: {error}")
    if as_json:
        print_json(summary)
    elif "rows" in summary:
        console.print(comparison_table(summary))
    else:
        show_summary(summary, folder)


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
    console.print(f"{experiment.paper}: {experiment.reproduces}   ({definition.origin})", style="dim", soft_wrap=True)
    console.print(" ".join(experiment.what.split()))
    for index, runtime in enumerate(experiment.runtimes):
        mine = expand(definition, Selection(runtime=runtime))
        if index == 0:
            _show_setting(mine[0])
        points = list(dict.fromkeys(scenario.point for scenario in mine))
        first = mine[0]
        console.print(
            f"[bold]{runtime}[/bold]: {len(points)} points, {len(mine)} runs of {first.duration_s:g} s"
            f" ({first.warmup_s:g} s not counted), about {_duration(estimate_s(definition, runtime, mine))}"
        )
        console.print("  " + ", ".join(points[:12]) + (f", … {points[-1]}" if len(points) > 12 else ""), style="dim")
    for numbers in experiment.paper_numbers:
        console.print(_numbers(numbers), soft_wrap=True, highlight=False, markup=False)
    for expectation in experiment.expect:
        where = "" if len(expectation.runtimes) > 1 else f" [dim]({''.join(expectation.runtimes)})[/dim]"
        console.print(f"expected: {expectation.text}{where}", soft_wrap=True, highlight=False)


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
    for change in scenario.changes:
        table.add_row("change", f"at {change.at_s:g} s", change.link, "", _change(change))
    console.print(table)


def _change(change: Any) -> str:
    named = ("delay_ms", "rate_bps", "loss", "ber", "spike_s", "outage_s")
    return ", ".join(f"{name} {getattr(change, name):g}" for name in named if getattr(change, name) is not None)


def _numbers(numbers: PaperNumbers) -> str:
    where = ", ".join(f"{name} {_condition(condition)}" for name, condition in numbers.where.items())
    values = ", ".join(f"{name} {value:g}" for name, value in numbers.values.items())
    source = f" ({numbers.source})" if numbers.source else ""
    return f"paper{source}: {where + ': ' if where else ''}{values}"


def _condition(condition: Condition) -> str:
    if isinstance(condition, Between):
        return f"{condition.min:g}..{condition.max:g}"
    return ", ".join(map(str, condition)) if isinstance(condition, list) else str(condition)
