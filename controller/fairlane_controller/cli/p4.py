# SPDX-License-Identifier: Apache-2.0
"""`fairlane p4 …`: the compiler, PTF, tables and the verbs of simple_switch_CLI, over P4Runtime, for whatever program runs."""

from __future__ import annotations

from fairlane_controller.cli.lazy import LazyCommand, lazy_app
from fairlane_controller.verbs.catalog import CATALOG

MANY, VERBS = "Programs, tables, and many lines at once", "Verbs of simple_switch_CLI"
_HERE = "fairlane_controller.cli"

COMMANDS = [
    LazyCommand("table", f"{_HERE}.show:table_command", "List the tables, or show the entries of one, of all switches.", MANY),
    LazyCommand("cli", f"{_HERE}.verbs:cli_command", "A prompt for the verbs below, or lines from standard input.", MANY),
    LazyCommand("script", f"{_HERE}.verbs:script_command", "Lines of a file in one connection, all checked first.", MANY),
    LazyCommand("compile", f"{_HERE}.compile:compile_command", "Compile the P4 program of a folder (p4c-bm2-ss).", MANY),
    LazyCommand("test", f"{_HERE}.ptf:ptf_command", "Test a program packet by packet (PTF).", MANY),
    *(LazyCommand(verb.name, f"{_HERE}.verbs:{verb.name}", verb.summary, VERBS) for verb in CATALOG),
]  # fmt: skip


p4_app = lazy_app(COMMANDS, help="Any program's tables, counters, meters and clone sessions, by P4Runtime.")
