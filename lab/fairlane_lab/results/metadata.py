# SPDX-License-Identifier: Apache-2.0
"""What the numbers depend on beside the experiment's own parameters: git, kernel, versions, machine."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib import metadata as packages
from typing import Any

from fairlane_lab.paths import REPOSITORY

PACKAGES = ("fairlane_switch", "fairlane_controller", "fairlane_hosts", "fairlane_lab", "finsy", "numpy", "pandas", "pyarrow", "scipy", "statsmodels")  # fmt: skip


def metadata() -> dict[str, Any]:
    """What the numbers depend on beside the experiment's own parameters."""
    version = git_version()
    return {
        "git": version,
        "commit": _git("rev-parse", "HEAD") or "unknown",
        "dirty": version.endswith("-dirty"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str:
    try:
        return packages.version(package)
    except packages.PackageNotFoundError:
        return "not installed"


def git_version() -> str:
    """Short commit hash of this tree, with `-dirty` when it has changes; `unknown` outside git."""
    return _git("describe", "--always", "--dirty") or "unknown"


def origin_problem(about: Mapping[str, Any]) -> str:
    """Why runs with this metadata are of no commit that others have; empty where they are of one, or where there is no history to look in."""
    version = str(about.get("git", "unknown"))
    commit = str(about.get("commit") or version.removesuffix("-dirty"))
    if about.get("dirty", version.endswith("-dirty")):
        return f"{commit[:12]} with changes: its runs are of a changed tree"
    if _git("rev-parse", "--is-shallow-repository") != "false":
        return ""
    known = _git("merge-base", commit, "HEAD") == _git("rev-parse", commit) != ""
    return "" if known else f"{commit[:12]} is not in the history"


def _git(*arguments: str) -> str:
    """What git reports of this tree; empty where it fails."""
    command = ["git", "-c", f"safe.directory={REPOSITORY}", "-C", str(REPOSITORY), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
