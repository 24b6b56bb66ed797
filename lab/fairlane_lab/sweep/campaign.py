# SPDX-License-Identifier: Apache-2.0
"""What is to be run and where its results go; the one way in which it is run.

campaign.json in the folder says what the folder is of: definition, runtime, target, seed, and hashes of all files that decide
a run's bytes (`fairlane_lab.inputs`), which the folder has too, and repeat.sh makes its runs again from these, wherever the folder lies. A campaign that finds a folder of the same goes on where it
stopped: runs that are there are not made again. A folder of anything else is refused.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fairlane_controller.documents import is_table, write_json, write_whole
from pydantic import BaseModel, Field, ValidationError

from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.loading import Definition
from fairlane_lab.definition.points import make_points
from fairlane_lab.inputs import COPIES, Input, build_hashes, campaign_inputs, copy_inputs, digest_once
from fairlane_lab.problems import RunFolderError, pydantic_problems
from fairlane_lab.results.folder import metadata, publish, read_document
from fairlane_lab.results.rows import make_rows
from fairlane_lab.results.summary import summarise
from fairlane_lab.results.tables import DETERMINISTIC, EVENTS, Store
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario, checked_topology
from fairlane_lab.sweep.runners import Executor, Outcome

SCRIPT = "repeat.sh"
_SCRIPT = """\
#!/bin/sh
# Makes the runs of this folder again, into again/. Needs fairlane {git}, set up as its README says.
set -e
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/{folder}"
{commands}
"""
_COMPARE = """\
for file in {files}; do
    [ ! -e "$here/$file" ] || cmp "$here/$file" "$here/again/$file"
done
echo "the same bytes: {files}"
"""


def repeat_script(campaign: Mapping[str, Any], git: str) -> str:
    """The text for a folder with this campaign.json, made by that commit of fairlane. In real time numbers differ: there it compares nothing."""
    commands = "\n".join(_command(campaign, selection) for selection in campaign["selections"])
    text = _SCRIPT.format(git=git, folder=Path(campaign["file"]).parent, commands=commands)
    files = " ".join([*(f"{name}.parquet" for name in DETERMINISTIC), EVENTS])
    return text if campaign["runtime"] == "mininet" else text + _COMPARE.format(files=files)


def _command(campaign: Mapping[str, Any], selection: Mapping[str, Any]) -> str:
    """The command that made these runs, of the copied experiment."""
    words = ["sudo"] if campaign["runtime"] == "mininet" else []
    words += ["fairlane", "lab", "run", Path(campaign["file"]).name, "--folder", "$here/again", "--no-plots"]
    words += ["--runtime", campaign["runtime"], "--target", campaign["target"], "--seed", str(campaign["seed"])]
    words += ["--quick"] if campaign["quick"] else []
    words += ["--repeats", str(selection["repeats"])] if selection["repeats"] else []
    for param, values in selection["values"].items():
        listed = ",".join(each if isinstance(each, str) else json.dumps(each) for each in values)
        words += ["--set", f"{param}={listed}"]
    return " ".join(f'"{word}"' if word.startswith("$here") else shlex.quote(word) for word in words)


CAMPAIGN = "campaign.json"
CAPTURES = "captures"
_SHARED = ("duration_s", "warmup_s")
"""Values that all runs of a folder have alike."""


class _Selection(BaseModel):
    repeats: int | None
    values: dict[str, list[Any]]


class _Kept(BaseModel):
    """What a campaign that goes on takes over from its folder's campaign.json."""

    inputs: dict[str, str] = Field(default_factory=dict)
    selections: list[_Selection] = Field(default_factory=list[_Selection])


