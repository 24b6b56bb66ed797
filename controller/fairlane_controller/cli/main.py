# SPDX-License-Identifier: Apache-2.0
"""The command `fairlane`: puts the sub-commands together, turns errors into one sentence and an exit code."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

from fairlane_controller import __version__
from fairlane_controller.cli.ena import ena_app
from fairlane_controller.cli.gfr import gfr_app
from fairlane_controller.cli.init import init_command
from fairlane_controller.cli.output import error_console, print_error
from fairlane_controller.cli.plan import plan_command
from fairlane_controller.cli.run import run_command
from fairlane_controller.cli.scheme import scheme_app
from fairlane_controller.cli.show import flows_command, measure_command, status_command, table_command
from fairlane_controller.cli.threshold import threshold_app
from fairlane_controller.cli.vc import vc_app
from fairlane_controller.errors import ErrorCode, FairlaneError

COMMANDS_GROUP = "fairlane.commands"
"""Entry-point group: other packages add a sub-command as a `typer.Typer` (a group) or a function (one command)."""


def make_app(*, with_plugins: bool = True) -> typer.Typer:
    """The whole command line; without the other packages' commands for tests."""
    app = typer.Typer(
        name="fairlane",
        help="Measure, compute and tune per-flow queue thresholds of P4 switches.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    app.command("init")(init_command)
    app.command("run")(run_command)
    app.command("status")(status_command)
    app.command("flows")(flows_command)
    app.command("measure")(measure_command)
    app.add_typer(threshold_app, name="threshold")
    app.add_typer(scheme_app, name="scheme")
    app.add_typer(vc_app, name="vc")
    app.add_typer(gfr_app, name="gfr")
    app.add_typer(ena_app, name="ena")
    app.command("table")(table_command)
    app.command("plan")(plan_command)
    if with_plugins:
        add_plugins(app)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"fairlane {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    del version  # its callback has acted


def add_plugins(app: typer.Typer) -> None:
    """Add what other installed packages offer; one that cannot be loaded is named on standard error and left out."""
    for point in sorted(entry_points(group=COMMANDS_GROUP), key=lambda p: p.name):
        try:
            command = point.load()
        except Exception as ex:
            error_console.print(f"fairlane: sub-command {point.name!r} of {point.value} left out: {ex}", markup=False)
            continue
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=point.name)
        else:
            app.command(point.name)(command)


def main(argv: list[str] | None = None) -> None:
    """Run the command; ends the process with a documented exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        make_app()(arguments)
    except FairlaneError as ex:
        print_error(ex, as_json="--json" in arguments)
        raise SystemExit(ex.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(ErrorCode.INTERNAL.exit_code) from None
