# SPDX-License-Identifier: Apache-2.0
"""For programs. What is remembered of a topology, and changes that are made whole or not at all."""

from fairlane_controller.history.sites import Sites
from fairlane_controller.program.documents import Documents
from fairlane_controller.state.store import STATE_FILE

__all__ = [
    "STATE_FILE",
    "Documents",
    "Sites",
]
