# SPDX-License-Identifier: Apache-2.0
"""Experiment files: one small TOML file says what an experiment is; here it becomes scenarios.

names.py       parameters and metrics: the same names in every experiment    points.py    cases and sweep: the points
schema.py      what a file may say                                            references.py  `$param` and `= $a * 2`
body.py        its resolved part: topology, flows, tcp, control, changes, run topology.py  overrides of a topology document
judging.py     paper's numbers, expectations, notes                           expand.py    points and repeats: the scenarios
plots.py       what to draw                                                   load.py      files, and all their errors at once
"""

from fairlane_lab.definition.expand import Selection, expand, repeats_of
from fairlane_lab.definition.load import Definition, experiment_names, load, load_text
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
    "repeats_of",
]
