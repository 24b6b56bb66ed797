# SPDX-License-Identifier: Apache-2.0
"""Run folders: `results/<experiment>/<UTC time>/` with summary.json, tables and plots; `latest` points to the newest.

A run folder is complete in itself: plots and tables are made from it, later and again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

from fairlane_lab.paths import results_root
from fairlane_lab.results.summary_file import SUMMARY


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


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file whole or not at all. Raises OSError."""
    draft = path.with_name(f".{path.name}.new")
    try:
        write(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_json(path: Path, document: Any) -> None:
    """Write a JSON file whole or not at all. Raises OSError."""
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    write_whole(path, lambda draft: draft.write_text(text))


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


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a JSON-lines file; a last line that was cut off is left out, a missing file is empty."""
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            event: Any = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield cast("dict[str, Any]", event)
