# SPDX-License-Identifier: Apache-2.0
"""Every difference of more than 10 % between paper, sim, kernel and Mininet (2 % of a Jain index from the paper's), with a line that gives its cause, or says that it is unknown.

A note of the experiment explains a difference when it is `against` the same reference, its `where` and `metrics` match, and the
difference lies in its `share`. A note without a share is a remark and explains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from fairlane_lab.definition.judging import Note
from fairlane_lab.definition.strict import matches
from fairlane_lab.report.pairing import Pair
from fairlane_lab.report.run_folder import Point, Spread

LIMIT = 0.10
JAIN_LIMIT = 0.02
"""Of a Jain index from the paper's: an equal split of what should be shared 1:2 scores 0.92 already."""


@dataclass(frozen=True)
class Difference:
    """One value that lies off another by more than the limit."""

    point: str
    value: float
    reference: float
    share: float
    """(value - reference) / |reference|."""
    in_spread: bool
    """The 95 % interval of the difference holds 0."""


@dataclass
class Line:
    """Differences of one metric in one direction of comparison that have the same explanation."""

    metric: str
    measured: str
    """Runtime that was measured."""
    against: str
    """`paper`, another source of the paper's numbers, `sim` or `kernel`."""
    notes: tuple[str, ...]
    """Texts of the notes that explain it."""
    partly: tuple[str, ...] = ()
    """Texts of notes that fit, but explain no difference of this size."""
    compared: int = 0
    """Points that could be compared."""
    differences: list[Difference] = field(default_factory=list[Difference])

    @property
    def explained_by_spread(self) -> bool:
        """No note fits, but every difference lies within the spread of the repeats."""
        return not self.notes and all(each.in_spread for each in self.differences)

    @property
    def unexplained(self) -> bool:
        """Nothing says where it comes from."""
        return not self.notes and not self.explained_by_spread


def find_differences(pair: Pair, metrics: list[str]) -> list[Line]:
    """Lines in the order of the metrics: each runtime against the paper, then Mininet against sim. Only metrics that are numbers of the paper or columns of the result."""
    lines: dict[tuple[str, str, str, tuple[str, ...], tuple[str, ...], bool], Line] = {}
    compared: dict[tuple[str, str, str], int] = {}
    for metric in metrics:
        for name, points in pair.points():
            for measured, against, spread, reference in _pairs(pair, points, metric):
                direction = (metric, measured, against)
                compared[direction] = compared.get(direction, 0) + 1
                limit = JAIN_LIMIT if (metric, against) == ("jain", "paper") else LIMIT
                found = _difference(name, spread, reference, limit)
                if found is None:
                    continue
                fitting = fitting_notes(pair.notes, points[measured], metric, measured, against)
                notes = tuple(note.text for note in fitting if note.explains(found.share))
                partly = tuple(note.text for note in fitting if note.text not in notes)
                key = (*direction, notes, partly, not notes and found.in_spread)
                lines.setdefault(key, Line(metric, measured, against, notes, partly)).differences.append(found)
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


def _pairs(pair: Pair, points: dict[str, Point], metric: str) -> list[tuple[str, str, Spread, Spread]]:
    """(measured in, against, measured, reference) for one point and metric."""
    found: list[tuple[str, str, Spread, Spread]] = []
    spreads = {runtime: spread for runtime, point in points.items() if (spread := point.get(metric))}
    for source, value in pair.paper_values(points, metric).items():
        if not source:  # other sources are other schemes to be compared with, not to be reproduced
            found += [(runtime, "paper", spread, Spread(value, value, value)) for runtime, spread in spreads.items()]
    for measured, reference in (("kernel", "sim"), ("mininet", "sim"), ("mininet", "kernel")):
        if measured in spreads and reference in spreads:
            found.append((measured, reference, spreads[measured], spreads[reference]))
    return found


def _difference(point: str, measured: Spread, reference: Spread, limit: float) -> Difference | None:
    if reference.value == 0:
        return None
    share = (measured.value - reference.value) / abs(reference.value)
    if abs(share) <= limit:
        return None
    low, high = difference_interval(measured, reference)
    return Difference(point, measured.value, reference.value, share, low <= 0 <= high)


def difference_interval(measured: Spread, reference: Spread) -> tuple[float, float]:
    """95 % interval of `measured` less `reference`, from those of both (MOVER: Zou and Donner 2008)."""
    apart = measured.value - reference.value
    low = math.hypot(measured.value - measured.lo, reference.hi - reference.value)
    high = math.hypot(measured.hi - measured.value, reference.value - reference.lo)
    return apart - low, apart + high
