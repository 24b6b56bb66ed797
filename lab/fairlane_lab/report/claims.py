# SPDX-License-Identifier: Apache-2.0
"""The claims of the papers beside what each runtime says to them; no layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fairlane_lab.definition import load
from fairlane_lab.definition.claims import Claim, ClaimBound, read_claims
from fairlane_lab.definition.judging import Expectation
from fairlane_lab.definition.names import RUNTIMES
from fairlane_lab.report import labels
from fairlane_lab.report.archive import archived_runtimes, open_archived
from fairlane_lab.report.pairing import Pair, pair_up
from fairlane_lab.report.verdict_table import ExpectedBound, Outcome, verdict_table
from fairlane_lab.results.summary import read_rows, summary_of

NOT_RUN = "not run"


@dataclass(frozen=True)
class Judged:
    """A bound in one runtime."""

    experiment: str
    asked: ExpectedBound
    runtime: str
    outcome: Outcome
    expectation: Expectation | None
    """None of runs of an older file."""
    claim: str = ""
    """The claim's id; empty for a hypothesis of our own."""
    started: str = ""
    """Day of the runs."""

    @property
    def why(self) -> str:
        """It is not met, as far as it is known."""
        return self.expectation.why if self.expectation else ""

    @property
    def rank(self) -> tuple[int, float]:
        """What decides a claim comes first: a bound that is not met, then one without data, then one that is open."""
        return {"not met": 0, "not judged": 1, "met": 3}.get(self.outcome.state, 2), self.outcome.margin


def judged_bounds(pair: Pair, asked: Iterable[ExpectedBound], expect: Sequence[Expectation]) -> Iterator[Judged]:
    """Every bound of an experiment in every runtime in which it is asked."""
    days = {run.runtime: run.started[:10] for run in pair.runs}
    by_text = {each.text: each for each in expect}
    for bound in asked:
        expectation = by_text.get(bound.text)
        claim = expectation.claim if isinstance(expectation, ClaimBound) else ""
        for runtime, outcome in bound.outcomes.items():
            if outcome.state != "not asked":
                yield Judged(pair.experiment, bound, runtime, outcome, expectation, claim, days[runtime])


@dataclass(frozen=True)
class Answer:
    """What one runtime says to a claim."""

    state: str = NOT_RUN
    """Of the bound that decides it; `met` when each is, `not run` while one has no data."""
    value: str = ""
    """With interval, n and place: of the bound that decides it."""
    interval: str = ""
    runs: int = 0
    at: str = ""
    """What is measured and asked, where the claim has several bounds, and at which point."""
    met: int = 0
    of: int = 0
    """Bounds that are met, of those that were judged."""
    early: bool = False
    """Whether runs are older than the bound."""

    def __str__(self) -> str:
        """`met: 7.6 % (7.1 to 7.9) [2M-2ms], n = 20; 4 bounds`; `met†`: by runs that are older than the bound."""
        state = f"{self.state}†" if self.early else self.state
        if self.state == NOT_RUN:
            return f"{state}: {self.met} of {self.of} bounds met" if self.of else self.state
        interval = f" ({self.interval.partition(',')[0]})" if self.interval else ""  # the rest says why it has no width
        number = f"{self.value or 'nothing qualifies'}{interval}{f' [{self.at}]' if self.at else ''}, n = {self.runs}"
        if self.of < 2 or self.state == "too few by design":
            return f"{state}: {number}"
        return f"{state}: {number}; {f'{self.of} bounds' if self.state == 'met' else f'{self.met} of {self.of} met'}"


@dataclass(frozen=True)
class ClaimRow:
    """A claim and its answers."""

    claim: Claim
    answers: Mapping[str, Answer]

    def as_json(self) -> dict[str, Any]:
        told = self.claim.model_dump(mode="json", by_alias=True, exclude={"expect"})
        return {**told, "answers": {runtime: asdict(answer) for runtime, answer in self.answers.items()}}


def claim_rows(judged: Iterable[Judged], claims: Sequence[Claim] = ()) -> list[ClaimRow]:
    """Every claim, or only `claims`, in the file's order."""
    found: dict[tuple[str, str], list[Judged]] = {}
    for each in judged:
        found.setdefault((each.claim, each.runtime), []).append(each)
    return [
        ClaimRow(
            claim, {runtime: _answer_to(claim, runtime, found.get((claim.id, runtime), [])) for runtime in RUNTIMES}
        )
        for claim in claims or read_claims()
    ]


def answer_of(judged: Sequence[Judged]) -> Answer:
    """What the bounds of one sentence in one runtime say together: the numbers are those of the bound that decides."""
    known = [each for each in judged if each.outcome.state != "not judged"]
    if not known:
        return Answer()
    decides = min(known, key=lambda each: each.rank)
    outcome, asked = decides.outcome, decides.asked
    met = sum(each.outcome.state == "met" for each in known)
    metrics = {each.expectation.metric for each in known if each.expectation}
    metric = labels.name_of(decides.expectation.metric).label if decides.expectation and len(metrics) > 1 else ""
    asks = asked.bound if len({each.asked.bound for each in known}) > 1 else ""
    per = asked.per if len({each.asked.per for each in judged}) > 1 else ""
    at = ", ".join(part for part in (metric, asks, per, outcome.at) if part)
    return Answer(outcome.state, outcome.value, outcome.interval, outcome.runs, at, met, len(known))


def _answer_to(claim: Claim, runtime: str, judged: Sequence[Judged]) -> Answer:
    answer = answer_of(judged)
    wanted = {bound.experiment for bound in claim.bounds() if runtime in bound.runtimes}
    whole = answer.of == len(judged) and wanted == {each.experiment for each in judged} and not claim.lacks
    early = any(
        each.started < claim.day.isoformat() for each in judged if each.started and each.outcome.state != "not judged"
    )
    answer = replace(answer, early=early)
    return answer if whole or answer.state == "not met" else replace(answer, state=NOT_RUN)


def judge_archive(data: Path) -> list[Judged]:
    """The bounds of the claims' experiments, by the archive. Raises RunFolderError, ExperimentError."""
    judged: list[Judged] = []
    for name in dict.fromkeys(bound.experiment for claim in read_claims() for bound in claim.bounds()):
        runs = [open_archived(data, load(name), runtime) for runtime in archived_runtimes(data, name)]
        pair = Pair(tuple(run for run in runs if run))
        judged += judged_bounds(pair, verdict_table(pair), load(name).experiment.expect) if pair.runs else []
    return judged


def judge_folders(folders: Sequence[Path]) -> list[Judged]:
    """The bounds of run folders, as their experiments' files and the claims are now. Raises RunFolderError, ExperimentError."""
    judged: list[Judged] = []
    for pair in pair_up(folders):
        definition = load(pair.experiment)
        runs = [
            replace(run, summary=summary_of(read_rows(run.path / "runs.parquet"), definition, run.summary))
            for run in pair.runs
        ]
        judged += judged_bounds(pair, verdict_table(Pair(tuple(runs))), definition.experiment.expect)
    return judged
