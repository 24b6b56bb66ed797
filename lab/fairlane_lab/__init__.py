# SPDX-License-Identifier: Apache-2.0
"""The lab: experiments and what becomes of their results.

definition/  experiment files, checked and expanded    scenario.py    one run, fully resolved
runners/     a run in sim or in Mininet                run_result.py  what a runner gives back
sim/         the simulator's side of it                testbed/       Mininet's side of it
sweep/       many runs                                 results/       run folders, metrics, verdicts
programs/    what a P4 program brings to the lab       report/        the page and its pictures
cli/         `fairlane lab …`
measures.py  pure functions over numbers and samples; the ceiling of a satellite line
"""
