# SPDX-License-Identifier: Apache-2.0
"""What a finished campaign shows in the terminal: the result table, the verdicts, the failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from fairlane_lab.cli.options import console, make_table, note
from fairlane_lab.definition.names import RUNTIMES

if TYPE_CHECKING:
    from fairlane_lab.report.judged import ClaimRow
    from fairlane_lab.report.run_folder import RunFolder
    from fairlane_lab.results.verdicts import Verdict

MAX_SHOWN = 10
MAX_SHOWN_ALIKE = 3
_COLOURS = {"met": "green", "not met": "red", "not run": "dim"}
_OPEN = "yellow"


def show_run(run: RunFolder) -> None:
    """Result table, verdicts, and whether it is complete."""
    from fairlane_lab.report.tables import result_table

    if not run.points:
        return
    console.print(result_table([run]))
    for line in verdict_lines(run.verdicts):
        console.print(line, soft_wrap=True, highlight=False)
    if not run.complete:
        text = f"not complete: {run.summary['runs']} of {run.summary['asked_runs']} runs are in {run.path}"
        console.print(text, style="yellow", soft_wrap=True)


def verdict_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """A line for each verdict, of a sentence few with the same state; one for all that are about points of which there is no run, as with
    `--set`, `--quick` or a failure."""
    alike: dict[tuple[str, str], list[str]] = {}
    for verdict in verdicts:
        if verdict.points:
            alike.setdefault((verdict.text, verdict.state), []).append(_verdict_line(verdict))
    lines: list[str] = []
    for (text, state), found in alike.items():
        lines += found[:MAX_SHOWN_ALIKE]
        if len(found) > MAX_SHOWN_ALIKE:
            lines.append(f"{_state(state)} {text} · {len(found) - MAX_SHOWN_ALIKE} more")
    if others := sum(not verdict.points for verdict in verdicts):
        lines.append(f"{_state('no data')} expectations about points that were not run: {others}")
    return lines


def _state(state: str) -> str:
    colour = _COLOURS.get(state, _OPEN)
    return f"[{colour}]{state}[/{colour}]" + " " * (len("undecided") - len(state))


def _verdict_line(verdict: Verdict) -> str:
    """`met        Vegas gets 6 to 17 %… · 2M-2ms: 7.5 % (7.1 to 7.9, n = 20)`."""
    from fairlane_lab.report.judged import Judged

    bound, points = Judged("", "", "", verdict, None), verdict.points
    where = bound.per or (points[0] if len(points) == 1 and points != ["only"] else "")
    value = bound.value or ("nothing qualifies" if verdict.met is False else "not measured")
    if bound.value and bound.runs > 1:
        value += f" ({', '.join(filter(None, (bound.interval, f'n = {bound.runs}')))})"
    if bound.value and bound.state in ("undecided", "too few by design"):
        value += " (within)" if verdict.within else " (outside)"
    elif bound.value and bound.state == "no data":
        value += " (other points were not measured)"
    return f"{_state(bound.state)} {bound.text}{f' · {where}' if where else ''}: {value}"


def claims_table(rows: Sequence[ClaimRow]) -> Table:
    """A line a claim: what the paper says, the bound, and what each runtime answers."""
    table = make_table("", "the paper says", "bound", "paper", *RUNTIMES)
    paper = ""
    for row in rows:
        if row.claim.paper != paper:
            paper = row.claim.paper
            table.add_section()
            table.add_row("", Text(paper, style="bold"))
        claim = (row.claim.id, f"{row.claim.where}: {row.claim.sentence}", row.claim.bound, row.claim.paper_number)
        answers = [row.answers[runtime] for runtime in RUNTIMES]
        table.add_row(*map(Text, claim), *(Text(str(each), style=_COLOURS.get(each.state, _OPEN)) for each in answers))
    return table


def show_failures(failures: Sequence[Mapping[str, Any]], is_kept: bool) -> None:
    """The runs that have no result, as a summary has them; runs with the same error share a line. `is_kept`: the summary is in a file."""
    reasons: dict[str, list[str]] = {}
    for failure in failures:
        reasons.setdefault(failure["error"], []).append(f"{failure['point']}, run {failure['repeat']}")
    if failures:
        note(f"failed runs: {len(failures)}{'; all are in summary.json' if is_kept else ''}", "red")
    for reason, runs in list(reasons.items())[:MAX_SHOWN]:
        note(f"  {runs[0]}{f' and {len(runs) - 1} more' if len(runs) > 1 else ''}: {reason}", "red")
