# SPDX-License-Identifier: Apache-2.0
"""Programs that come with fairlane, one folder each; nothing imports them by name (`fairlane_controller/program/registry.py`)."""

DEFAULT = "qthresh"
"""What switches run when nothing says another."""
