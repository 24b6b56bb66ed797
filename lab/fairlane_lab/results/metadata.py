# SPDX-License-Identifier: Apache-2.0
"""What the numbers depend on beside the experiment's own parameters: git, kernel, versions, machine."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib import metadata as packages
from typing import Any

from fairlane_lab.paths import REPOSITORY

PACKAGES = ("fairlane_switch", "fairlane_controller", "fairlane_hosts", "fairlane_lab", "finsy", "numpy", "pandas", "pyarrow", "scipy")  # fmt: skip


def metadata() -> dict[str, Any]:
    """What the numbers depend on beside the experiment's own parameters."""
    return {
        "git": git_version(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Versions of the packages that the results come from."""
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = packages.version(name)
        except packages.PackageNotFoundError:
            found[name] = "not installed"
    return found


def git_version() -> str:
    """Short commit hash of this tree, with `-dirty` when it has changes; `unknown` outside git."""
    command = ["git", "-c", f"safe.directory={REPOSITORY}", "-C", str(REPOSITORY), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() if done.returncode == 0 else "unknown"
