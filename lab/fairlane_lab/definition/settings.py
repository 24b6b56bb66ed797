# SPDX-License-Identifier: Apache-2.0
"""Where the parameters of a point go: `[sets]` of an experiment file names the keys that each of them sets."""

from __future__ import annotations

import copy
import fnmatch
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any

from pydantic import BeforeValidator

from fairlane_lab.definition.body import SECTIONS, RunSpec
from fairlane_lab.definition.points import COLUMNS_ONLY
from fairlane_lab.definition.strict import is_array, is_table
from fairlane_lab.problems import Problem, place, unknown
from fairlane_lab.scenario import TcpOptions

_TCP = frozenset(field.name for field in fields(TcpOptions))


def _factors(given: Any) -> Any:
    return given if is_table(given) else dict.fromkeys(given if is_array(given) else [given], 1)


Setting = Annotated[dict[str, float | int], BeforeValidator(_factors)]
"""The keys that a parameter sets, such as `"topology.links.s1-s2.rate_bps"` or `"flows.NAME.variant"`: one, a list, or a table of keys, each
with the factor from the parameter to it. None: it is a column of the results only."""


def fill_in(
    document: Mapping[str, Any], params: Mapping[str, Any], sets: Mapping[str, Setting]
) -> tuple[dict[str, Any], list[Problem]]:
    """The sections of an experiment file that are run, with a point's parameters; and what could not be set."""
    filled = {name: copy.deepcopy(document[name]) for name in SECTIONS if name in document}
    problems: list[Problem] = []
    for name, given in params.items():
        if name in COLUMNS_ONLY and name not in sets:
            continue
        try:
            for key, factor in sets.get(name, {_own_key(name): 1}).items():
                if "." not in key and key != "program":
                    raise ValueError(f"{key} is a section; say which key of it")
                _set(filled, key.split("."), given if factor == 1 else _product(given, factor))
        except ValueError as error:
            problems.append(Problem(place(("sets", name)), str(error)))
    return filled, problems


def _own_key(name: str) -> str:
    """What a parameter sets of which `[sets]` says nothing: the key of its name."""
    if name == "program":
        return name
    section = "tcp" if name in _TCP else "run" if name in RunSpec.model_fields else "control"
    return f"{section}.{name}"


def _product(given: Any, factor: float) -> float | int:
    """A whole one is an integer. Raises ValueError for what is no number."""
    if isinstance(given, bool | str):
        raise ValueError(f"got {given!r}, which has no product with {factor:g}; allowed: a number")
    product = round(given * factor, 9)
    if not math.isfinite(product):
        raise ValueError(f"got {given!r}, which times {factor:g} is no number")
    return int(product) if product == int(product) else product


def _set(here: Any, keys: Sequence[str], value: Any) -> None:
    """Set a key below a table or an array, whose entries have names or numbers (`*`: all of them). Raises ValueError where there is no such entry."""
    key, *others = keys
    if is_array(here):
        entries: dict[str, Any] = dict(_entries(here))
        chosen = fnmatch.filter(entries, key)
        if not chosen or not others:
            raise ValueError(unknown("entry", key, entries) if not chosen else f"{key}: say which key of the entry")
        for name in chosen:
            _set(entries[name], others, value)
    elif not is_table(here):
        raise ValueError(f"{key} is below {here!r}, which is no table")
    elif others:
        _set(here.setdefault(key, {}), others, value)
    else:
        here[key] = value


def _entries(array: list[Any]) -> Iterator[tuple[str, Any]]:
    """The entries of an array by their `name`, else by their number from 0."""
    for number, entry in enumerate(array):
        yield str(entry["name"] if is_table(entry) and "name" in entry else number), entry
