# SPDX-License-Identifier: Apache-2.0
"""What a finished campaign shows in the terminal: the result table, the verdicts, the failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from fairlane_lab.cli.output import console, errors
from fairlane_lab.definition.metric import parse_metric
from fairlane_lab.definition.names import PARAMETERS, RUNTIMES, Name
from fairlane_lab.sweep.runners import Failure

if TYPE_CHECKING:
    from fairlane_lab.report.judged import ClaimRow

MAX_SHOWN_FAILURES = 10
MAX_SHOWN_ALIKE = 3


def show_summary(summary: Mapping[str, Any], folder: Path) -> None:
    """Result table, verdicts, and whether it is complete."""
    from fairlane_lab.report import result_table

    if not summary["points"]:
        return
    console.print(result_table(summary, folder))
    for line in verdict_lines(summary["verdicts"]):
        console.print(line, soft_wrap=True, highlight=False)
    if not summary["complete"]:
        console.print(
            f"not complete: {summary['runs']} of {summary['asked_runs']} runs are in {folder}",
            style="yellow",
            soft_wrap=True,
        )


def verdict_lines(verdicts: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each verdict, of a sentence few with the same state; one for all that are about points of which there is no run, as with
    `--set`, `--quick` or a failure."""
    alike: dict[tuple[str, str], list[str]] = {}
    for verdict in verdicts:
        if verdict["points"]:
            alike.setdefault((verdict["text"], verdict["state"]), []).append(verdict_line(verdict))
    lines: list[str] = []
    for (text, state), found in alike.items():
        lines += found[:MAX_SHOWN_ALIKE]
        if len(found) > MAX_SHOWN_ALIKE:
            lines.append(f"{_STATES[state]} {text} · {len(found) - MAX_SHOWN_ALIKE} more")
    if others := sum(not verdict["points"] for verdict in verdicts):
        what = "1 expectation is" if others == 1 else f"{others} expectations are"
        lines.append(f"{_STATES['no data']} {what} about points that were not run")
    return lines


def verdict_line(verdict: Mapping[str, Any]) -> str:
    """`met        Vegas gets 6 to 17 %…, case 2M-2ms: 7.5 % (7.1 to 7.9)`; of an undecided one also what would decide it."""
    state = _STATES[verdict["state"]]
    about = Name("quotient", "%", 100) if verdict.get("relative_to") else _metric_name(verdict["metric"])
    per = ", ".join(f"{name} {value}" for name, value in verdict["per"].items() if name != "point")
    if not per and len(verdict["points"]) == 1 and verdict["points"] != ["only"]:
        per = verdict["points"][0]
    if verdict["value"] is None:
        value = "nothing qualifies" if verdict["met"] is False else "not measured"
    else:
        value = f"{verdict['value'] * about.scale:.4g} {about.unit}".strip()
        if verdict["runs"] > 1:
            count = f"n = {verdict['runs']}"
            ends = [verdict["lo"], verdict["hi"]]
            interval = verdict.get("same") or " to ".join(f"{end * about.scale:.4g}" for end in ends if end is not None)
            value += f" ({', '.join(filter(None, [interval, count]))})"
        if verdict["state"] in ("undecided", "too few by design"):
            value += " " + undecided_text(verdict)
    return f"{state} {verdict['text']}{' · ' + per if per else ''}: {value}"


_COLOURS = {"met": "green", "not met": "red", "undecided": "yellow", "too few by design": "yellow", "no data": "yellow", "not run": "dim"}  # fmt: skip
_STATES = {
    state: f"[{colour}]{state}[/{colour}]" + " " * (len("undecided") - len(state)) for state, colour in _COLOURS.items()
}


def undecided_text(verdict: Mapping[str, Any]) -> str:
    """On which side of the bound the value is, and how many runs would show it."""
    side = "within" if verdict.get("within", verdict["met"]) else "outside"
    needed = verdict["runs_needed"]
    return f"({side}; " + ("no number of runs decides it)" if needed is None else f"about {needed} runs decide it)")


def _metric_name(metric: str) -> Name:
    if metric in PARAMETERS:
        return PARAMETERS[metric]
    first, divisor = parse_metric(metric)
    return Name("quotient", "%", 100) if divisor else first.about


def claims_table(rows: Sequence[ClaimRow]) -> Table:
    """A line a claim: what the paper says, the bound, and what each runtime answers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for head in ("", "the paper says", "bound", "paper", *RUNTIMES):
        table.add_column(head, overflow="fold")
    paper = ""
    for row in rows:
        if row.claim.paper != paper:
            paper = row.claim.paper
            table.add_section()
            table.add_row("", Text(paper, style="bold"))
        said = (row.claim.id, f"{row.claim.where}: {row.claim.sentence}", row.claim.bound, row.claim.paper_number)
        answers = [
            Text(str(row.answers[runtime]), style=_COLOURS.get(row.answers[runtime].state, "")) for runtime in RUNTIMES
        ]
        table.add_row(*map(Text, said), *answers)
    return table


def show_failures(failures: Sequence[Failure]) -> None:
    """A table of the runs that have no result; runs with the same error share a row."""
    if not failures:
        return
    table = Table(
        title=f"{len(failures)} {'run' if len(failures) == 1 else 'runs'} failed",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
    )
    table.add_column("point")
    table.add_column("repeat", justify="right")
    table.add_column("why", overflow="fold")
    groups: dict[str, list[Failure]] = {}
    for failure in failures:
        groups.setdefault(failure.error, []).append(failure)
    for first, *others in list(groups.values())[:MAX_SHOWN_FAILURES]:
        same = f"\n… and {len(others)} more for the same reason" if others else ""
        table.add_row(first.point, str(first.repeat), Text(first.error + same))
    errors.print(table)
    hidden = sum(len(group) for group in list(groups.values())[MAX_SHOWN_FAILURES:])
    if hidden:
        errors.print(f"… and {hidden} more; all are in summary.json", style="dim")
