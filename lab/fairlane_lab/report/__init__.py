# SPDX-License-Identifier: Apache-2.0
"""From run folders to what a person reads: result table, plots, comparison, pages. Reads run folders, measures nothing.

run_folder.py   a run folder with its points and tables         labels.py       names, units and numbers as a reader sees them
figures.py      `make_plots`, `draw`: pictures of `[[plots]]`
terminal.py     `result_table` for the terminal                  compare.py     `compare_runs`: two runs, point by point
publish.py      the pages in Markdown (templates/), of run folders and of the archive, from pairing.py (runs that belong together),
                side_by_side.py (the table), verdict_table.py (expectations), differences.py (above 10 %, of a Jain index 2 %, and why)
"""

from fairlane_lab.report.compare import Comparison, compare_runs, compare_table
from fairlane_lab.report.figures import make_plots
from fairlane_lab.report.pairing import newest_folders
from fairlane_lab.report.run_folder import open_run
from fairlane_lab.report.terminal import result_table, worst_tables
from fairlane_lab.results.summary_file import RunFolderError

__all__ = [
    "Comparison",
    "RunFolderError",
    "compare_runs",
    "compare_table",
    "make_plots",
    "newest_folders",
    "open_run",
    "result_table",
    "worst_tables",
]
