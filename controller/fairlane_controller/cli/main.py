# SPDX-License-Identifier: Apache-2.0
"""The command `fairlane`: puts the sub-commands together, turns errors into one sentence and an exit code."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

from fairlane_controller import __version__
from fairlane_controller.cli.lazy import LazyCommand, UsageError, lazy_app, usage_message
from fairlane_controller.cli.output import print_error
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_input
from fairlane_controller.program.names import command_groups
from fairlane_controller.typed import remember

COMMANDS_GROUP = "fairlane.commands"
"""Entry-point group: other packages add a sub-command as a `typer.Typer` (a group) or a function (one command)."""

AROUND = "Around the switches"
# By panel: name, where it is (imported only when called), one sentence for the list. Order is the order of `fairlane -h`.
_BY_PANEL = {
    "Inspect": {
        "status": (".show:status_command", "Is all well? Loop, switches, managed ports, last event."),
        "flows": (".show:flows_command", "Objects of the program, such as flows: what waits, gets through, is refused."),
        "ports": (".ports:ports_app", "Ports and queues: rate, scheduler, capacity, what waits; change them."),
        "drops": (".show:drops_command", "What was dropped where, why, and how fast."),
        "describe": (".show:describe_command", "All that is known of one port: describe s1:3."),
        "watch": (".watch:watch_app", "All of it over time: in the terminal, as a page, for Prometheus, in a file."),
        "trace": (".trace:trace_command", "One packet's way: parser, tables, actions, queue, drop reason."),
        "log": (".show:log_command", "What changed when, and why: the loop's event log."),
    },
    "Tune": {
        **command_groups(),
        "undo": (".change:undo_command", "Take the last change back, or list the changes."),
    },
    "Set up and run": {
        "new": (".new:new_command", "Write a queueing scheme, a sender or an experiment of your own to begin from."),
        "config": (".config:config_app", "Set switches up; the configuration file: check, diff, apply."),
        "run": (".run:run_command", "The control loop, in the foreground, until Ctrl-C."),
        "setup": (".setup:setup_app", "What this machine lacks: report it, install it; test certificates."),
        "p4": (".p4:p4_app", "Any program's tables, counters, meters: simple_switch_CLI's verbs."),
    },
}  # fmt: skip
COMMANDS = [
    LazyCommand(name, target, summary, panel)
    for panel, commands in _BY_PANEL.items()
    for name, (target, summary) in commands.items()
]

PLUGIN_SUMMARIES = {
    "hosts": "TCP variants of the hosts: list, check, show, use.",
    "lab": "Experiments: run them, show their tables, make their plots.",
    "link": "Links of a running topology: list, show, set, spike, outage, capture.",
}
"""Of our own other packages, so that the list imports none of them."""


def make_app(*, with_plugins: bool = True) -> typer.Typer:
    """The whole command line; without the other packages' commands for tests."""
    app = lazy_app(
        [*COMMANDS, *(plugins() if with_plugins else ())],
        name="fairlane",
        help="Inspect, tune and run P4 switches that share a slow line fairly, and experiments with them.",
        add_completion=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_root)
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


def plugins() -> list[LazyCommand]:
    """Commands of other installed packages; one that cannot be loaded fails when it is called, with the reason."""
    points = sorted(entry_points(group=COMMANDS_GROUP), key=lambda one: one.name)
    return [LazyCommand(one.name, one.value, PLUGIN_SUMMARIES.get(one.name, one.value), AROUND) for one in points]


def main(argv: list[str] | None = None) -> None:
    """Run the command; ends the process with a documented exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    remember(arguments)
    try:
        code = typer.main.get_command(make_app()).main(arguments, prog_name="fairlane", standalone_mode=False)
    except FairlaneError as ex:
        print_error(ex, as_json="--json" in arguments)
        code = ex.exit_code
    except UsageError as ex:
        if type(ex).__name__ != "NoArgsIsHelpError":  # there the help has been printed
            print_error(bad_input(usage_message(ex)), as_json="--json" in arguments)
        code = ErrorCode.BAD_INPUT.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:
        sys.stderr.close()
        code = ErrorCode.INTERNAL.exit_code
    raise SystemExit(code if isinstance(code, int) else 0)
