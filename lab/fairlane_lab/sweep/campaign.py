# SPDX-License-Identifier: Apache-2.0
"""What is to be run and where its results go; the one way in which `run` and `sweep` run it.

campaign.json in the folder says what the folder is of: definition, runtime, target, seed, and hashes of all files that decide
a run's bytes (`fairlane_lab.inputs`), which the folder holds too. A campaign that finds a folder of the same goes on where it
stopped: runs that are there are not made again. A folder of anything else is refused.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from fairlane_controller.documents import parse_json

from fairlane_lab.definition import Definition, Selection, expand
from fairlane_lab.definition.points import make_points
from fairlane_lab.inputs import COPIES, Input, build_hashes, campaign_inputs, copy_inputs, digest_once, stamp
from fairlane_lab.results.folder import publish
from fairlane_lab.results.metadata import metadata
from fairlane_lab.results.rows import make_rows
from fairlane_lab.results.store import Store
from fairlane_lab.results.summary import summarise
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep.runners import Executor, Failure, Outcome

CAMPAIGN = "campaign.json"


class CampaignError(RuntimeError):
    """A folder that cannot be gone on with; the text says what differs."""


@dataclass(frozen=True)
class Campaign:
    """A selection of an experiment and the folder of its results."""

    definition: Definition
    selection: Selection
    folder: Path
    target: str = "embedded"

    def scenarios(self) -> list[Scenario]:
        """Every run of it. Raises ExperimentError for a selection that makes no sense."""
        return expand(self.definition, self.selection)

    def inputs(self, scenarios: Sequence[Scenario]) -> list[Input]:
        """The files of these runs, and of all points of the experiment: the same whichever of them a selection leaves out."""
        every = expand(self.definition, Selection(self.selection.runtime, repeats=1))
        return campaign_inputs(self.definition, [*every, *scenarios])

    def identity(self, inputs: Sequence[Input]) -> dict[str, Any]:
        """What all runs of a folder share."""
        folder = self.definition.source.file.absolute().parent.resolve()
        return {
            "experiment": self.definition.experiment.name,
            "definition_sha256": self.definition.sha256,
            "runtime": self.selection.runtime,
            "target": self.target,
            "seed": self.selection.seed,
            "quick": self.selection.quick,
            "build": dict(build_hashes(kernel=self.selection.runtime == "kernel")),
            "inputs": {each.name(folder): each.digest for each in inputs if each.kind != "experiment"},
            "set": {name: list(values) for name, values in self.selection.values.items() if name in _SHARED},
        }


_SHARED = ("duration_s", "warmup_s")


@dataclass(frozen=True)
class CampaignResult:
    """The result of a campaign."""

    summary: Mapping[str, Any]
    path: Path
    """Of summary.json."""
    failures: Sequence[Failure]
    interrupted: bool
    skipped: int
    """Runs that were there already."""
    stopped: str = ""
    """Why it could not go on, when it could not."""
    notes: Sequence[str] = ()
    """What was found damaged."""

    @property
    def complete(self) -> bool:
        """Whether every run that was asked for is there."""
        return bool(self.summary["complete"])


def run_campaign(
    campaign: Campaign, executor: Executor, on_outcome: Callable[[Outcome], None] = lambda _outcome: None
) -> CampaignResult:
    """Run what is missing, and write tables and summary whatever happens: after Ctrl-C too, `interrupted` and not complete.

    Raises ExperimentError and CampaignError, before anything runs; RunError where results cannot be written. Without a single
    result no folder is left.
    """
    scenarios = campaign.scenarios()
    inputs = campaign.inputs(scenarios)
    for each in inputs:
        if each.kind == "program" and each.digest != digest_once(each):
            raise CampaignError(f"{each.kind} {each.given} has changed since this process loaded it: start another one")
    with _writing(campaign):
        identity = _claim(campaign, inputs)
    about = {**metadata(), "campaign": identity}
    order = [point.name for point in make_points(campaign.definition.experiment)]
    order += [scenario.point for scenario in scenarios if scenario.point not in set(order)]
    store = Store(campaign.folder, list(dict.fromkeys(order)))
    with _writing(campaign):
        notes = store.set_damaged_aside()
    there = store.finished_runs()
    missing = [scenario for scenario in scenarios if (scenario.point, scenario.repeat) not in there]
    failures: list[Failure] = []
    began = stamp(inputs)

    def take(outcome: Outcome) -> None:
        nonlocal began
        if (now := stamp(inputs)) != began:
            if changed := _changed(inputs, identity):
                raise RunError(f"{changed} changed while the campaign ran: what ran since then is not kept")
            began = now
        if outcome.result is not None:
            runtime = campaign.selection.runtime
            with _writing(campaign):
                store.add(make_rows(outcome.scenario, outcome.result, runtime, campaign.target))
        elif outcome.failure is not None:
            failures.append(outcome.failure)
        on_outcome(outcome)

    interrupted, stopped = False, ""
    try:
        if missing:
            executor(missing, take)
    except KeyboardInterrupt:
        interrupted = True
    except RuntimeError as error:  # RunError too: a cluster that is gone, a network that does not start
        stopped = str(error)
    with _writing(campaign, store):
        store.flush()
        if store.finished_runs():
            notes += _merge(store)
            summary = _summary(campaign, about, scenarios, store, failures)
            path = publish(campaign.folder, summary)
        else:
            summary, path = _summary(campaign, about, scenarios, store, failures), campaign.folder
            if not notes:
                shutil.rmtree(campaign.folder)
    return CampaignResult(summary, path, failures, interrupted, len(scenarios) - len(missing), stopped, notes)


def _merge(store: Store) -> list[str]:
    """Merge what can be read; returns what cannot."""
    try:
        store.merge()
    except (OSError, ValueError):  # pyarrow's errors are of these
        if not (damaged := store.set_damaged_aside(whole=True)):
            raise
        store.merge()
        return damaged
    return []


@contextmanager
def _writing(campaign: Campaign, store: Store | None = None) -> Generator[None]:
    """Raises RunError, in one sentence, where the block cannot write the campaign's folder; `store` says what is in it."""
    try:
        yield
    except OSError as error:
        text = f"{campaign.folder} cannot be written: {error.strerror or error}"
        if store is not None and (there := len(store.finished_runs())):
            text += f"; {there} finished {'run is' if there == 1 else 'runs are'} in it, and the same `fairlane lab sweep` with this --folder goes on"
        raise RunError(text) from None


