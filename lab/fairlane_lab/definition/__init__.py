# SPDX-License-Identifier: Apache-2.0
"""An experiment file: what it may say, and the scenarios that it means.

names.py     parameters and metrics: the same names in every experiment    points.py     cases and sweep: the points; what is drawn
schema.py    what a file may say                                            topology.py   overrides of a topology document
judging.py   papers' numbers and claims, expectations, notes, plots         expansion.py  the keys that parameters set; points and repeats: the scenarios
extend.py    a file and what it extends                                     loading.py    files, and all their errors at once
"""
