# SPDX-License-Identifier: Apache-2.0
"""Names of metrics in an experiment file: `fairness`, `goodput_bps[vegas]`, `goodput_bps[vegas] / goodput_bps[reno]`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from fairlane_lab.definition.names import GROUP_METRICS, PARAMETERS, RUN_METRICS, Name, find_name
from fairlane_lab.definition.strict import Known
from fairlane_lab.problems import unknown

_FORM = re.compile(r"^([a-z][a-z0-9_]*)(?:\[([a-z][a-z0-9_-]*)\])?$")


@dataclass(frozen=True)
class Metric:
    """A metric of a run, or of one of its groups of flows."""

    name: str
    group: str | None = None

    def __str__(self) -> str:
        return f"{self.name}[{self.group}]" if self.group else self.name

    @property
    def about(self) -> Name:
        """Label, unit and scale of its values."""
        return find_name(self.name) or Name(self.name)


def parse_metric(text: str) -> tuple[Metric, Metric | None]:
    """The metric, and the metric or parameter that it is divided by. Raises ValueError with what is allowed."""
    first, *others = [part.strip() for part in text.split("/")]
    if len(others) > 1:
        raise ValueError(f"got {text!r}; one division at most")
    divisors = [Metric(other) if other in PARAMETERS else _single(other) for other in others]
    return _single(first), divisors[0] if divisors else None


def range_of(text: str) -> tuple[float, float]:
    """The least and the most that a metric, or a quotient of two, can be."""
    metric, divisor = parse_metric(text) if text not in PARAMETERS else (Metric(text), None)
    return (metric.about.least, metric.about.most) if divisor is None else (0.0, math.inf)


def _single(text: str) -> Metric:
    found = _FORM.match(text)
    if found is None:
        raise ValueError(f"got {text!r}; a metric is written as `fairness` or `goodput_bps[group]`")
    name, group = found[1], found[2]
    if group is not None and name not in GROUP_METRICS:
        raise ValueError(unknown("metric of groups", name, sorted(GROUP_METRICS)))
    if group is None and name not in RUN_METRICS:
        raise ValueError(unknown("metric", name, RUN_METRICS))
    return Metric(name, group)


def check_metric(text: str, info: ValidationInfo) -> str:
    """The text of a metric or a quotient. Raises ValueError for names that the experiment has not."""
    known = info.context
    if isinstance(known, Known) and text:
        for part in filter(None, parse_metric(text)):
            if part.group is not None and part.group not in known.groups:
                raise ValueError(unknown("group of flows", part.group, known.groups))
    return text


def _no_quotient(text: str, info: ValidationInfo) -> str:
    if isinstance(info.context, Known) and "/" in text:
        raise ValueError(f"got {text!r}; one metric, not a quotient, belongs here")
    return check_metric(text, info)


MetricText = Annotated[str, AfterValidator(check_metric)]
OneMetric = Annotated[str, AfterValidator(_no_quotient)]
