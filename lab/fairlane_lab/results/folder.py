# SPDX-License-Identifier: Apache-2.0
"""Run folders: `results/<experiment>/<UTC time>/` with summary.json, tables and plots; `latest` points to the newest. And what the numbers
depend on beside the experiment's own parameters: git, kernel, versions, machine.

A run folder is complete in itself: plots and tables are made from it, later and again.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib import metadata as packages
from pathlib import Path
from typing import Any

from fairlane_controller.documents import parse_json, write_json

from fairlane_lab.paths import REPOSITORY, results_root
from fairlane_lab.problems import RunFolderError

SUMMARY = "summary.json"


def new_folder(experiment: str, root: Path | None = None) -> Path:
    """Make the run folder of a new run, named by the UTC time. `latest` is moved by `publish`, when there is a result. Raises OSError."""
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    first = folder = (root or results_root()) / experiment / stamp
    extra = 1
    while folder.exists():
        extra += 1
        folder = first.with_name(f"{stamp}-{extra}")
    missing = [folder, *(above for above in folder.parents if not above.exists())]
    folder.mkdir(parents=True)
    for each in reversed(missing):
        _give_to_owner_of(each.absolute().parent, each)
    return folder


def hand_over(folder: Path) -> None:
    """Give all of a run folder, and `latest`, to whom the folder belongs: Mininet runs as root, the next run may not."""
    for path in (folder.parent / "latest", *folder.rglob("*")) if folder.exists() else ():
        _give_to_owner_of(folder, path)


def _give_to_owner_of(other: Path, path: Path) -> None:
    if os.geteuid() == 0 and (path.is_symlink() or path.exists()):
        owner = other.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def publish(folder: Path, summary: dict[str, Any]) -> Path:
    """Write summary.json whole, then let `latest` point to this run. Returns the file's path."""
    path = folder / SUMMARY
    write_json(path, summary)
    latest = folder.parent / "latest"
    link = folder.parent / ".latest.new"
    link.unlink(missing_ok=True)
    link.symlink_to(folder.name)
    link.replace(latest)
    return path


def read_document(folder: Path, name: str) -> dict[str, Any]:
    """A JSON object in a run folder. Raises RunFolderError."""
    path = folder / name
    try:
        document: Any = parse_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise RunFolderError(
            f"{folder}: not a run folder: there is no {name} in it; results/demo/latest is one"
        ) from None
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # UnicodeDecodeError too
        raise RunFolderError(f"{path}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise RunFolderError(f"{path}: not of `fairlane lab`: it must be a JSON object")
    return document  # pyright: ignore[reportUnknownVariableType]


PACKAGES = ("fairlane_switch", "fairlane_controller", "fairlane_hosts", "fairlane_lab", "finsy", "numpy", "pandas", "pyarrow", "scipy", "statsmodels")  # fmt: skip


def metadata() -> dict[str, Any]:
    """What the numbers depend on beside the experiment's own parameters."""
    version = _git("describe", "--always", "--dirty") or "unknown"
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
