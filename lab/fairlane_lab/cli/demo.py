# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab demo`: the experiment `demo` in Mininet, changed as its options say."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fairlane_lab.cli.options import SeedOption, TargetOption, make_selection
from fairlane_lab.cli.output import fail
from fairlane_lab.cli.running import ResultsOption, run_definitions
from fairlane_lab.definition import ExperimentError
from fairlane_lab.definition.extend import make_source
from fairlane_lab.definition.load import make_definition
from fairlane_lab.paths import EXPERIMENTS

WARMUP_S = 11.0


def demo(
    target: TargetOption = "embedded",
    duration: Annotated[
        float, typer.Option(help="Seconds that both flows send in each run.", min=15.0, max=600.0)
    ] = 29.0,
    offsets: Annotated[
        str, typer.Option(help="Start offsets in seconds: how much later Vegas starts than Reno.")
    ] = "-0.5,0,0.5",
    qthresh: Annotated[
        str, typer.Option(help="Thresholds to run: auto (the controller's own) or packets, with commas.")
    ] = "auto",
    link: Annotated[list[str] | None, typer.Option(help="Only this link of the paper; repeat for several.")] = None,
    drop_tail: Annotated[bool, typer.Option(help="Run drop-tail first.")] = True,
    reno: Annotated[
        str, typer.Option(help="Variant that stands for TCP Reno; `fairlane hosts list` has them.")
    ] = "reno",
    vegas: Annotated[str, typer.Option(help="Variant that stands for TCP Vegas.")] = "vegas",
    seed: SeedOption = 1,
    results: ResultsOption = None,
) -> None:
    """Reno and Vegas on the paper's four links, side by side: drop-tail, then Qthresh with the controller's own threshold."""
    selection = make_selection("mininet", target, seed, None, [f"case={','.join(link)}"] if link else None, False)
    starts = _offsets(offsets)
    later_s = max(map(abs, starts))
    changes: dict[str, Any] = {
        "extends": "demo",
        "name": "demo",
        "params": {"variant_1": reno, "variant_2": vegas},
        "sweep": {"control": [*([{"label": "drop-tail", "scheme": "drop_tail"}] * drop_tail), *_thresholds(qthresh)]},
        "run": {
            "duration_s": duration + later_s,
            "warmup_s": WARMUP_S + later_s,
            "repeats": len(starts),
            "series_repeats": len(starts),
            "starts": {"offsets_s": starts},
        },
    }
    try:
        definition = make_definition(make_source(changes, EXPERIMENTS / "options of fairlane lab demo"))
    except ExperimentError as error:
        fail(str(error))
    run_definitions([definition], selection, target, results)


def _offsets(text: str) -> list[float]:
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        fail(f"--offsets {text!r}: must be seconds with commas, such as -0.5,0,0.5")
    if not all(abs(value) <= 10 for value in values):
        fail(f"--offsets {text!r}: each must be between -10 and 10 seconds")
    return values


def _thresholds(text: str) -> list[dict[str, Any]]:
    """The items of the sweep `control`."""
    items: list[dict[str, Any]] = []
    for word in text.split(","):
        if word != "auto" and not (word.isdigit() and 1 <= int(word) <= 50):
            fail(f"--qthresh {word!r}: must be auto, or 1 to 50 packets")
        items.append({"label": word, "scheme": "qthresh", "threshold": int(word) if word.isdigit() else word})
    return items
