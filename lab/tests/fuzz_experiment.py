# SPDX-License-Identifier: Apache-2.0
"""Hostile experiment files and summaries: every point of an experiment is worked out, or the file is refused with the place."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

from fairlane_controller.documents import parse_toml
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.loading import load_text
from fairlane_lab.paths import EXPERIMENTS
from fairlane_lab.problems import ExperimentError, RunFolderError
from fairlane_lab.report.run_folder import open_run
from fairlane_lab.report.tables import result_table
from rich.console import Console

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "controller" / "tests"))

from fuzz_tools import BYTES, changed, explore, explore_file, readable, texts, toml  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

FILES = [path.read_text(encoding="utf-8") for path in sorted(EXPERIMENTS.glob("*.toml"))]
SUMMARY: dict[str, Any] = {
    "experiment": "qthresh-table1",
    "title": "A table",
    "runtime": "sim",
    "target": "embedded",
    "seed": 1,
    "complete": True,
    "asked_runs": 2,
    "runs": 2,
    "definition": {"title": "A table", "main_metrics": ["fairness"], "flows": [{"group": "reno"}], "plots": [], "paper_numbers": [], "run": {"warmup_s": 2}},
    "points": [{"point": "a/b", "params": {"threshold": 4, "case": "a"}, "runs": 2, "metrics": {"fairness": 0.9, "fairness_lo": 0.8, "fairness_hi": 0.95}, "ranges": {"fairness": [0.8, 0.95]}}],
    "verdicts": [{"text": "fair", "metric": "fairness", "min": 0.5, "max": None, "per": {"case": "a"}, "points": ["a/b"], "value": 0.9, "met": True, "relative_to": {}}],
    "metadata": {"git": "abc", "started": "2026-11-22T10:00:00+00:00"},
    "about": {"kernel": "6.1"},
    "speed": {"wall_s_of_runs": 1.0},
}  # fmt: skip


def explore_experiment(examples: int, seed: int) -> None:
    """An experiment that is taken has its runs, and not more than anybody could run."""
    plain = [json.loads(json.dumps(parse_toml(text), default=str)) for text in FILES]
    as_written = st.builds(changed, st.sampled_from([text.encode() for text in FILES]), BYTES)

    def one(given: bytes) -> None:
        try:
            definition = load_text(given.decode("utf-8", "replace"), "f.toml")
            for runtime in definition.experiment.runtimes:
                expand(definition, Selection(runtime=runtime, repeats=1))
        except ExperimentError as error:
            readable(str(error)[:5000])

    explore(one, texts(*plain, dump=toml) | as_written, examples, seed)


def explore_summary(examples: int, seed: int) -> None:
    """`fairlane lab show` of a run folder."""

    def one(path: Path) -> None:
        folder = path.parent
        try:
            Console(file=io.StringIO()).print(result_table([open_run(folder)]))
        except RunFolderError as error:
            readable(str(error), str(folder))

    explore_file(one, "summary.json", texts(SUMMARY), examples, seed)
