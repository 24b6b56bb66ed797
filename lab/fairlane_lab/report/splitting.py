# SPDX-License-Identifier: Apache-2.0
"""Panels for what a plot does not show otherwise: points that differ in a parameter never share a bar, a line or a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairlane_lab.report import labels
from fairlane_lab.report.run_folder import Point, ordered

PANELS_MAX = 24


@dataclass(frozen=True)
class Panels:
    """The parameters whose values have a panel each, and these values in the points' order; without parameters one panel."""

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    @property
    def problem(self) -> str:
        """Why they are not drawn; empty when they are."""
        if len(self.values) <= PANELS_MAX:
            return ""
        names = ", ".join(labels.name_of(name).label for name in self.names)
        return f"{len(self.values)} panels of {names} are too many: choose points with `where`"

    def of(self, point: Point) -> tuple[Any, ...]:
        """The panel of a point."""
        return tuple(point.params.get(name) for name in self.names)

    def title(self, value: tuple[Any, ...]) -> str:
        """Of a panel: `buffer 20`."""
        pairs = zip(self.names, value, strict=True)
        return ", ".join(labels.setting_label(name, each) for name, each in pairs)


def split(points: Sequence[Sequence[Point]], shown: Sequence[str | None], panel: str | None = None) -> Panels:
    """The panels of a plot that shows these parameters otherwise, for the points of each runtime; `panel` has them in any case."""
    names = [panel] if panel else []
    while left := _untold(points, (*shown, *names)):
        # One that tells all apart (a case) says more than all that change with it.
        whole = (name for name in left if not _untold(points, (*shown, *names, name)))
        names.append(next(whole, left[0]))
    values = ordered(tuple(point.params.get(name) for name in names) for found in points for point in found)
    return Panels(tuple(names), tuple(values) or ((),))


def _untold(points: Sequence[Sequence[Point]], told: Sequence[str | None]) -> list[str]:
    """The parameters in which points of one runtime differ although all those that are told are the same."""
    found: dict[str, None] = {}
    for mine in points:
        first: dict[tuple[Any, ...], Point] = {}
        for point in mine:
            other = first.setdefault(tuple(point.params.get(name) for name in told if name), point)
            found |= {name: None for name, value in point.params.items() if other.params.get(name) != value}
    return list(found)
