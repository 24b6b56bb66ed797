# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab …`: the commands of the lab.

listing.py  list, show     running.py    run, sweep               options.py  what several commands share
reporting.py  plot, report, compare, publish, bundle    tables.py, output.py  what they print
stopping.py  Ctrl-C and SIGTERM
"""

from __future__ import annotations

import typer

from fairlane_lab.cli.listing import list_experiments, show
from fairlane_lab.cli.reporting import bundle, compare, plot, publish, report
from fairlane_lab.cli.running import run, sweep

app = typer.Typer(help="Experiments: run them, show their tables, make their plots.", no_args_is_help=True)
app.command("list")(list_experiments)
app.command()(show)
app.command()(run)
app.command()(sweep)
app.command()(plot)
app.command()(report)
app.command()(compare)
app.command()(publish)
app.command()(bundle)


@app.callback()
def lab() -> None:
    """Experiments: run them, show their tables, make their plots."""


__all__ = ["app"]
