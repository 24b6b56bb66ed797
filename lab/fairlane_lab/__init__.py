# SPDX-License-Identifier: Apache-2.0
"""The lab: experiments and what becomes of their results.

paper.py     the papers' numbers          dumbbell.py  one running dumbbell, and one measured run on it
results.py   run folders, summary.json    demo.py      the experiment behind `make demo`
measures.py  fairness, goodput, windows   plots.py     plots, made from a run folder
cli.py       `fairlane lab …`
"""
