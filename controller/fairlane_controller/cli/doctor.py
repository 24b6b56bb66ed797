# SPDX-License-Identifier: Apache-2.0
"""`fairlane setup doctor` and `fairlane setup install`: the scripts that must also run before anything is installed."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

TREE = Path(__file__).parents[3]
SCRIPT = TREE / "setup" / "doctor.py"


def doctor_command() -> None:
    """Say what this machine lacks for fairlane, and how to mend it; exit code 1 where something is missing.

    Example: `fairlane setup doctor`
    """
    runpy.run_path(str(SCRIPT), run_name="__main__")


def install_command() -> None:
    """Install what Mininet needs, with apt (asks sudo for root) on Debian and Ubuntu, and compile the senders for Linux (BPF).

    Virtual time, P4Runtime and PTF need none of it. It says what it does, and skips what is there. In a clone it is `make setup`.

    Example: `fairlane setup install`
    """
    steps = ["all"] if (TREE / "Makefile").exists() else ["wheel", sys.executable]
    os.execv("/bin/bash", ["bash", str(TREE / "setup" / "setup.sh"), *steps])
