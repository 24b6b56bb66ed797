# SPDX-License-Identifier: Apache-2.0
"""What experiments are asked and what each runtime answers: bounds, sentences, claims of the papers; no layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fairlane_lab.definition.judging import Claim, ClaimBound, Expectation, read_claims
from fairlane_lab.definition.loading import load
from fairlane_lab.definition.names import RUNTIMES, SET_BY_THE_LAB
from fairlane_lab.report import labels
from fairlane_lab.report.archive import open_measured
from fairlane_lab.report.run_folder import Measured
from fairlane_lab.results.verdicts import Verdict, margins

NOT_RUN = "not run"
STATES = ("not met", NOT_RUN, "too few by design", "undecided", "met")
"""What can become of a sentence, the worst first."""


@dataclass(frozen=True)
class Judged:
    """A bound in one runtime."""

    experiment: str
    runtime: str
    day: str
    """Of the runs, ISO 8601; empty where it is unknown."""
    verdict: Verdict
    asked: Expectation | None
    """None where the experiment's file does not ask it any more."""

    @property
    def text(self) -> str:
        """What is asked."""
        return self.verdict.text

    @property
    def state(self) -> str:
        """`met`, `not met`, `undecided`, `too few by design` or `no data`."""
        return self.verdict.state

    @property
    def runs(self) -> int:
        """How many it rests on."""
        return self.verdict.runs

    @property
    def claim(self) -> str:
        """The claim's id; empty for a hypothesis of our own."""
        return self.asked.claim if isinstance(self.asked, ClaimBound) else ""

    @property
    def why(self) -> str:
        """It is not met, as far as it is known."""
        return self.asked.why if self.asked else ""

    @cached_property
    def bound(self) -> str:
        """`at least 97 %`, `at most 0.9`, `6 to 17 %`."""
        low, high = self.verdict.min, self.verdict.max
        texts = [self._text(end) for end in (low, high) if end is not None]
        texts = [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]
        words = "at least " if high is None else "at most " if low is None else ""
        named = {
            name: value for name, value in self._relative_to.items() if name in SET_BY_THE_LAB
        } or self._relative_to
        beside = ", ".join(labels.setting_label(name, value) for name, value in named.items())
        return f"{words}{' to '.join(texts)} {self._unit}".strip() + (f" of {beside}" if beside else "")

    @property
    def per(self) -> str:
        """`512k-5ms`; empty when it is over everything."""
        params = self.verdict.per.items()
        return ", ".join(labels.setting_label(name, value) for name, value in params if name != self._over)

    @property
    def at(self) -> str:
        """The picked point's parameter, such as `delay 5 ms`."""
        params = self.verdict.per
        return labels.setting_label(self._over, params[self._over]) if self._over in params else ""

    @property
    def value(self) -> str:
        """As a reader sees it, with its unit, and in how many runs it never came."""
        value, never = self.verdict.value, self.verdict.never
        text = "" if value is None else f"{self._text(value)} {self._unit}".strip()
        return ", ".join(filter(None, (text, labels.never_text(never, self.runs) if never else "")))

    @property
    def interval(self) -> str:
        """95 %, `7.1 to 7.9`, in the unit of the value; empty without one."""
        ends = [self.verdict.lo, self.verdict.hi]
        if self.verdict.value is None or None in ends or self.runs < 2:
            return ""
        low, high = map(self._text, ends)
        return f"{low} to {high}"

    @property
    def rank(self) -> tuple[int, float]:
        """What decides a sentence comes first: a bound that is not met, then one without data, then one that is open; the nearest of them."""
        inside = min(margins(self.verdict.min, self.verdict.max, self.verdict.value))
        return {"not met": 0, "no data": 1, "met": 3}.get(self.state, 2), inside

    @property
    def _over(self) -> str:
        return (self.asked and self.asked.over) or ""

    @property
    def _relative_to(self) -> Mapping[str, Any]:
        return self.verdict.relative_to

    @property
    def _is_quotient(self) -> bool:
        return bool(self._relative_to) or " / " in self.verdict.metric

    @property
    def _unit(self) -> str:
        return "%" if self._is_quotient else labels.name_of(self.verdict.metric).unit

    def _text(self, value: Any) -> str:
        """In the metric's unit; a quotient in per cent, as the sentences say it."""
        return labels.number(value * 100, 3) if self._is_quotient else labels.format_metric(self.verdict.metric, value)


def judge(experiment: Measured) -> list[Judged]:
    """Every bound in the file's order, in every runtime in which it is asked."""
    found: dict[tuple[str, ...], dict[str, Judged]] = {}
    for run in experiment.runs:
        for verdict in run.verdicts:
            asked = _asked(experiment.definition.experiment.expect, verdict)
            one = Judged(run.experiment, run.runtime, run.started[:10], verdict, asked)
            found.setdefault((one.text, one.bound, one.per), {})[run.runtime] = one
    return [one for runtimes in found.values() for one in runtimes.values()]


def _asked(expect: Iterable[Expectation], verdict: Verdict) -> Expectation | None:
    """What the file asks now: of bounds with one text the verdict's own, else the last."""
    same = [each for each in expect if each.text == verdict.text]
    own = (verdict.min, verdict.max, verdict.relative_to)
    return next((each for each in same if (each.min, each.max, each.relative_to) == own), same[-1] if same else None)


