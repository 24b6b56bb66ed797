# SPDX-License-Identifier: Apache-2.0
"""Experiment files: one small TOML file says what an experiment is; here it becomes scenarios.

names.py       parameters and metrics: the same names in every experiment    points.py    cases and sweep: the points
schema.py      what a file may say                                            settings.py  the keys that parameters set
body.py        its resolved part: topology, flows, tcp, control, changes, run topology.py  overrides of a topology document
judging.py     paper's numbers, expectations, notes                           expansion.py points and repeats: the scenarios
plots.py       what to draw                                                   loading.py   files, and all their errors at once
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlane_lab.definition.expansion import Selection, expand
    from fairlane_lab.definition.extend import experiment_names
    from fairlane_lab.definition.loading import Definition, load, load_text
    from fairlane_lab.problems import ExperimentError, Problem

__all__ = [
    "Definition",
    "ExperimentError",
    "Problem",
    "Selection",
    "expand",
    "experiment_names",
    "load",
    "load_text",
]

_LATE = {
    **dict.fromkeys(("Selection", "expand"), "fairlane_lab.definition.expansion"),
    **dict.fromkeys(("Definition", "load", "load_text"), "fairlane_lab.definition.loading"),
    **dict.fromkeys(("ExperimentError", "Problem"), "fairlane_lab.problems"),
    "experiment_names": "fairlane_lab.definition.extend",
}


def __getattr__(name: str) -> Any:
    """Imported when it is used: to list experiments needs their files only."""
    if name not in _LATE:
        raise AttributeError(f"module 'fairlane_lab.definition' has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)
