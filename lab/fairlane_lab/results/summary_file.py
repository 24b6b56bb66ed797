# SPDX-License-Identifier: Apache-2.0
"""summary.json of a run folder as it is read back: its shape is checked before anything is shown of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from fairlane_controller.documents import parse_json
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from fairlane_lab.definition.judging import PaperNumbers
from fairlane_lab.definition.plots import Plot
from fairlane_lab.problems import RunFolderError, pydantic_problems

SUMMARY = "summary.json"
Plain = dict[str, Any]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class _Point(_Part):
    point: str
    params: Plain
    metrics: dict[str, FiniteFloat]
    runs: int = 1
    ranges: dict[str, tuple[FiniteFloat, FiniteFloat]] = Field(default_factory=dict)


class _Verdict(_Part):
    text: str
    metric: str
    per: Plain
    points: list[str]
    value: FiniteFloat | None
    met: bool | None
    min: FiniteFloat | None = None
    max: FiniteFloat | None = None


class _Flow(_Part):
    group: str | None = None


class _Definition(_Part):
    """The experiment's file as it was: what the report looks at."""

    title: str = ""
    statistic: str = "median"
    main_metrics: list[str] | None = None
    flows: list[_Flow] = Field(default_factory=list[_Flow])
    plots: list[Plot] | None = None
    paper_numbers: list[PaperNumbers] | None = None
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
    metadata: Plain = Field(default_factory=dict)
    about: Plain = Field(default_factory=dict)
    speed: Plain = Field(default_factory=dict)


def read_summary(folder: Path) -> Plain:
    """The summary as plain data. Raises RunFolderError when there is none, or it is no experiment's."""
    document = read_document(folder, SUMMARY)
    try:
        _Experiment.model_validate(document)
    except ValidationError as error:
        problems = "; ".join(map(str, pydantic_problems(error, _Experiment)[:8]))
        raise RunFolderError(f"{folder / SUMMARY}: not of `fairlane lab run`: {problems}") from None
    return document


def read_document(folder: Path, name: str) -> Plain:
    """A JSON object in a run folder. Raises RunFolderError."""
    path = folder / name
    try:
        document: Any = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunFolderError(f"{folder}: not a run folder: there is no {name} in it") from None
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # UnicodeDecodeError too
        raise RunFolderError(f"{path}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise RunFolderError(f"{path}: not of `fairlane lab`: it must be a JSON object")
    return document  # pyright: ignore[reportUnknownVariableType]
