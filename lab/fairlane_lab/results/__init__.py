# SPDX-License-Identifier: Apache-2.0
"""Run folders: what a run leaves, and what is computed from it.

folder.py    folders, `latest`, summary.json   rows.py       one result as rows: run, flows, ports, transfers, series, events
metadata.py  git, kernel, versions             tables.py     Parquet: fixed types, sorted, written whole
store.py     results as they come in           statistics.py medians, means, confidence
verdicts.py  expectations                      summary.py    summary.json
"""

from fairlane_lab.paths import REPOSITORY, results_root
from fairlane_lab.results.folder import new_folder, publish, read_lines
from fairlane_lab.results.metadata import git_version, metadata

__all__ = ["REPOSITORY", "git_version", "metadata", "new_folder", "publish", "read_lines", "results_root"]
