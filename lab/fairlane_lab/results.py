# SPDX-License-Identifier: Apache-2.0
"""Run folders: `results/<experiment>/<UTC time>/` with summary.json, raw samples and plots; `latest` points to the newest.

A run folder is complete in itself: plots and tables are made from it, later and again.
"""

from __future__ import annotations

import json
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def results_root() -> Path:
    """Where run folders go: `results/` of this tree."""
    return REPOSITORY / "results"


def new_folder(experiment: str, root: Path | None = None) -> Path:
    """Make the run folder of a new run, named by the UTC time. `latest` is moved by `publish`, when there is a result."""
    base = (root or results_root()) / experiment
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    folder, extra = base / stamp, 1
    while folder.exists():
        extra += 1
        folder = base / f"{stamp}-{extra}"
    folder.mkdir(parents=True)
    return folder


def publish(folder: Path, summary: dict[str, Any]) -> Path:
    """Write summary.json whole, then let `latest` point to this run. Returns the file's path."""
    path = folder / "summary.json"
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(summary, indent=1) + "\n")
    draft.replace(path)
    latest = folder.parent / "latest"
    link = folder.parent / ".latest.new"
    link.unlink(missing_ok=True)
    link.symlink_to(folder.name)
    link.replace(latest)
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Objects of a JSON-lines file; a last line that was cut off is left out, a missing file is empty."""
    if not path.exists():
        return []
    found: list[dict[str, Any]] = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def metadata() -> dict[str, Any]:
    """What the numbers depend on beside the experiment's own parameters."""
    return {
        "git": git_version(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def git_version() -> str:
    """Short commit hash of this tree, with `-dirty` when it has changes; `unknown` outside git."""
    command = ["git", "-c", f"safe.directory={REPOSITORY}", "-C", str(REPOSITORY), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    return done.stdout.strip() if done.returncode == 0 else "unknown"
