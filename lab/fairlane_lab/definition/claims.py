# SPDX-License-Identifier: Apache-2.0
"""lab/claims.toml: each sentence of the papers that can be judged, with the bound that was fixed before the runs that judge it."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fairlane_lab.definition.extend import read_as
from fairlane_lab.definition.judging import Changed, Expectation
from fairlane_lab.definition.strict import Scalar, Strict
from fairlane_lab.paths import CLAIMS


class ClaimBound(Expectation):
    """A bound of a claim: what an experiment is asked beside its own expectations."""

    claim: str
    """Id."""
    experiment: str


class Asked(Expectation):
    """Bounds of a claim as its file says them: one for each metric, reference and step."""

    text: str = ""
    metric: str = ""
    metrics: tuple[str, ...] = ()
    """Several, instead of `metric`."""
    beside: tuple[dict[str, Scalar], ...] = ()
    """Several of `relative_to`."""
    steps: str = ""
    """A parameter: at each of its values in `where` the metric is judged relative to itself at the value before."""
    experiment: str = ""
    """Where it is not the claim's."""

    @model_validator(mode="after")
    def _is_whole(self) -> Asked:
        if bool(self.metric) == bool(self.metrics):
            raise ValueError("needs metric, or metrics")
        if self.beside and self.relative_to:
            raise ValueError("has both relative_to and beside")
        if self.steps and len(self._values()) < 2:
            raise ValueError(f"steps {self.steps!r}: where.{self.steps} has to be a list of two values or more")
        return self

    def _values(self) -> Sequence[Scalar]:
        values = self.where.get(self.steps)
        return values if isinstance(values, list) else []

    def bounds(self, claim: Claim) -> Iterator[ClaimBound]:
        """Each by itself."""
        written = {name: getattr(self, name) for name in self.model_fields_set & Expectation.model_fields.keys()}
        references = self.beside or (self.relative_to,)
        steps = [*pairwise(self._values())] if self.steps else [None]
        for metric, reference, step in itertools.product(self.metrics or (self.metric,), references, steps):
            where, relative_to = dict(self.where), dict(reference)
            if step:
                relative_to[self.steps], where[self.steps] = step
            several = {name for each in claim.expect for name in each.metrics or (each.metric,)}
            text = f"{claim.id}: {self.text or claim.sentence}" + (f" ({metric})" if len(several) > 1 else "")
            changed = {"text": text, "metric": metric, "where": where, "relative_to": relative_to}
            whose = {"claim": claim.id, "experiment": self.experiment or claim.experiment}
            yield ClaimBound.model_validate({**written, **changed, **whose})


class Claim(Strict):
    """A sentence of a paper."""

    id: Annotated[str, Field(pattern=r"^[A-Z][0-9]+$")]
    paper: Annotated[str, Field(pattern=r"^[A-Za-z]+$")]
    where: str
    """Table or figure."""
    sentence: str
    kind: Literal["direction", "size", "shape"]
    """The sign of a difference, the paper's number, or an order or trend over points."""
    bound: str
    """In words, as it was fixed."""
    day: datetime.date
    """On which the bound was fixed."""
    changed: tuple[Changed, ...] = ()
    paper_number: str = ""
    """What the paper has, where it gives a number."""
    assumption: str
    """Under which the paper says it."""
    experiment: str
    """That judges it."""
    lacks: str = ""
    """What no experiment measures yet: until it does, the claim is not run as a whole."""
    expect: tuple[Asked, ...] = ()

    @model_validator(mode="after")
    def _can_be_judged(self) -> Claim:
        if not self.expect and not self.lacks:
            raise ValueError("has neither expect nor lacks")
        return self

    def bounds(self) -> list[ClaimBound]:
        """All that has to be met."""
        return [bound for asked in self.expect for bound in asked.bounds(self)]


class _File(Strict):
    claims: tuple[Claim, ...]

    @model_validator(mode="after")
    def _ids_differ(self) -> _File:
        ids = [claim.id for claim in self.claims]
        if twice := [name for name in dict.fromkeys(ids) if ids.count(name) > 1]:
            raise ValueError(f"the same id twice: {', '.join(twice)}")
        return self


@lru_cache(maxsize=4)
def read_claims(path: Path = CLAIMS) -> tuple[Claim, ...]:
    """Every claim, in the file's order. Raises ExperimentError with all that is wrong."""
    return read_as(path, _File).claims


def bounds_of(experiment: str) -> list[ClaimBound]:
    """What the claims ask of an experiment."""
    return [bound for claim in read_claims() for bound in claim.bounds() if bound.experiment == experiment]
