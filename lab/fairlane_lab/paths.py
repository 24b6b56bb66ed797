# SPDX-License-Identifier: Apache-2.0
"""Where this tree keeps what the lab reads and writes: experiment files, topologies, run folders; and a digest of files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
EXPERIMENTS = REPOSITORY / "lab" / "experiments"
CLAIMS = REPOSITORY / "lab" / "claims.toml"
PAPERS = REPOSITORY / "lab" / "papers"
RESULTS_PAGES = REPOSITORY / "docs" / "results"
RESULTS_DATA = RESULTS_PAGES / "data"


def results_root() -> Path:
    """Where run folders go: `results/` of this tree, or of the current folder if that is elsewhere."""
    here = Path.cwd()
    return (REPOSITORY if here.is_relative_to(REPOSITORY) else here) / "results"


def digest_files(paths: Iterable[Path], digits: int) -> str:
    """Of the files' names and bytes, in this order: `digits` (an even number) hexadecimal digits."""
    found = hashlib.blake2b(digest_size=digits // 2)
    for path in paths:
        found.update(path.name.encode())
        found.update(path.read_bytes())
    return found.hexdigest()
