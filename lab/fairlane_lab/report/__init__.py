# SPDX-License-Identifier: Apache-2.0
"""From run folders to what a person reads: result table, plots, comparison, HTML page. Reads run folders, measures nothing.

run_folder.py   a run folder with its points and tables         labels.py       names, units and numbers as a reader sees them
style.py        palette, runtimes' marks, sizes                  canvas.py       the frame of a picture: title, legend, grid of axes
pictures.py     `make_plots`; one file a kind: picture_bars.py, picture_lines.py, picture_series.py, picture_cdf.py, picture_heat.py
terminal.py     `result_table` for the terminal
"""

from fairlane_lab.report.pictures import make_plots
from fairlane_lab.report.run_folder import RunFolderError, open_run
from fairlane_lab.report.terminal import result_table

__all__ = ["RunFolderError", "make_plots", "open_run", "result_table"]
