# SPDX-License-Identifier: Apache-2.0
"""Options that several commands of `fairlane lab` share, and what they mean."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from typing import Annotated

import typer
from fairlane_controller.cli.complete import complete_names

from fairlane_lab.cli.output import fail
from fairlane_lab.definition import Definition, ExperimentError, Selection, experiment_names, load
from fairlane_lab.definition.names import RUNTIMES
from fairlane_lab.definition.strict import Scalar

TARGETS = ("embedded", "bmv2")

RuntimeOption = Annotated[
    str,
    typer.Option(
        help="Where to run: sim (virtual time), kernel (Linux's TCP in virtual time; after `make kernel`) or mininet (Linux's TCP in real time, needs root)."
    ),
]
TargetOption = Annotated[str, typer.Option(help="Which switch runs the program in Mininet: embedded or bmv2.")]
SeedOption = Annotated[int, typer.Option(help="Seed of everything that is left to chance.", min=0)]
RepeatsOption = Annotated[int | None, typer.Option(help="Runs of each point; default: the experiment's.", min=1)]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="PARAM=VALUE[,VALUE…] or PARAM=1..20: other values of a sweep, or only these cases."),
]
QuickOption = Annotated[bool, typer.Option(help="Fewer and shorter runs, to see whether it works.")]
complete_experiment = complete_names(lambda _: experiment_names())
NamesArgument = Annotated[
    list[str],
    typer.Argument(
        help="Experiments: names, files (.toml), patterns ('name-*') or all.", autocompletion=complete_experiment
    ),
]


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def find_experiments(names: Sequence[str], runtime: str | None = None) -> list[Definition]:
    """The experiments that names and patterns mean; of a pattern only those that run in `runtime`. Leaves with what is wrong."""
    known = experiment_names()
    found: dict[str, Definition] = {}
    try:
        for given in names:
            name = "*" if given == "all" else given
            if not any(character in name for character in "*?["):
                found[name] = load(name)
                continue
            matching = [each for each in known if fnmatch.fnmatchcase(each, name)]
            chosen = [load(each) for each in matching]
            chosen = [each for each in chosen if runtime is None or each.experiment.runs_in(runtime)]
            if not chosen:
                fail(f"no experiment is called like {name!r}; there are: {', '.join(known)}")
            found |= {each.experiment.name: each for each in chosen}
    except ExperimentError as error:
        fail(str(error))
    return list(found.values())


def make_selection(
    runtime: str, target: str, seed: int, repeats: int | None, values: Sequence[str] | None, quick: bool
) -> Selection:
    """The selection that the options mean. Leaves with what is wrong and what is allowed."""
    if runtime not in RUNTIMES:
        fail(f"--runtime {runtime!r}: must be {' or '.join(RUNTIMES)}")
    if target not in TARGETS:
        fail(f"--target {target!r}: must be {' or '.join(TARGETS)}")
    if runtime != "mininet" and target != "embedded":
        fail(f"--target {target}: the simulator runs the embedded switch's own code; {target} needs --runtime mininet")
    return Selection(
        runtime=runtime,
        seed=seed,
        repeats=repeats,
        quick=quick,
        values=parse_values(values or []),
    )


def parse_values(texts: Sequence[str]) -> dict[str, tuple[Scalar, ...]]:
    """`threshold=4,auto` and `threshold=1..20` as values by parameter. Leaves with what is wrong."""
    found: dict[str, tuple[Scalar, ...]] = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        words = [word.strip() for word in listed.split(",")]
        if not equals or not name.strip() or not all(words):
            fail(f"--set {text!r}: must be PARAM=VALUE, PARAM=VALUE,VALUE or PARAM=FIRST..LAST")
        if name.strip() in found:
            fail(f"--set {text!r}: {name.strip()} is set twice; give its values with commas")
        found[name.strip()] = tuple(value for word in words for value in _values(word, text))
    return found


def _values(word: str, text: str) -> list[Scalar]:
    first, dots, last = word.partition("..")
    if not dots:
        return [_value(word)]
    low, high = _value(first), _value(last)
    if not isinstance(low, int) or not isinstance(high, int) or high < low or high - low > 10_000:
        fail(f"--set {text!r}: {word!r} must be two whole numbers, the first not above the last")
    return list(range(low, high + 1))


def _value(word: str) -> Scalar:
    if word in ("true", "false"):
        return word == "true"
    for kind in (int, float):
        try:
            return kind(word.replace("_", ""))
        except ValueError:
            continue
    return word
