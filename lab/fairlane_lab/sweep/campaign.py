# SPDX-License-Identifier: Apache-2.0
"""What is to be run and where its results go; the one way in which `run` and `sweep` run it.

campaign.json in the folder says what the folder is of (definition, runtime, target, seed, …). A campaign that finds a folder
of the same goes on where it stopped: runs that are there are not made again. A folder of anything else is refused.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from fairlane_controller.documents import parse_json

from fairlane_lab.definition import Definition, Selection, expand
from fairlane_lab.definition.points import make_points
from fairlane_lab.results.folder import publish
from fairlane_lab.results.metadata import metadata
from fairlane_lab.results.rows import make_rows
from fairlane_lab.results.store import Store
from fairlane_lab.results.summary import summarise
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep.build import build_hashes
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

    def identity(self) -> dict[str, Any]:
        """What all runs of a folder share."""
        return {
            "experiment": self.definition.experiment.name,
            "definition_sha256": self.definition.sha256,
            "runtime": self.selection.runtime,
            "target": self.target,
            "seed": self.selection.seed,
            "quick": self.selection.quick,
            "build": dict(build_hashes()),
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

    @property
    def complete(self) -> bool:
        """Whether every run that was asked for is there."""
        return bool(self.summary["complete"])


def run_campaign(
    campaign: Campaign, executor: Executor, on_outcome: Callable[[Outcome], None] = lambda _outcome: None
) -> CampaignResult:
    """Run what is missing, and write tables and summary whatever happens: after Ctrl-C too, `interrupted` and not complete.

    Raises ExperimentError and CampaignError, before anything runs. Without a single result no folder is left.
    """
    scenarios = campaign.scenarios()
    about = {**metadata(), "campaign": campaign.identity()}
    _claim(campaign)
    order = [point.name for point in make_points(campaign.definition.experiment)]
    order += [scenario.point for scenario in scenarios if scenario.point not in set(order)]
    store = Store(campaign.folder, list(dict.fromkeys(order)))
    there = store.finished_runs()
    missing = [scenario for scenario in scenarios if (scenario.point, scenario.repeat) not in there]
    failures: list[Failure] = []

    def take(outcome: Outcome) -> None:
        if outcome.result is not None:
            runtime = campaign.selection.runtime
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
    finally:
        store.flush()
    if store.finished_runs():
        store.merge()
        summary = _summary(campaign, about, scenarios, store, failures)
        path = publish(campaign.folder, summary)
    else:
        summary, path = _summary(campaign, about, scenarios, store, failures), campaign.folder
        (campaign.folder / CAMPAIGN).unlink()
        campaign.folder.rmdir()
    return CampaignResult(summary, path, failures, interrupted, len(scenarios) - len(missing), stopped)


def _summary(
    campaign: Campaign,
    about: Mapping[str, Any],
    scenarios: Sequence[Scenario],
    store: Store,
    failures: Sequence[Failure],
) -> dict[str, Any]:
    done = store.finished_runs()
    asked = {(scenario.point, scenario.repeat) for scenario in scenarios}
    topologies = {json.dumps(scenario.topology, sort_keys=True): scenario.topology for scenario in scenarios}
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


def _claim(campaign: Campaign) -> None:
    """Make the folder this campaign's, or find that it is. Raises CampaignError when it is another's."""
    path = campaign.folder / CAMPAIGN
    mine = json.loads(json.dumps(campaign.identity()))
    if path.exists():
        try:
            theirs: Any = parse_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CampaignError(f"{path}: not readable: {error}") from error
        if not isinstance(theirs, dict):
            raise CampaignError(f"{path}: not of a campaign: it must be a JSON object")
        theirs = cast("dict[str, Any]", theirs)
        different = [name for name in mine if theirs.get(name) != mine[name]]
        if different:
            said = "; ".join(f"{name} was {_short(theirs.get(name))}, is {_short(mine[name])}" for name in different)
            raise CampaignError(f"{campaign.folder} holds results of something else: {said}")
        return
    campaign.folder.mkdir(parents=True, exist_ok=True)
    if any(campaign.folder.iterdir()):
        raise CampaignError(f"{campaign.folder} is not empty and has no {CAMPAIGN}: not a folder of ours")
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(mine, indent=1) + "\n")
    draft.replace(path)


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
