# SPDX-License-Identifier: Apache-2.0
"""Every difference of more than 10 % between paper, sim, kernel and Mininet (2 % of a Jain index from the paper's), and its cause as far as notes of the experiment give it.

A note explains a difference when it is `against` the same reference, its `where` and `metrics` match, and the difference lies in its
`share`. A note without a share is a remark and explains nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fairlane_lab.definition.judging import Note
from fairlane_lab.definition.strict import matches
from fairlane_lab.report.run_folder import Measured, Point
from fairlane_lab.results.statistics import Spread

LIMIT = 0.10
JAIN_LIMIT = 0.02
"""Of a Jain index from the paper's: an equal split of what should be shared 1:2 scores 0.92 already."""


@dataclass
class Line:
    """Differences of one metric in one direction of comparison that have the same explanation."""

    metric: str
    measured: str
    """Runtime that was measured."""
    against: str
    """`paper`, `sim` or `kernel`."""
    notes: tuple[str, ...]
    """Texts of the notes that explain it."""
    in_spread: bool
    """No note explains it, but 95 % intervals of the differences hold 0."""
    compared: int = 0
    """Points that could be compared."""
    shares: dict[str, float] = field(default_factory=dict[str, float])
    """Point → (measured - reference) / |reference|."""


def find_differences(experiment: Measured, metrics: Sequence[str]) -> list[Line]:
    """Lines in the order of the metrics: each runtime against the paper, then runtimes against each other."""
    lines: dict[tuple[object, ...], Line] = {}
    compared: Counter[tuple[str, ...]] = Counter()
    for metric in metrics:
        for name, points in experiment.points().items():
            for measured, against, spread, reference in _pairs(experiment, points, metric):
                compared[metric, measured, against] += 1
                limit = JAIN_LIMIT if (metric, against) == ("jain", "paper") else LIMIT
                share = (spread.value - reference.value) / abs(reference.value) if reference.value else 0.0
                if abs(share) <= limit:
                    continue
                fitting = fitting_notes(
                    experiment.definition.experiment.notes, points[measured], metric, measured, against
                )
                notes = tuple(note.text for note in fitting if note.explains(share))
                apart = spread.minus(reference)
                line = Line(metric, measured, against, notes, not notes and apart.lo <= 0 <= apart.hi)
                key = (metric, measured, against, notes, line.in_spread)
                lines.setdefault(key, line).shares[name] = share
    for line in lines.values():
        line.compared = compared[line.metric, line.measured, line.against]
    return list(lines.values())


def fitting_notes(notes: Sequence[Note], point: Point, metric: str, runtime: str, against: str) -> list[Note]:
    """Notes on a difference of `metric` at a point measured in `runtime` from `against` (`paper`, `sim` or `kernel`), of whatever size."""
    params = {**point.params, "runtime": runtime}
    return [
        note
        for note in notes
        if not note.is_remark
        and note.against == against
        and (not note.metrics or metric in note.metrics)
        and matches(note.where, params)
    ]


def _pairs(experiment: Measured, points: dict[str, Point], metric: str) -> Iterator[tuple[str, str, Spread, Spread]]:
    """(measured in, against, measured, reference) for one point and metric."""
    spreads = {runtime: spread for runtime, point in points.items() if (spread := point.get(metric))}
    # Other sources than the paper are other schemes to be compared with, not to be reproduced.
    paper = experiment.newest.paper_values(next(iter(points.values())), metric).get("")
    for runtime, spread in spreads.items():
        if paper is not None:
            yield runtime, "paper", spread, Spread(paper, paper, paper)
    for measured, reference in (("kernel", "sim"), ("mininet", "sim"), ("mininet", "kernel")):
        if measured in spreads and reference in spreads:
            yield measured, reference, spreads[measured], spreads[reference]


def numbers_of_paper(experiment: Measured, metrics: Sequence[str]) -> Iterator[tuple[str, str, str, float, float]]:
    """Point, metric, runtime, the paper's value, and the measured one, both in the metric's own unit."""
    for metric in metrics:
        for name, points in experiment.points().items():
            for runtime, against, spread, reference in _pairs(experiment, points, metric):
                if against == "paper":
                    yield name, metric, runtime, reference.value, spread.value
