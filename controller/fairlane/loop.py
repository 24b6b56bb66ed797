# SPDX-License-Identifier: Apache-2.0
"""For programs. The control loop: sessions and what a switch has refused."""

from fairlane_controller.loop.agent import SwitchAgent

__all__ = [
    "SwitchAgent",
]
