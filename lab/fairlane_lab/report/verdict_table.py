# SPDX-License-Identifier: Apache-2.0
"""Expectations beside what each runtime measured, from the verdicts that a run left in its summary; no layout."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fairlane_lab.report import labels
from fairlane_lab.report.pairing import Pair

State = Literal["met", "not met", "undecided", "too few by design", "not judged", "not asked"]


@dataclass(frozen=True)
class Outcome:
    """What one runtime says to one bound."""

    state: State
    value: str = ""
    """As a reader sees it, with its unit."""
    at: str = ""
    """The picked point's parameter, such as `delay 5 ms`."""
    margin: float = 0.0
    """How far inside its bound, in the metric's unit; negative outside."""
    interval: str = ""
    """95 % interval of the value, or why it has no width; empty without one."""
    runs: int = 0
    needed: int | None = None
    """About so many runs would decide one that is undecided or has too few; None: no number would."""


@dataclass
class ExpectedBound:
    """One bound: for a case, or for all."""

    text: str
    bound: str
    """`at least 97 %`."""
    per: str
    """`512k-5ms`; empty when it is over everything."""
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    """Runtime → outcome."""


def verdict_table(pair: Pair) -> list[ExpectedBound]:
    """Every bound in the file's order; a runtime for which it is not asked has `not asked`."""
    found: dict[tuple[str, str, str], ExpectedBound] = {}
    for run in pair.runs:
        verdicts: list[Mapping[str, Any]] = run.summary.get("verdicts", [])
        overs = {str(entry["text"]): entry.get("over") for entry in run.definition.get("expect", [])}
        for verdict in verdicts:
            over = overs.get(str(verdict["text"]))
            params: Mapping[str, Any] = verdict["per"]
            per = ", ".join(labels.setting_label(name, value) for name, value in params.items() if name != over)
            at = labels.setting_label(over, params[over]) if over and over in params else ""
            key = (str(verdict["text"]), bound_text(verdict), per)
            asked = found.setdefault(key, ExpectedBound(*key))
            asked.outcomes[run.runtime] = Outcome(
                _state(verdict),
                _value(verdict),
                at,
                _margin(verdict),
                _interval(verdict),
                int(verdict.get("runs", 0)),
                verdict.get("runs_needed"),
            )
    for asked in found.values():
        for run in pair.runs:
            asked.outcomes.setdefault(run.runtime, Outcome("not asked"))
    return list(found.values())


def bound_text(verdict: Mapping[str, Any]) -> str:
    """`at least 97 %`, `at most 0.9`, `6 to 17 %`."""
    metric = str(verdict["metric"])
    low, high = verdict.get("min"), verdict.get("max")
    if verdict.get("relative_to"):
        tail = " % of " + ", ".join(labels.setting_label(name, value) for name, value in verdict["relative_to"].items())
        bounds = [f"{labels.number(float(value) * 100, 3)}" for value in (low, high) if value is not None]
        words = "at least " if high is None else "at most " if low is None else ""
        return words + " to ".join(bounds) + tail
    unit = _unit(metric)
    tail = f" {unit}" if unit else ""
    if low is not None and high is not None:
        return f"{_format_bound(metric, low)} to {_format_bound(metric, high)}{tail}"
    return (
        f"at least {_format_bound(metric, low)}{tail}"
        if high is None
        else f"at most {_format_bound(metric, high)}{tail}"
    )


def _value(verdict: Mapping[str, Any]) -> str:
    value = verdict.get("value")
    if value is None:
        return ""
    if verdict.get("relative_to"):
        return f"{labels.number(float(value) * 100, 3)} %"
    metric = str(verdict["metric"])
    unit = _unit(metric)
    return _text(metric, float(value)) + (f" {unit}" if unit else "")


def _interval(verdict: Mapping[str, Any]) -> str:
    """`7.1 to 7.9`, in the unit of the value."""
    ends = [verdict.get("lo"), verdict.get("hi")]
    if verdict.get("value") is None or None in ends or verdict.get("runs", 0) < 2:
        return ""
    if verdict.get("same"):
        return str(verdict["same"])
    relative, metric = bool(verdict.get("relative_to")), str(verdict["metric"])
    low, high = (labels.number(float(end) * 100, 3) if relative else _text(metric, float(end)) for end in ends if end is not None)  # fmt: skip
    return f"{low} to {high}" if low != high else f"{low}, as far as these digits show"


def _margin(verdict: Mapping[str, Any]) -> float:
    value = verdict.get("value")
    if value is None:
        return -math.inf
    low = float(value) - float(verdict["min"]) if verdict.get("min") is not None else math.inf
    high = float(verdict["max"]) - float(value) if verdict.get("max") is not None else math.inf
    return min(low, high)


def _unit(metric: str) -> str:
    return "%" if " / " in metric else labels.name_of(metric).unit


def _text(metric: str, value: float) -> str:
    """In the metric's unit; a quotient in per cent, as the sentences say it."""
    return labels.number(value * 100, 3) if " / " in metric else labels.format_metric(metric, value)


def _format_bound(metric: str, value: Any) -> str:
    text = _text(metric, float(value))
    return text.rstrip("0").rstrip(".") if "." in text else text


def _state(verdict: Mapping[str, Any]) -> State:
    """Summaries of older runs say only whether the value is within its bound."""
    older = {True: "met", False: "not met", None: "no data"}[verdict["met"]]
    state = verdict.get("state", older)
    return "not judged" if state == "no data" else state
