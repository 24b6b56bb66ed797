# SPDX-License-Identifier: Apache-2.0
"""For programs. The command line: parameter types, options, tables, snapshots."""

from fairlane_controller.cli.change import Planned, carry_out
from fairlane_controller.cli.complete import complete_port
from fairlane_controller.cli.conventions import App
from fairlane_controller.cli.model_options import options_of
from fairlane_controller.cli.objects import Objects, need_changes
from fairlane_controller.cli.options import (
    ClassOption,
    DryRunOption,
    JsonOption,
    OnlyPortArgument,
    PortRef,
    StateOption,
    SwitchOption,
    split_port,
)
from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.live.pictures import answering, take_two, unread

__all__ = [
    "App",
    "ClassOption",
    "DryRunOption",
    "JsonOption",
    "Objects",
    "OnlyPortArgument",
    "Planned",
    "PortRef",
    "StateOption",
    "SwitchOption",
    "Targets",
    "answering",
    "carry_out",
    "complete_port",
    "console",
    "need_changes",
    "options_of",
    "print_json",
    "print_table",
    "resolve",
    "split_port",
    "take_two",
    "unread",
]
