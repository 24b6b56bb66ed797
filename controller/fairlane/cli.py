# SPDX-License-Identifier: Apache-2.0
"""For programs. The command line: parameter types, options, tables, snapshots."""

from fairlane_controller.cli.change import Planned as Planned
from fairlane_controller.cli.change import carry_out as carry_out
from fairlane_controller.cli.complete import complete_port as complete_port
from fairlane_controller.cli.conventions import App as App
from fairlane_controller.cli.model_options import options_of as options_of
from fairlane_controller.cli.objects import Objects as Objects
from fairlane_controller.cli.objects import need_changes as need_changes
from fairlane_controller.cli.options import ClassOption as ClassOption
from fairlane_controller.cli.options import DryRunOption as DryRunOption
from fairlane_controller.cli.options import JsonOption as JsonOption
from fairlane_controller.cli.options import OnlyPortArgument as OnlyPortArgument
from fairlane_controller.cli.options import PortArgument as PortArgument
from fairlane_controller.cli.options import StateOption as StateOption
from fairlane_controller.cli.options import SwitchOption as SwitchOption
from fairlane_controller.cli.output import console as console
from fairlane_controller.cli.output import print_json as print_json
from fairlane_controller.cli.output import print_table as print_table
from fairlane_controller.cli.targets import Targets as Targets
from fairlane_controller.cli.targets import resolve as resolve
from fairlane_controller.cli.types import PortRef as PortRef
from fairlane_controller.cli.types import Seconds as Seconds
from fairlane_controller.cli.types import number_option as number_option
from fairlane_controller.cli.types import packet_bytes_option as packet_bytes_option
from fairlane_controller.cli.types import queue_packets_option as queue_packets_option
from fairlane_controller.cli.types import rate_bps as rate_bps
from fairlane_controller.cli.types import split_port as split_port
from fairlane_controller.cli.types import time_option as time_option
from fairlane_controller.live.model import ObjectRow as ObjectRow
from fairlane_controller.live.model import Snapshot as Snapshot
from fairlane_controller.live.pictures import need_program as need_program
from fairlane_controller.live.pictures import take_two as take_two
