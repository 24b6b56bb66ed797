# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab plot`, `report` and `compare`: what becomes of run folders, later and again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from fairlane_lab.cli.output import console, fail


def plot(folder: Annotated[Path, typer.Argument(help="A run folder, such as results/demo/latest.")]) -> None:
    """Make the plots of a run folder again."""
    from fairlane_lab import plots as demo_plots
    from fairlane_lab import report

    try:
        pictures = report.make_plots(folder) if _is_experiment(folder) else demo_plots.make_plots(folder)
    except (OSError, KeyError, ValueError) as error:
        fail(f"{folder}: not a run folder: {error}")
    for picture in pictures:
        console.print(str(picture), soft_wrap=True)


def _is_experiment(folder: Path) -> bool:
    try:
        summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    except (OSError, json.JSONDecodeError):
        return False
    return "definition" in summary
