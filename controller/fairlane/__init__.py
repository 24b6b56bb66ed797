# SPDX-License-Identifier: Apache-2.0
"""fairlane from Python: what a queueing scheme imports (the contract of `fairlane_controller.program`), and what a script does.

`connect` finds switches that run, `run_experiment` runs an experiment (docs/python.md); both are imported when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairlane_controller.errors import ErrorCode, FairlaneError, find_by_name, out_of_range, short, unknown_name
from fairlane_controller.program.average import AVERAGE_PACKETS, AverageProgram, AverageSettings
from fairlane_controller.program.contract import Config, Place, Plan, Program, Remembered, Wanted, port_state
from fairlane_controller.program.control import (
    Session,
    SwitchControl,
    TopologyControl,
    enable_digest,
    every,
    on_digest,
)
from fairlane_controller.program.learned import LearnedTable, Numbering
from fairlane_controller.program.port_program import AqmProgram, CodelProgram, CodelSettings, Param, PortProgram
from fairlane_controller.program.quantities import (
    Cells,
    Dscp,
    Duration,
    Packets,
    Rate,
    Size,
    duration_text,
    parse_dscp,
)
from fairlane_controller.program.ranks import (
    RankProgram,
    RankSettings,
    StrictProgram,
    StrictSettings,
    WindowProgram,
    WindowSettings,
)
from fairlane_controller.program.registry import check_program, load_program, runs_program
from fairlane_controller.program.requests import Plain, Request
from fairlane_controller.program.rows import Column, Kind, Reason, Row
from fairlane_controller.program.settings import Flag, Section, Settings
from fairlane_controller.program.setup import apply_plan
from fairlane_controller.state.run_state import PortState, RunState, SwitchState
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.entities import Entries
from fairlane_controller.switch.reading import BatchReading as Reading
from fairlane_controller.switch.shared import longest_frame_bytes
from finsy import P4TableAction, P4TableEntry, P4TableMatch

if TYPE_CHECKING:
    from fairlane_lab.api import run_experiment

    from fairlane.network import Network, connect

__all__ = [
    "AVERAGE_PACKETS",
    "AqmProgram",
    "AverageProgram",
    "AverageSettings",
    "Cells",
    "CodelProgram",
    "CodelSettings",
    "Column",
    "Config",
    "Dscp",
    "Duration",
    "Entries",
    "ErrorCode",
    "FairlaneError",
    "Flag",
    "Kind",
    "LearnedTable",
    "Network",
    "Numbering",
    "P4TableAction",
    "P4TableEntry",
    "P4TableMatch",
    "Packets",
    "Param",
    "Place",
    "Plain",
    "Plan",
    "PortProgram",
    "PortState",
    "Program",
    "RankProgram",
    "RankSettings",
    "Rate",
    "Reading",
    "Reason",
    "Remembered",
    "Request",
    "Row",
    "RunState",
    "Section",
    "Session",
    "Settings",
    "Size",
    "StrictProgram",
    "StrictSettings",
    "SwitchClient",
    "SwitchControl",
    "SwitchState",
    "TopologyControl",
    "Wanted",
    "WindowProgram",
    "WindowSettings",
    "apply_plan",
    "check_program",
    "connect",
    "duration_text",
    "enable_digest",
    "every",
    "find_by_name",
    "load_program",
    "longest_frame_bytes",
    "on_digest",
    "out_of_range",
    "parse_dscp",
    "port_state",
    "run_experiment",
    "runs_program",
    "short",
    "unknown_name",
]

_LATE = {"connect": "fairlane.network", "Network": "fairlane.network", "run_experiment": "fairlane_lab.api"}


def __getattr__(name: str) -> Any:
    """What scripts use and programs do not: importing it takes longer, and imports the contract itself."""
    if name not in _LATE:
        raise AttributeError(f"module 'fairlane' has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)
