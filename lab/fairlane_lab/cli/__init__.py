# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab …`: the commands of the lab, each imported when it is called.

listing.py  list    showing.py  show    running.py  run, sweep        options.py  what several commands share
reporting.py  plot, report, compare, claims, publish, bundle    tables.py, output.py  what they print
stopping.py  Ctrl-C and SIGTERM
"""

from __future__ import annotations

from fairlane_controller.cli.lazy import LazyCommand, lazy_app

_HERE = "fairlane_lab.cli"
COMMANDS = [
    LazyCommand("list", f"{_HERE}.listing:list_experiments", "The experiments that there are.", "Commands"),
    LazyCommand("show", f"{_HERE}.showing:show", "What an experiment is; or the table of a run folder.", "Commands"),
    LazyCommand("run", f"{_HERE}.running:run", "Run experiments, each into a new run folder.", "Commands"),
    LazyCommand("sweep", f"{_HERE}.running:sweep", "Run on many cores or machines into one data set; goes on where it stopped.", "Commands"),
    LazyCommand("plot", f"{_HERE}.reporting:plot", "Make the plots of a run folder again.", "Commands"),
    LazyCommand("report", f"{_HERE}.reporting:report", "A page in Markdown for each experiment: paper and runtimes side by side.", "Commands"),
    LazyCommand("compare", f"{_HERE}.reporting:compare", "Two runs side by side.", "Commands"),
    LazyCommand("claims", f"{_HERE}.reporting:claims", "What the papers claim, and what the runs say to it.", "Commands"),
    LazyCommand("publish", f"{_HERE}.reporting:publish", "The pages of docs/results, from archived runs.", "Commands"),
    LazyCommand("bundle", f"{_HERE}.reporting:bundle", "One archive of a run from which anyone makes it again.", "Commands"),
]  # fmt: skip


app = lazy_app(COMMANDS, help="Experiments: run them, show their tables, make their plots.")

__all__ = ["app"]
