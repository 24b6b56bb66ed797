# SPDX-License-Identifier: Apache-2.0
"""Run folders: what a run leaves, and what is computed from it.

folder.py    folders, `latest`; git, kernel, versions
rows.py      what one run measured, as rows of tables    tables.py     Parquet: fixed types, sorted, written whole; results as they come in
verdicts.py  expectations                                statistics.py medians, means, confidence
summary.py   summary.json
"""
