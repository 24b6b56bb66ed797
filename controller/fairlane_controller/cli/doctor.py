# SPDX-License-Identifier: Apache-2.0
"""`fairlane doctor`: the script that must also run before anything is installed."""

from __future__ import annotations

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "setup" / "doctor.py"


def doctor_command() -> None:
    """Say what this machine lacks for fairlane, and how to mend it; exit code 1 where something is missing.

    Example: `fairlane doctor`
    """
    runpy.run_path(str(SCRIPT), run_name="__main__")
