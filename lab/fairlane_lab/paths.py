# SPDX-License-Identifier: Apache-2.0
"""Where this tree keeps what the lab reads and writes: experiment files, topologies, run folders."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
EXPERIMENTS = REPOSITORY / "lab" / "experiments"
RESULTS_PAGES = REPOSITORY / "docs" / "results"


def results_root() -> Path:
    """Where run folders go: `results/` of this tree, or of the current folder if that is elsewhere."""
    here = Path.cwd()
    return (REPOSITORY if here.is_relative_to(REPOSITORY) else here) / "results"
