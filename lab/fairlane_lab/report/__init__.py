# SPDX-License-Identifier: Apache-2.0
"""From run folders to what a person reads: result table, plots, pages. Reads run folders, measures nothing.

run_folder.py    a run folder with its points and tables; the runs of an experiment     labels.py     names, units and numbers as a reader sees them
figures.py       `draw`, `make_plots`: pictures of `[[plots]]`                           tables.py     numbers of points for page and terminal
judged.py        bounds, sentences and claims with their answers                         publish.py    the pages in Markdown (templates/), an experiment a section, with its differences
archive.py       the archived runs of docs/results, and whether they hold
"""