@dataclass(frozen=True)
class Campaign:
    """A selection of an experiment and the folder of its results."""

    definition: Definition
    selection: Selection
    folder: Path
    target: str = "embedded"
    captures: Sequence[str] = ()
    """Links whose packets go into files beside the results; they change none of these."""

    @cached_property
    def scenarios(self) -> list[Scenario]:
        """Every run of it. Raises ExperimentError for a selection that makes no sense, RunFolderError for a capture of a link that is not there."""
        found = expand(self.definition, self.selection)
        return [self._capturing(scenario) for scenario in found] if self.captures else found

    def _capturing(self, scenario: Scenario) -> Scenario:
        there = [link.name for link in checked_topology(scenario).links]
        if unknown := [link for link in self.captures if link not in there]:
            why = f"{scenario.point} has no such link; it has: {', '.join(there)}"
            raise RunFolderError(f"--capture {unknown[0]}: {why}")
        folder = (self.folder / CAPTURES / scenario.point / str(scenario.repeat)).absolute()
        return replace(scenario, captures={link: folder / f"{link}.pcapng" for link in self.captures})

    @property
    def about(self) -> dict[str, Any]:
        """Where, by what and with which seed its runs are made."""
        chosen = self.selection
        return {"runtime": chosen.runtime, "target": self.target, "seed": chosen.seed, "quick": chosen.quick}

    def inputs(self, scenarios: Sequence[Scenario]) -> list[Input]:
        """The files of these runs, and of all points of the experiment: the same whichever of them a selection leaves out."""
        every = expand(self.definition, Selection(self.selection.runtime, repeats=1))
        return campaign_inputs(self.definition, [*every, *scenarios])

    def identity(self, inputs: Sequence[Input]) -> dict[str, Any]:
        """What all runs of a folder share, as campaign.json has it."""
        folder = self.definition.source.file.absolute().parent.resolve()
        return {
            "experiment": self.definition.experiment.name,
            "definition_sha256": self.definition.sha256,
            **self.about,
            "build": dict(build_hashes(kernel=self.selection.runtime == "kernel")),
            "inputs": {each.name(folder): each.digest for each in inputs if each.kind != "experiment"},
            "set": self._constants,
        }

    @property
    def _constants(self) -> dict[str, list[Any]]:
        """What the selection sets that no point's name says: what is not as in the file."""
        experiment, found = self.definition.experiment, dict[str, list[Any]]()
        for name, values in self.selection.values.items():
            is_constant = (
                len(values) == 1 and name in {**experiment.params, **experiment.drawn}.keys() - experiment.sweep
            )
            if name in _SHARED or (is_constant and experiment.params.get(name) != values[0]):
                found[name] = list(values)
        return found


