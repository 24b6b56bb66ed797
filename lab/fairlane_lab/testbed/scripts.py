# SPDX-License-Identifier: Apache-2.0
"""The scripts of `mininet/` that start and program networks; they need Mininet. `fairlane_lab.topology_scripts` has the others."""

from __future__ import annotations

from fairlane_lab.topology_scripts import FOLDER  # which puts it on the path

# isort: split

import fl_control
import fl_net
import fl_processes

__all__ = ["FOLDER", "fl_control", "fl_net", "fl_processes"]
