# SPDX-License-Identifier: Apache-2.0
"""What becomes of the benchmarks' numbers: a folder under `results/bench/`, and a table."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from testbed import ROOT

RESULTS = ROOT / "results" / "bench"


def git_revision() -> str:
    """Commit of the tree, with a plus where it was changed; empty outside git and without it."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--dirty=+"]
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=30).stdout.strip()
    except FileNotFoundError:
        return ""


def processor() -> str:
    """Name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def save(summary: dict[str, Any], results: Path = RESULTS) -> Path:
    """Write the summary into a new folder and point `latest` to it; returns the file."""
    folder = results / datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H-%M-%SZ")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "summary.json"
    file.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    new = results / f"latest.{os.getpid()}"
    new.symlink_to(folder.name)
    new.replace(results / "latest")
    return file


def show(rows: list[dict[str, Any]], console: Console) -> None:
    """The table, aims beside what was measured."""
    table = Table(title="fairlane on this machine, all in one run")
    table.add_column("measured")
    for column in ("value", "unit", "aim", ""):
        table.add_column(column, justify="right" if column == "value" else "left")
    for row in rows:
        verdict = "" if not row["aim"] else "[green]reached[/]" if row["ok"] else "[red]missed[/]"
        value = f"{row['value']:,.4g}" if abs(row["value"]) < 1000 else f"{row['value']:,.0f}"
        table.add_row(row["name"], value, row["unit"], row["aim"], verdict)
    console.print(table)
