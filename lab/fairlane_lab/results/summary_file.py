# SPDX-License-Identifier: Apache-2.0
"""summary.json of a run folder as it is read back: its shape is checked before anything is shown of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, cast

from fairlane_controller.documents import parse_json
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

SUMMARY = "summary.json"


class RunFolderError(ValueError):
    """A folder that cannot be reported on; the text names the folder, what is wrong and what is expected."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class _Point(_Part):
    point: str
    params: dict[str, Any]
    metrics: dict[str, FiniteFloat]
    runs: int = 1
    ranges: dict[str, tuple[FiniteFloat, FiniteFloat]] = Field(default_factory=dict)


class _Verdict(_Part):
    text: str
    metric: str
    per: dict[str, Any]
    points: list[str]
    value: FiniteFloat | None
    met: bool | None
    min: FiniteFloat | None = None
    max: FiniteFloat | None = None


class _Flow(_Part):
    group: str | None = None


Plain = dict[str, Any]


class _Definition(_Part):
    """The experiment's file as it was: what the report looks at; plots, notes and paper's numbers are checked when they are used."""

    title: str = ""
    statistic: str = "median"
    main_metrics: list[str] | None = None
    flows: list[_Flow] = Field(default_factory=list[_Flow])
    plots: list[Plain] | None = None
    paper_numbers: list[Plain] | None = None
    notes: list[Plain] | None = None
    changes: list[Plain] = Field(default_factory=list[Plain])
    run: Plain = Field(default_factory=dict)
    sim: Plain = Field(default_factory=dict)
    mininet: Plain = Field(default_factory=dict)
    quick: Plain = Field(default_factory=dict)


class _Experiment(_Part):
    experiment: str
    runtime: Literal["sim", "kernel", "mininet"]
    definition: _Definition
    points: list[_Point]
    verdicts: list[_Verdict] = Field(default_factory=list[_Verdict])
    target: str = ""
    complete: bool = True
    runs: int = 0
    asked_runs: int = 0
    metadata: dict[str, Any] = Field(default_factory=dict)
    about: dict[str, Any] = Field(default_factory=dict)
    speed: dict[str, Any] = Field(default_factory=dict)


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary as plain data. Raises RunFolderError when there is none, or it is no experiment's."""
    path = folder / SUMMARY
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RunFolderError(f"{folder}: not a run folder: there is no {SUMMARY} in it") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise RunFolderError(f"{path}: cannot be read: {reason}") from None
    try:
        document: Any = parse_json(text)
    except ValueError as error:
        raise RunFolderError(f"{path}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise RunFolderError(f"{path}: not of `fairlane lab`: it must be a JSON object")
    summary = cast("dict[str, Any]", document)
    try:
        _Experiment.model_validate(summary)
    except ValidationError as error:
        details = error.errors()
        missing = [str(each["loc"][0]) for each in details if each["type"] == "missing" and len(each["loc"]) == 1]
        if missing:
            raise RunFolderError(f"{path}: not of `fairlane lab run`: it has no {', '.join(missing)}") from None
        place = "/".join(str(step) for step in details[0]["loc"])
        given = f"{details[0]['input']!r:.60}"
        raise RunFolderError(
            f"{path}: not of `fairlane lab run`: /{place}: {details[0]['msg']} (got {given})"
        ) from None
    return summary
