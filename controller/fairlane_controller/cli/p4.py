# SPDX-License-Identifier: Apache-2.0
"""`fairlane p4 …`: the compiler, PTF, tables and the verbs of simple_switch_CLI, over P4Runtime, for whatever program runs."""

from __future__ import annotations

from fairlane_controller.cli.lazy import LazyCommand, lazy_app
from fairlane_controller.verbs.catalog import CATALOG

MANY, VERBS = "Programs, and many lines at once", "Verbs of simple_switch_CLI"
COMMANDS = [
    LazyCommand("script", ".verbs:script_command", "Lines of a file as one change, all or nothing.", MANY),
    LazyCommand("compile", ".folder:compile_command", "Compile the P4 program of a folder (p4c-bm2-ss).", MANY),
    LazyCommand("test", ".folder:ptf_command", "Test a program packet by packet (PTF).", MANY),
    *(LazyCommand(verb.name, f".verbs:{verb.name}", verb.summary, VERBS) for verb in CATALOG),
]

p4_app = lazy_app(COMMANDS, help="Any program's tables, counters, registers, meters and clone sessions, by P4Runtime.")
