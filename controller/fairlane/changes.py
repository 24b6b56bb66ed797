# SPDX-License-Identifier: Apache-2.0
"""For programs. What is remembered of a topology, and changes that are made whole or not at all."""

from fairlane_controller.history import Sites as Sites
from fairlane_controller.program.documents import Documents as Documents
from fairlane_controller.state.ask import ask as ask
from fairlane_controller.state.ask import loop_runs as loop_runs
from fairlane_controller.state.events import EventLog as EventLog
from fairlane_controller.state.files import read_text as read_text
from fairlane_controller.state.store import STATE_FILE as STATE_FILE
from fairlane_controller.state.store import Store as Store
