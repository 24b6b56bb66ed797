# SPDX-License-Identifier: Apache-2.0
"""Makes the scripts of `mininet/` importable: a folder of scripts, never a package (docs/design.md)."""

from __future__ import annotations

import sys

from fairlane_lab.paths import REPOSITORY

FOLDER = REPOSITORY / "mininet"

if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))

import fl_changes  # noqa: E402
import fl_control  # noqa: E402
import fl_net  # noqa: E402
import fl_state  # noqa: E402
import fl_topology  # noqa: E402
from fl_link_spec import LinkChange  # noqa: E402

__all__ = ["FOLDER", "LinkChange", "fl_changes", "fl_control", "fl_net", "fl_state", "fl_topology"]
