# SPDX-License-Identifier: Apache-2.0
"""Run folders: what a run leaves, and what is computed from it.

folder.py    folders, `latest`               metrics.py    what one run measured
rows.py      one result as rows of tables    tables.py     Parquet: fixed types, sorted, written whole
store.py     results as they come in         statistics.py medians, means, confidence
verdicts.py  expectations                    summary.py    summary.json; summary_file.py reads it
metadata.py  git, kernel, versions
"""
