# SPDX-License-Identifier: Apache-2.0
"""From run folders to what a person reads: result table, plots, pages. Reads run folders, measures nothing.

run_folder.py    a run folder with its points and tables; the runs of an experiment     labels.py     names, units and numbers as a reader sees them
figures.py       `draw`, `make_plots`: pictures of `[[plots]]`                           tables.py     numbers of points for page and terminal
judged.py        bounds, sentences and claims with their answers                         differences.py  above 10 %, of a Jain index 2 %, and why
archive.py       the archived runs of docs/results; archived.py: whether they hold       section.py    an experiment as a part of a page
publish.py       the pages in Markdown (templates/)
"""

from fairlane_lab.problems import RunFolderError
from fairlane_lab.report.run_folder import newest_folders, open_run
from fairlane_lab.report.tables import result_table

__all__ = [
    "RunFolderError",
    "newest_folders",
    "open_run",
    "result_table",
]
