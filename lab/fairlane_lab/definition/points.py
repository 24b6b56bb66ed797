# SPDX-License-Identifier: Apache-2.0
"""The points of an experiment: its cases and the cross product of its sweep, in the file's order, with readable names; and what is chance in
the field and drawn for each run: parameters, starts, round-trip times, rates, buffers. The same for all points of a repeat.

A draw depends on the base seed, the repeat and the name of the parameter, link, port or flow alone, so schemes and senders are compared in pairs.
"""

from __future__ import annotations

import copy
import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from fairlane_controller.documents import is_array, is_table
from fairlane_controller.units import parse_rate
from fairlane_switch.link_series import form_of
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import LinkChange
from pydantic import BeforeValidator, Field, model_validator

from fairlane_lab.definition.strict import Scalar, Strict
from fairlane_lab.problems import Problem, place

if TYPE_CHECKING:
    from fairlane_lab.definition.schema import Experiment

LABELLED_AXES = frozenset({"control", "sender"})
"""Axes whose items may be tables with a label, which then is a parameter of the axis's name."""
COLUMNS_ONLY = frozenset({"case", *LABELLED_AXES})
"""Parameters that set nothing unless `[sets]` says so: labels."""

Params = dict[str, Scalar]
Case = dict[str, Scalar]
Axis = Annotated[list[Scalar | Params], Field(min_length=1)]
"""Values of the parameter after which it is called; or tables of parameters that go together (then its name is only a name)."""


@dataclass(frozen=True)
class Point:
    """One cell of an experiment."""

    name: str
    """Readable, unique in the experiment: `512k-5ms/threshold=4`; `only` for an experiment with one point."""
    params: Mapping[str, Any]


class Spread(Strict):
    """What a parameter of `[drawn]` may be: any number from `first` to `last` is as likely, or with `log` any factor."""

    first: float | int = Field(alias="from")
    last: float | int = Field(alias="to")
    log: bool = False
    whole: bool = False
    """A whole number."""
    split: tuple[str, ...] = ()
    """Parameters that share the whole number by chance."""

    @model_validator(mode="after")
    def _goes_up(self) -> Spread:
        if self.last <= self.first or (self.log and self.first <= 0):
            raise ValueError(f"from {self.first:g} to {self.last:g}: must go up, and with log from above 0")
        if self.split and not self.whole:
            raise ValueError("split: needs whole = true")
        return self

    def draw(self, chance: random.Random) -> float | int:
        """A value; one that is no whole number has four digits."""
        if self.log:
            value = math.exp(chance.uniform(math.log(self.first), math.log(self.last)))
        else:
            value = chance.uniform(self.first, self.last)
        return round(value) if self.whole else float(f"{value:.4g}")


def draw_params(drawn: Mapping[str, Spread], given: Mapping[str, Any], seed_of: Callable[[str], int]) -> dict[str, Any]:
    """The parameters of one run; those that are given stay."""
    found: dict[str, Any] = {}
    for name, spread in drawn.items():
        chance = random.Random(seed_of(name))
        found[name] = given.get(name, spread.draw(chance))
        if spread.split:
            shares = chance.choices(spread.split, k=found[name])
            found |= {part: shares.count(part) for part in spread.split}
    return {**found, **given}


def make_points(experiment: Experiment, replaced: Mapping[str, Sequence[Scalar]] | None = None) -> list[Point]:
    """Every point; `replaced` are other values for axes or `params` that the file has."""
    replaced = replaced or {}
    others = {name: values for name, values in replaced.items() if name not in experiment.sweep}
    axes: list[tuple[str, Sequence[Scalar | Case]]] = [("case", experiment.cases)] if experiment.cases else []
    axes += [(name, replaced.get(name) or axis) for name, axis in experiment.sweep.items()]
    axes += [(name, values) for name, values in others.items() if len(values) > 1]
    constants = {**experiment.params, **{name: values[0] for name, values in others.items() if len(values) == 1}}
    points: list[Point] = []
    for items in itertools.product(*([_axis_item(name, value) for value in values] for name, values in axes)):
        params = dict(constants)
        for _, given in items:
            params |= given
        points.append(Point("/".join(label for label, _ in items) or "only", params))
    return points


def _axis_item(name: str, value: Scalar | Mapping[str, Scalar]) -> tuple[str, dict[str, Scalar]]:
    """The label and the parameters of one value of an axis."""
    if not isinstance(value, Mapping):
        return f"{name}={_text(value)}", {name: value}
    params = {key: item for key, item in value.items() if key != "label"}
    label = str(value.get("label") or ",".join(f"{key}={_text(item)}" for key, item in params.items()))
    return label, {name: label, **params} if name in COLUMNS_ONLY else params


