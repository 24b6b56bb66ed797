# SPDX-License-Identifier: Apache-2.0
"""An experiment as a part of a page: what it was asked, what came out, what differs; and its tables as CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from fairlane_lab.definition import experiment_names
from fairlane_lab.definition.claims import ClaimBound
from fairlane_lab.definition.draws import draws_of
from fairlane_lab.definition.judging import Changed
from fairlane_lab.definition.plots import Plot
from fairlane_lab.report import labels
from fairlane_lab.report.archive import is_stale
from fairlane_lab.report.differences import Line, find_differences
from fairlane_lab.report.judged import Judged, Sentence, judge, sentences
from fairlane_lab.report.run_folder import Measured
from fairlane_lab.report.tables import Numbers, main_metrics, numbers

PLOTS = "plots"
TABLES = "tables"


@dataclass(frozen=True)
class Section(Measured):
    """What the template of a page gets of an experiment."""

    @property
    def is_known(self) -> bool:
        """Whether its file is one of lab/experiments."""
        return self.name in experiment_names()

    @property
    def stale(self) -> list[str]:
        """Runtimes that were measured before the experiment's file changed; of a file that is not one of lab/experiments it is not known."""
        known = self.is_known
        return [run.runtime for run in self.runs if known and is_stale(run.path, self.definition, run)]

    @property
    def command(self) -> str:
        """What makes the first of its runs again."""
        run = self.runs[0]
        runtime = "" if run.runtime == "sim" else f" --runtime {run.runtime}"
        seed = "" if run.summary["seed"] == 1 else f" --seed {run.summary['seed']}"
        file = run.copy.name if run.copy and not self.is_known else self.name
        return f"fairlane lab run {file}{runtime}{seed}"

    @property
    def drawn(self) -> str:
        """What differs from run to run."""
        return draws_of(self.definition.document).text()

    @cached_property
    def metrics(self) -> list[str]:
        """The main metrics of the newest run, then what the paper has numbers of."""
        newest = self.newest
        there = {metric for run in self.runs for point in run.points for metric in point.metrics}
        paper = [metric for entry in newest.paper for metric in entry.values if metric in there]
        return list(dict.fromkeys([*main_metrics(newest), *paper]))

    @cached_property
    def numbers(self) -> Numbers:
        """The table of paper and runtimes."""
        return numbers(self.points(), self.newest, self.metrics, intervals=True)

    @cached_property
    def pictures(self) -> dict[str, Plot]:
        """Each plot that has points, by the link to its picture."""
        plots = [plot for plot in self.newest.plots if any(run.select(plot.where) for run in self.runs)]
        return {f"{PLOTS}/{self.name}-{plot.name}.svg": plot for plot in plots}

    @cached_property
    def differences(self) -> list[Line]:
        """Every difference, and what explains it."""
        return find_differences(self, self.metrics)

    @property
    def causes(self) -> list[tuple[str, str]]:
        """Causes of differences, each with the comparisons that it explains; an empty cause: nothing explains them. What lies within the spread of the repeats is none."""
        found: dict[str, Counter[str]] = {}
        for line in self.differences:
            for cause in () if line.in_spread else line.notes or ("",):
                found.setdefault(cause, Counter())[_pair(line)] += len(line.shares)
        return [(cause, ", ".join(f"{pair} ({count})" for pair, count in of.items())) for cause, of in found.items()]

    @property
    def remarks(self) -> list[str]:
        """Notes on the experiment that explain no difference."""
        return [note.text for note in self.definition.experiment.notes if note.is_remark]

    @cached_property
    def judged(self) -> list[Judged]:
        """Every bound in every runtime in which it is asked."""
        return judge(self)

    @cached_property
    def sentences(self) -> list[Sentence]:
        """What the experiment asks, a row for each sentence."""
        return sentences(self.judged)

    @property
    def whys(self) -> dict[str, list[str]]:
        """Why sentences are not met, as far as it is known, each reason with its sentences."""
        found: dict[str, list[str]] = {}
        for row in self.sentences:
            if row.why:
                found.setdefault(row.why, []).append(row.text)
        return found

    @property
    def changed(self) -> list[tuple[str, Changed]]:
        """Every bound of its own that was changed after it was measured, and how."""
        expect = self.definition.experiment.expect
        return [(each.text, change) for each in expect if not isinstance(each, ClaimBound) for change in each.changed]

    @cached_property
    def tables(self) -> dict[str, str]:
        """All that it has, as CSV: bounds, their changes, numbers, differences; by the file's name."""
        rows = ((row.point, row.source, row.runs, *row.cells) for row in self.numbers.rows)
        found = {
            "bounds": bounds_csv(self.judged),
            "changes": changes_csv(self.changed) if self.changed else "",
            "numbers": to_csv(("point", "in", "n", *self.numbers.heads), rows),
            "differences": _differences_csv(self.differences) if self.differences else "",
        }
        return {f"{TABLES}/{self.name}.{kind}.csv": text for kind, text in found.items() if text}


def bounds_csv(judged: Iterable[Judged]) -> str:
    """A row for each bound in each runtime."""
    head = ("sentence", "claim", "for", "bound", "runtime", "measured", "95 % interval", "n", "verdict", "runs that would decide")  # fmt: skip
    lines = [
        (each.text, each.claim, ", ".join(filter(None, (each.per, each.at))), each.bound, each.runtime, each.value,
         each.interval, each.runs, "not judged" if each.state == "no data" else each.state,
         each.verdict.get("runs_needed") or "")
        for each in judged
    ]  # fmt: skip
    return to_csv(head, lines)


def changes_csv(changed: Iterable[tuple[str, Changed]]) -> str:
    """A row for each change of a bound."""
    head = ("bound of", "day", "from", "to", "why")
    return to_csv(head, ((of, each.day, each.before, each.after, one_line(each.why)) for of, each in changed))


def _differences_csv(differences: Iterable[Line]) -> str:
    head = ("metric", "in", "differs from", "points that differ", "points compared", "smallest", "largest", "cause")
    lines = [
        (labels.name_of(line.metric).label, *_pair(line).split(" against "), len(line.shares), line.compared,
         *(f"{end(line.shares.values()):+.1%}" for end in (min, max)),
         one_line(" ".join(line.notes)) or ("spread of the repeats" if line.in_spread else "not explained"))
        for line in differences
    ]  # fmt: skip
    return to_csv(head, lines)


def _pair(line: Line) -> str:
    against = "the paper" if line.against == "paper" else labels.value_label("runtime", line.against)
    return f"{labels.value_label('runtime', line.measured)} against {against}"


def to_csv(head: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """A table as the text of its file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def one_line(text: object) -> str:
    """A text without line breaks."""
    return " ".join(str(text).split())