@dataclass(frozen=True)
class Answer:
    """What one runtime says to a sentence."""

    state: str = NOT_RUN
    """Of the bound that decides it; `met` when each is, `not run` while one has no data."""
    value: str = ""
    """With interval, n and place: of the bound that decides it."""
    interval: str = ""
    runs: int = 0
    at: str = ""
    """What is measured and asked, where the sentence has several bounds, and at which point."""
    met: int = 0
    of: int = 0
    """Bounds that are met, of those that were judged."""
    early: bool = False
    """Whether runs are older than the bound."""

    @property
    def _marked(self) -> str:
        return f"{self.state}†" if self.early else self.state

    @property
    def short(self) -> str:
        """`met 7.6 %`; `-` where it was not run, or not all of it."""
        return "-" if self.state == NOT_RUN else f"{self._marked} {self.value or '(nothing qualifies)'}"

    def __str__(self) -> str:
        """`met: 7.6 % (7.1 to 7.9) [2M-2ms], n = 20; 4 bounds`; `met†`: by runs that are older than the bound."""
        state = self._marked
        if self.state == NOT_RUN:
            return f"{state}: {self.met} of {self.of} bounds met" if self.of else self.state
        interval = f" ({self.interval})" if self.interval else ""
        number = f"{self.value or 'nothing qualifies'}{interval}{f' [{self.at}]' if self.at else ''}, n = {self.runs}"
        if self.of < 2 or self.state == "too few by design":
            return f"{state}: {number}"
        return f"{state}: {number}; {f'{self.of} bounds' if self.state == 'met' else f'{self.met} of {self.of} met'}"


def answer_of(judged: Sequence[Judged]) -> Answer:
    """What the bounds of one sentence in one runtime say together: the numbers are those of the bound that decides."""
    known = [each for each in judged if each.state != "no data"]
    if not known:
        return Answer()
    decides = min(judged, key=lambda each: each.rank)
    state = NOT_RUN if decides.state == "no data" else decides.state
    met = sum(each.state == "met" for each in known)
    several = len({each.verdict.metric for each in known if each.asked}) > 1
    parts = (
        labels.name_of(decides.verdict.metric).label if several else "",
        decides.bound if len({each.bound for each in known}) > 1 else "",
        decides.per if len({each.per for each in judged}) > 1 else "",
        decides.at,
    )
    at = ", ".join(filter(None, parts))
    return Answer(state, decides.value, decides.interval, decides.runs, at, met, len(known))


@dataclass(frozen=True)
class Sentence:
    """One sentence of an experiment and what each runtime says to it."""

    experiment: str
    text: str
    bound: str
    answers: Mapping[str, Answer]
    why: str
    """Why it is not met, as far as it is known; empty where it is met."""

    @property
    def state(self) -> str:
        """The worst of the answers, `met` being the best."""
        return min((answer.state for answer in self.answers.values()), key=STATES.index)


def sentences(judged: Iterable[Judged]) -> list[Sentence]:
    """A row for each sentence, in the file's order."""
    found: dict[tuple[str, str], list[Judged]] = {}
    for each in judged:
        found.setdefault((each.experiment, each.claim or each.text), []).append(each)
    claims = {claim.id: f"{claim.id}: {claim.sentence}" for claim in read_claims()}
    rows: list[Sentence] = []
    for (experiment, text), asked in found.items():
        of_runtime = {runtime: [each for each in asked if each.runtime == runtime] for runtime in RUNTIMES}
        answers = {runtime: answer_of(mine) for runtime, mine in of_runtime.items() if mine}
        bounds = {each.bound for each in asked}
        bound = asked[0].bound if len(bounds) == 1 else f"{len(bounds)} bounds"
        why = " ".join(dict.fromkeys(each.why for each in asked if each.state == "not met" and each.why))
        rows.append(Sentence(experiment, claims.get(text, text), bound, answers, why))
    return rows


@dataclass(frozen=True)
class ClaimRow:
    """A claim and its answers."""

    claim: Claim
    answers: Mapping[str, Answer]

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        fields = self.claim.model_dump(mode="json", by_alias=True, exclude={"expect"})
        return {**fields, "answers": {runtime: asdict(answer) for runtime, answer in self.answers.items()}}


def claim_rows(judged: Iterable[Judged], claims: Sequence[Claim] = ()) -> list[ClaimRow]:
    """Every claim, or only `claims`, in the file's order."""
    found: dict[tuple[str, str], list[Judged]] = {}
    for each in judged:
        found.setdefault((each.claim, each.runtime), []).append(each)
    return [
        ClaimRow(claim, {name: _answer_to(claim, name, found.get((claim.id, name), [])) for name in RUNTIMES})
        for claim in claims or read_claims()
    ]


def _answer_to(claim: Claim, runtime: str, judged: Sequence[Judged]) -> Answer:
    day = claim.day.isoformat()
    early = any(each.day < day for each in judged if each.day and each.state != "no data")
    answer = replace(answer_of(judged), early=early)
    wanted = {bound.experiment for bound in claim.bounds() if runtime in bound.runtimes}
    whole = wanted == {each.experiment for each in judged} and not claim.lacks
    return answer if whole or answer.state == "not met" else replace(answer, state=NOT_RUN)


def judge_archive(data: Path) -> list[Judged]:
    """The bounds of the claims' experiments, by an archive. Raises RunFolderError, ExperimentError."""
    names = dict.fromkeys(bound.experiment for claim in read_claims() for bound in claim.bounds())
    return [each for name in names for each in judge(open_measured(data, load(name)))]