@dataclass(frozen=True)
class CampaignResult:
    """The result of a campaign."""

    summary: Mapping[str, Any]
    path: Path
    """Of summary.json."""
    failures: Sequence[Outcome]
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

    Without a single result no folder is left.

    Raises:
        ExperimentError, RunFolderError: Before anything runs.
        RunError: Results cannot be written, or what is there is damaged.

    """
    try:
        return _run(campaign, executor, on_outcome)
    except OSError as error:
        text = f"{campaign.folder} cannot be written: {error.strerror or error}"
        if campaign.folder.is_dir():
            text += "; `fairlane lab run` with this --folder goes on with the runs that are in it"
        raise RunError(text) from None


def _run(campaign: Campaign, executor: Executor, on_outcome: Callable[[Outcome], None]) -> CampaignResult:
    scenarios = campaign.scenarios
    inputs = campaign.inputs(scenarios)
    for each in inputs:
        if each.kind == "program" and each.digest != digest_once(each):
            raise RunFolderError(
                f"{each.kind} {each.given} has changed since this process loaded it: start another one"
            )
    points = [
        *(point.name for point in make_points(campaign.definition.experiment)),
        *(each.point for each in scenarios),
    ]
    store = Store(campaign.folder, list(dict.fromkeys(points)))
    about = metadata()
    about["campaign"] = identity = _claim(campaign, inputs, about["git"])
    there = store.finished_runs()
    missing = [scenario for scenario in scenarios if (scenario.point, scenario.repeat) not in there]
    failures: list[Outcome] = []
    known = identity["inputs"].values()
    read = [each for each in inputs if each.kind not in ("experiment", "topology")]  # scenarios hold the others
    began = [each.stamps for each in read]
    for file in (file for each in missing for file in each.captures.values()):
        file.parent.mkdir(parents=True, exist_ok=True)

    def take(outcome: Outcome) -> None:
        touched = (each for each, stamps in zip(read, began, strict=True) if each.stamps != stamps)
        changed = [f"{each.kind} {each.given}" for each in touched if each.digest not in known]
        if changed:
            raise RunError(f"{', '.join(changed)} changed while the campaign ran: what ran since then is not kept")
        if outcome.result is not None:
            store.add(make_rows(outcome.scenario, outcome.result, campaign.selection.runtime, campaign.target))
        else:
            failures.append(outcome)
        on_outcome(outcome)

    interrupted, stopped = False, ""
    try:
        if missing:
            executor(missing, take)
    except KeyboardInterrupt:
        interrupted = True
    except RuntimeError as error:  # RunError too: a cluster that is gone, a network that does not start
        stopped = str(error)
    store.flush()
    path = campaign.folder
    if done := store.finished_runs():
        store.merge()
    summary = _summary(campaign, about, scenarios, done, failures)
    if done:
        path = publish(campaign.folder, summary)
    else:
        shutil.rmtree(campaign.folder)
    return CampaignResult(summary, path, failures, interrupted, len(scenarios) - len(missing), stopped)


def _summary(
    campaign: Campaign,
    about: Mapping[str, Any],
    scenarios: Sequence[Scenario],
    done: set[tuple[str, int]],
    failures: Sequence[Outcome],
) -> dict[str, Any]:
    asked = {(scenario.point, scenario.repeat) for scenario in scenarios}
    # Other repeats differ in what is drawn alone, and the column `drawn` has that.
    first = [each for each in scenarios if each.repeat == scenarios[0].repeat]
    known = {
        **campaign.about,
        "complete": asked <= done,
        "asked_runs": len(asked),
        "failures": [
            each.as_failure() for each in sorted(failures, key=lambda each: (each.scenario.point, each.scenario.repeat))
        ],
        "metadata": dict(about),
        "topologies": list({json.dumps(each.topology, sort_keys=True): each.topology for each in first}.values()),
    }
    return summarise(campaign.folder, campaign.definition, known)


def _claim(campaign: Campaign, inputs: Sequence[Input], git: str) -> dict[str, Any]:
    """Make the folder this campaign's, or find that it is; returns what campaign.json says now. Raises RunFolderError when it is another's."""
    path = campaign.folder / CAMPAIGN
    selection = {"repeats": campaign.selection.repeats, "values": campaign.selection.values}
    mine = json.loads(json.dumps({**campaign.identity(inputs), "selections": [selection]}))
    is_new = not path.exists()
    if is_new:
        campaign.folder.mkdir(parents=True, exist_ok=True)
        if any(campaign.folder.iterdir()):
            raise RunFolderError(f"{campaign.folder} is not empty and has no {CAMPAIGN}: not a folder of ours")
    else:
        theirs = read_document(campaign.folder, CAMPAIGN)
        try:
            _Kept.model_validate(theirs)
        except ValidationError as error:
            problems = "; ".join(map(str, pydantic_problems(error, _Kept)[:8]))
            raise RunFolderError(f"{path}: not of `fairlane lab run`: {problems}") from None
        if different := _differing(theirs, mine):
            raise RunFolderError(
                f"{campaign.folder} holds results of something else: {'; '.join(different)}; name another folder"
            )
        mine["inputs"] = theirs.get("inputs", {}) | mine["inputs"]
        before = theirs.get("selections", [])
        mine["selections"] = before + [each for each in mine["selections"] if each not in before]
    try:
        mine["file"] = str(Path(COPIES) / copy_inputs(inputs, campaign.folder / COPIES))
        write_json(path, mine)
        text = repeat_script(mine, git)
        write_whole(campaign.folder / SCRIPT, lambda draft: draft.write_text(text))
    except OSError:
        if is_new:  # the next one must not find a folder that seems to be somebody else's
            shutil.rmtree(campaign.folder, ignore_errors=True)
        raise
    return mine


def _differing(theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> list[str]:
    """`seed was 1, is 2` for each of what a folder's runs share that is not the same; files that only one of them has do not count."""
    then, now = ({**each, **each.get("inputs", {})} for each in (theirs, mine))
    names = [name for name in now if name not in ("inputs", "selections")]
    shared = [name for name in names if name not in mine["inputs"] or name in then]
    return [
        each for name in shared if then.get(name) != now[name] for each in _changed(name, then.get(name), now[name])
    ]


def _changed(name: str, then: Any, now: Any) -> list[str]:
    if is_table(then) and is_table(now):
        differ = [key for key in {**then, **now} if then.get(key) != now.get(key)]
        return [text for key in differ for text in _changed(f"{name}.{key}", then.get(key), now.get(key))]
    was, is_now = ("the file's" if name.startswith("set.") and each is None else _short(each) for each in (then, now))
    return [f"{name} was {was}, is {is_now}"]


def _short(value: Any) -> str:
    text = str(value)
    return text[:12] if len(text) == 64 else text