def _text(value: Scalar) -> str:
    # a program may be a folder
    return f"{value:g}" if isinstance(value, float) else str(value).strip("/").replace("/", "_")


def point_problems(
    experiment: Experiment, others: Mapping[str, Mapping[str, Any]], named: Callable[[str], str]
) -> Iterator[Problem]:
    """What is wrong with names and labels; `others`: further tables by parameter, `named`: what is wrong with a name, or nothing."""
    tables: list[tuple[tuple[str | int, ...], Mapping[str, Any]]] = [
        ((section,), table) for section, table in others.items()
    ]
    tables += [(("cases", index), case) for index, case in enumerate(experiment.cases)]
    for name, axis in experiment.sweep.items():
        own = [((("sweep", name, index)), item) for index, item in enumerate(axis) if isinstance(item, dict)]
        tables += own or [(("sweep",), {name: axis})]
        if len(own) not in (0, len(axis)):
            yield Problem(place(("sweep", name)), "mixes values and tables: give one or the other")
    for path, table in tables:
        for name in table.keys() - {"label"}:
            if message := named(name):
                yield Problem(place((*path, name)), message)
    labels = [case.get("label") for case in experiment.cases]
    every = {name for case in experiment.cases for name in case} - experiment.params.keys() - {"label"}
    for index, (label, case) in enumerate(zip(labels, experiment.cases, strict=True)):
        if not isinstance(label, str) or not label or "/" in label:
            yield Problem(f"cases[{index}].label", f"got {label!r}; each case has a label without /")
        elif label in labels[:index]:
            yield Problem(f"cases[{index}].label", f"{label!r} is the label of an earlier case")
        if missing := sorted(every - case.keys()):
            yield Problem(f"cases[{index}]", f"has no {', '.join(missing)}, which other cases have")


def twice_problems(points: Sequence[Point]) -> Iterator[Problem]:
    """Points of the same name."""
    names = Counter(point.name for point in points)
    yield from (Problem("sweep", f"gives the point {name!r} twice") for name, times in names.items() if times > 1)


def _factors(given: Any) -> Any:
    if is_table(given):
        return given
    keys = given if is_array(given) else [given]
    if not all(isinstance(key, str) for key in keys):
        raise ValueError(
            f"got {given!r}; allowed: a key such as flows.NAME.variant, a list of keys, or a table of keys with factors"
        )
    return dict.fromkeys(keys, 1)


Setting = Annotated[dict[str, float | int], BeforeValidator(_factors)]
"""The keys that a parameter sets, such as `"topology.links.s1-s2.rate_bps"` or `"flows.NAME.variant"`: one, a list, or a table of keys, each
with the factor from the parameter to it. None: it is a column of the results only."""

Document = dict[str, Any]
Share = Annotated[float, Field(ge=0, le=0.5)]


class Draws(Strict):
    """How far runs of a point differ. What is 0 is not drawn, and `fixed` says why."""

    start_s: Annotated[float, Field(ge=0, le=60)] = 0.1
    """Each flow starts later by a time below this; greedy ones before the warm-up is over."""
    rtt: Share = 0.05
    """Each link's delay is up to this share longer or shorter, both directions alike."""
    rate: Share = 0.01
    """Each link's rate is up to this share higher or lower."""
    buffer_packets: Annotated[int, Field(ge=0, le=1000)] = 1
    """Each switch port's buffer that the topology sets in packets has up to so many more or fewer, and 1 at least."""
    fixed: str = ""
    """Why something is not drawn; alone: why nothing is."""

    @model_validator(mode="before")
    @classmethod
    def _nothing(cls, given: Any) -> Any:
        if isinstance(given, dict) and set(given) == {"fixed"}:  # pyright: ignore[reportUnknownArgumentType]
            return {**dict.fromkeys(AMOUNTS, 0), **given}  # pyright: ignore[reportUnknownVariableType]
        return given  # pyright: ignore[reportUnknownVariableType]

    @model_validator(mode="after")
    def _says_why(self) -> Draws:
        still = [name for name in AMOUNTS if not getattr(self, name)]
        if still and not self.fixed:
            raise ValueError(f"{', '.join(still)} is 0: `fixed` must say why it is not drawn")
        if self.fixed and not still:
            raise ValueError("fixed: everything is drawn; allowed: beside what is 0, or alone")
        return self

    def text(self) -> str:
        """For a page of results."""
        amounts = {
            "starts": self.start_s and f"within {self.start_s:g} s",
            "delays": self.rtt and f"± {self.rtt * 100:g} %",
            "rates": self.rate and f"± {self.rate * 100:g} %",
            "buffers": self.buffer_packets and f"± {self.buffer_packets} packet{'s' * (self.buffer_packets > 1)}",
        }
        drawn = ", ".join(f"{name} {amount}" for name, amount in amounts.items() if amount)
        still = ", ".join(name for name, amount in amounts.items() if not amount)
        said = [f"Drawn at random for each run: {drawn}."] if drawn else []
        return " ".join([*said, *([f"Not drawn: {still}, because {self.fixed}."] if still else [])])


