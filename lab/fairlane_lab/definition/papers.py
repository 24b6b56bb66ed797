# SPDX-License-Identifier: Apache-2.0
"""lab/papers/*.csv: the numbers of the papers' tables, figures and text, a row each, and how each was read."""

from __future__ import annotations

import contextlib
import csv
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from fairlane_controller.documents import is_file
from pydantic import ValidationError, model_validator

from fairlane_lab.definition.judging import PaperFigure, PaperNumbers
from fairlane_lab.definition.strict import Scalar, Strict
from fairlane_lab.paths import PAPERS
from fairlane_lab.problems import unknown

_SCALES = {"": 1.0, "packets": 1.0, "%": 0.01, "bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6}


class PaperRow(Strict):
    """A number of a paper."""

    figure: str
    """Table, figure or equation."""
    series: str
    """The line of the figure, or the column of the table."""
    x: str
    """Where on it; empty without one."""
    metric: str
    """Ours."""
    y: float
    of: float | None = None
    """What `y` is divided by to be the metric, in the same unit."""
    unit: Literal["", "packets", "%", "bit/s", "kbit/s", "Mbit/s"]
    how: Literal["table", "text", "read off the figure"]

    @model_validator(mode="before")
    @classmethod
    def _no_divisor(cls, row: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row.items() if (name, value) != ("of", "")}

    @property
    def value(self) -> float:
        """In the metric's own unit."""
        return round(self.y * _SCALES[self.unit], 9) if self.of is None else self.y / self.of


@lru_cache(maxsize=16)
def read_paper(path: Path) -> tuple[PaperRow, ...]:
    """Every number of a paper. Raises ValueError with the line that is wrong."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows: list[PaperRow] = []
        for row in reader:
            try:
                rows.append(PaperRow.model_validate(row))
            except ValidationError as error:
                first = error.errors()[0]
                key = ".".join(map(str, first["loc"]))
                raise ValueError(f"{path.name}, line {reader.line_num}: {key}: {first['msg']}, got {first['input']!r}") from None  # fmt: skip
    return tuple(rows)


def numbers_of(figure: PaperFigure, folder: Path = PAPERS) -> list[PaperNumbers]:
    """The numbers of a figure, each with the points of an experiment that it is for. Raises ValueError with what is wrong."""
    path = folder / f"{figure.paper}.csv"
    if not is_file(path):
        raise ValueError(unknown("paper", figure.paper, sorted(each.stem for each in folder.glob("*.csv"))))
    rows = read_paper(path)
    for key, wanted in (("figure", figure.figure), ("series", figure.line)):
        there = dict.fromkeys(getattr(row, key) for row in rows)
        rows = tuple(row for row in rows if wanted in ("", getattr(row, key)))
        if not rows:
            raise ValueError(unknown(key, wanted, there))
    at = [(name, key) for name, key in ((figure.x, "x"), (figure.series, "series")) if name]
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows:
        found.setdefault(tuple(getattr(row, key) for _, key in at), {})[row.metric] = row.value
    names = [name for name, _ in at]
    return [
        PaperNumbers(
            where={**dict(zip(names, map(_scalar, place), strict=True)), **figure.where},
            values=values,
            source=figure.source,
        )
        for place, values in found.items()
    ]


def _scalar(text: str) -> Scalar:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