def _summary(
    campaign: Campaign,
    about: Mapping[str, Any],
    scenarios: Sequence[Scenario],
    store: Store,
    failures: Sequence[Failure],
) -> dict[str, Any]:
    done = store.finished_runs()
    asked = {(scenario.point, scenario.repeat) for scenario in scenarios}
    # Other repeats differ in what is drawn alone, and the column `drawn` has that.
    first = [each for each in scenarios if each.repeat == scenarios[0].repeat]
    topologies = {json.dumps(each.topology, sort_keys=True): each.topology for each in first}
    known = {
        "runtime": campaign.selection.runtime,
        "target": campaign.target,
        "seed": campaign.selection.seed,
        "quick": campaign.selection.quick,
        "complete": asked <= done,
        "asked_runs": len(asked),
        "failures": [asdict(failure) for failure in sorted(failures, key=lambda each: (each.point, each.repeat))],
        "metadata": dict(about),
        "topologies": list(topologies.values()),
    }
    return summarise(campaign.folder, campaign.definition, known)


def _claim(campaign: Campaign, inputs: Sequence[Input]) -> dict[str, Any]:
    """Make the folder this campaign's, or find that it is; returns what campaign.json says now. Raises CampaignError when it is another's."""
    path = campaign.folder / CAMPAIGN
    mine = json.loads(json.dumps(campaign.identity(inputs)))
    asked = {
        "repeats": campaign.selection.repeats,
        "values": {name: list(values) for name, values in campaign.selection.values.items()},
    }
    mine["selections"] = [json.loads(json.dumps(asked))]
    if path.exists():
        try:
            theirs: Any = parse_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CampaignError(f"{path}: not readable: {error}") from error
        if not isinstance(theirs, dict):
            raise CampaignError(f"{path}: not of a campaign: it must be a JSON object")
        theirs = cast("dict[str, Any]", theirs)
        known: dict[str, str] = theirs.get("inputs", {})
        others = {name: digest for name, digest in mine["inputs"].items() if known.get(name, digest) != digest}
        different = [(name, theirs.get(name), mine[name]) for name in mine if name not in ("inputs", "selections")]
        different += [(name, known[name], digest) for name, digest in others.items()]
        said = [f"{name} was {_short(was)}, is {_short(now)}" for name, was, now in different if was != now]
        if said:
            raise CampaignError(f"{campaign.folder} holds results of something else: {'; '.join(said)}")
        mine["inputs"] = known | mine["inputs"]
        before: list[Any] = theirs.get("selections", [])
        mine["selections"] = before + [each for each in mine["selections"] if each not in before]
    else:
        campaign.folder.mkdir(parents=True, exist_ok=True)
        if any(campaign.folder.iterdir()):
            raise CampaignError(f"{campaign.folder} is not empty and has no {CAMPAIGN}: not a folder of ours")
    try:
        mine["file"] = str(Path(COPIES) / copy_inputs(inputs, campaign.folder / COPIES))
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(mine, indent=1) + "\n")
        draft.replace(path)
    except OSError:
        if not path.exists():  # begun just now: the next one must not find a folder that seems to be somebody else's
            shutil.rmtree(campaign.folder, ignore_errors=True)
        raise
    return mine


def _changed(inputs: Sequence[Input], identity: Mapping[str, Any]) -> str:
    known = set(identity["inputs"].values())
    return ", ".join(
        f"{each.kind} {each.given}" for each in inputs if each.kind != "experiment" and each.digest not in known
    )


def _short(value: Any) -> str:
    text = str(value)
    return text[:12] if len(text) == 64 else text


def set_aside(folder: Path) -> Path | None:
    """Move a folder out of the way (`…-old`, `…-old-2`); nothing is deleted. Returns where it is now; None when there was none."""
    if not folder.exists():
        return None
    number = 1
    while (aside := folder.with_name(f"{folder.name}-old" + (f"-{number}" if number > 1 else ""))).exists():
        number += 1
    shutil.move(folder, aside)
    return aside
