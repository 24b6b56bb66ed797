# SPDX-License-Identifier: Apache-2.0
"""Run folders: `results/<experiment>/<UTC time>/` with summary.json, tables and plots; `latest` points to the newest.

A run folder is complete in itself: plots and tables are made from it, later and again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

from fairlane_lab.paths import results_root
from fairlane_lab.results.summary_file import RunFolderError, read_summary


def new_folder(experiment: str, root: Path | None = None) -> Path:
    """Make the run folder of a new run, named by the UTC time. `latest` is moved by `publish`, when there is a result. Raises OSError."""
    base = (root or results_root()) / experiment
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    folder, extra = base / stamp, 1
    while folder.exists():
        extra += 1
        folder = base / f"{stamp}-{extra}"
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
    path = write_summary(folder, summary)
    latest = folder.parent / "latest"
    link = folder.parent / ".latest.new"
    link.unlink(missing_ok=True)
    link.symlink_to(folder.name)
    link.replace(latest)
    return path


def write_summary(folder: Path, summary: dict[str, Any]) -> Path:
    """Write summary.json whole or not at all. Returns the file's path."""
    path = folder / "summary.json"
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n")
    draft.replace(path)
    return path


def newest_folder(experiment: str, root: Path | None = None, runtime: str | None = None) -> Path | None:
    """The newest published run folder of an experiment (in a runtime), or None."""
    base = (root or results_root()) / experiment
    found: list[tuple[str, Path]] = []
    for folder in base.glob("*"):
        try:
            summary = {} if folder.is_symlink() else read_summary(folder)
        except RunFolderError:
            continue
        if summary and runtime in (None, summary["runtime"]):
            found.append((str(summary.get("metadata", {}).get("started", "")), folder))
    return max(found)[1] if found else None


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a JSON-lines file; a last line that was cut off is left out, a missing file is empty."""
    if not path.exists():
        return
    with path.open() as file:
        for line in file:
            try:
                event: Any = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                yield cast("dict[str, Any]", event)