AMOUNTS = ("start_s", "rtt", "rate", "buffer_packets")


@dataclass
class Drawn:
    """The draws of one repeat, and a record of them."""

    draws: Draws
    seed_of: Callable[[str], int]
    record: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])

    def start_s(self, flow: str) -> float:
        """By how much a flow starts later."""
        return self._draw("start_s", flow, lambda chance: round(chance.random() * self.draws.start_s, 6))

    def topology(self, document: Document, checked: fl_topology.Topology) -> Document:
        """The document with its links and buffers as drawn. `checked`: the same, read."""
        found = copy.deepcopy(document)
        rates: dict[tuple[str, int], float] = {}
        for link, read in zip(found["links"], checked.links, strict=True):
            rate = self._rate(read.name)
            _scale(link, read, self._delay(read.name), rate)
            rates |= {(end.node, end.port): rate for end in (read.a, read.b)}
        for name, switch in found["switches"].items():
            for number, port in switch.get("ports", {}).items():
                for key in ("rate", "rate_bps"):
                    if key in port:
                        port[key] = _times(port[key], rates[name, int(number)])
                if port.get("queue_packets") is not None:
                    port["queue_packets"] = self._buffer(f"{name}-p{number}", port["queue_packets"])
        for change in found.get("changes", ()):
            self._change(change)
        return found

    def changes(self, changes: Sequence[LinkChange]) -> list[dict[str, Any]]:
        """What happens while it runs, with the link's own factors."""
        return [self._change(change.model_dump()) for change in changes]

    def _change(self, change: dict[str, Any]) -> dict[str, Any]:
        if change.get("delay_ms"):
            least = 0 if isinstance(change.get("jitter_ms"), dict) else change.get("jitter_ms") or 0
            change["delay_ms"] = _times(change["delay_ms"], self._delay(change["link"]), least, 3)
        if change.get("rate_bps"):
            change["rate_bps"] = _times(change["rate_bps"], self._rate(change["link"]))
        return change

    def _delay(self, link: str) -> float:
        return self._factor("delay", link, self.draws.rtt)

    def _rate(self, link: str) -> float:
        return self._factor("rate", link, self.draws.rate)

    def _buffer(self, port: str, packets: int) -> int:
        most = self.draws.buffer_packets
        return max(1, packets + int(self._draw("buffer", port, lambda chance: chance.randint(-most, most))))

    def _factor(self, what: str, name: str, most: float) -> float:
        return self._draw(what, name, lambda chance: round(1 + chance.uniform(-most, most), 6))

    def _draw(self, what: str, name: str, draw: Callable[[random.Random], float]) -> float:
        return self.record.setdefault(what, {}).setdefault(name, draw(random.Random(self.seed_of(f"{what} {name}"))))


def _scale(link: Document, read: fl_topology.Link, delay: float, rate: float) -> None:
    """Change a link of a document: all that it says of delays and rates, its preset included."""
    ways = {"a_to_b": read.a_to_b, "b_to_a": read.b_to_a}
    delays = {name: _times(way.delay_us, delay, way.jitter_us) for name, way in ways.items() if way.delay_us}
    if delays:
        for part in (link, *(link.get(name) or {} for name in ways)):
            part.pop("delay", None)
            part.pop("delay_us", None)
        if delays.get("a_to_b") == delays.get("b_to_a"):
            link["delay"] = next(iter(delays.values()))
        else:
            link["delay"] = 0
            for name, value in delays.items():
                link[name] = {**(link.get(name) or {}), "delay": value}
    if read.bandwidth_bps:
        link.pop("bandwidth_bps", None)
        link["bandwidth"] = _times(read.bandwidth_bps, rate)
    for part in (link, *(link.get(name) or {} for name in ways)):
        for key in ("rate", "rate_bps"):
            if part.get(key):
                part[key] = _times(part[key], rate)


def _times(value: Any, factor: float, least: float = 0, digits: int | None = None) -> Any:
    """A number, a text of a rate, or a function of time, times a factor; a delivery trace stays."""
    form = form_of(value)
    if isinstance(form, dict):
        return form if "trace" in form or factor == 1 else {**form, "scale": form.get("scale", 1) * factor}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return max(round((parse_rate(value) if isinstance(value, str) else value) * factor, digits), least)


def draws_of(document: Mapping[str, Any]) -> Draws:
    """What an experiment's file says of draws."""
    return Draws.model_validate(document.get("run", {}).get("draws", {}))
