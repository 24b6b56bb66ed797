# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab …`: the commands of the lab, each imported when it is called.

showing.py  what shows experiments, runs and results    running.py  run    options.py  what several commands share    tables.py  what they print
"""

from __future__ import annotations

from fairlane_controller.cli.lazy import LazyCommand, lazy_app

_COMMANDS = {
    "list": ("showing:list_experiments", "The experiments that there are."),
    "show": ("showing:show", "What an experiment is; or the table of run folders, side by side."),
    "run": ("running:run", "Run experiments, each into a new run folder; or go on in one."),
    "plot": ("showing:plot", "Make the plots of a run folder again."),
    "report": ("showing:report", "A page in Markdown for each experiment: paper and runtimes side by side."),
    "claims": ("showing:claims", "What the papers claim, and what the runs say to it."),
    "publish": ("showing:publish", "The pages of docs/results, from archived runs."),
}
COMMANDS = [
    LazyCommand(name, f"fairlane_lab.cli.{target}", summary, "Commands")
    for name, (target, summary) in _COMMANDS.items()
]
app = lazy_app(COMMANDS, help="Experiments: run them, show their tables, make their plots.")

__all__ = ["app"]
