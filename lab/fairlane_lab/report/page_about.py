# SPDX-License-Identifier: Apache-2.0
"""What the page says of the runs themselves: when, where, with what, how fast, and what the controller did; as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fairlane_lab.report import labels
from fairlane_lab.report.pairing import Pair
from fairlane_lab.report.run_folder import RunFolder
from fairlane_lab.report.style import mark

MAX_EVENTS = 60
QUIET = frozenset({"hold", "not_ready"})
"""Outcomes of a decision that change nothing: not listed."""
_KEY = frozenset({"experiment", "point", "repeat", "seed", "runtime", "target", "t_s", "time", "monotonic_ns", "event"})
_DETAIL = frozenset({"plan", "measured", "class"})
"""Fields of events that only the file has."""
_NOT_SHOWN = frozenset({"started", "campaign"})
"""Told elsewhere on the page."""
_MAX_TEXT = 400


def machine_rows(runs: Sequence[RunFolder]) -> list[tuple[str, list[str]]]:
    """Metadata that all runs share as one value, what differs as several."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, value in run.metadata.items():
            if name == "versions" and isinstance(value, Mapping):
                versions: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
                found.setdefault(name, {})[", ".join(f"{key} {each}" for key, each in versions.items())] = None
            elif name not in _NOT_SHOWN:
                for key, text in _flat(name, value):
                    found.setdefault(key, {})[text] = None
    return [(name.replace("_", " "), list(values)) for name, values in found.items()]


def about_rows(pair: Pair) -> list[tuple[str, list[str]]]:
    """What each runner reported (variants really used, offloads, options): name, and a value for each runtime."""
    tables = [{**_about(run)} for run in pair.runs]
    names = list(dict.fromkeys(name for table in tables for name in table))
    return [(name.replace("_", " "), [table.get(name, "-") for table in tables]) for name in names]


def speed_text(run: RunFolder) -> str:
    """`1,234 s in 12.3 s: 100 x real time, 400,000 packets/s`; empty when the run does not say."""
    speed: Mapping[str, Any] = run.summary.get("speed", {})
    wall_s, virtual_s = speed.get("wall_s_of_runs"), speed.get("virtual_s")
    if not wall_s or not virtual_s:
        return ""
    text = f"{virtual_s:,.0f} s in {wall_s:,.1f} s: {labels.number(virtual_s / wall_s, 3)} x real time"
    packets = speed.get("packets_per_wall_s")
    return f"{text}, {packets:,.0f} packets/s" if packets else text


def event_rows(pair: Pair) -> tuple[str, list[dict[str, str]]]:
    """Which run, and what its controller did: the first repeat of the point that tunes itself, in experiments that change something while they run."""
    for run in reversed(pair.runs):
        if not run.definition.get("changes"):
            continue
        events = [event for event in run.events if event.get("repeat", 0) == 0 and event.get("outcome") not in QUIET]
        tuned = {point.name for point in run.points if point.params.get("threshold") == "auto"}
        first = next((event.get("point") for event in events if event.get("point") in tuned or not tuned), None)
        mine = [event for event in events if event.get("point") == first]
        if mine:
            rows = [_event(event) for event in mine[:MAX_EVENTS]]
            more = f", the first {MAX_EVENTS} of {len(mine)}" if len(mine) > MAX_EVENTS else ""
            return f"{first} in {mark(run.runtime).label}{more}", rows
    return "", []


def _event(event: Mapping[str, Any]) -> dict[str, str]:
    fields = {name: value for name, value in event.items() if name not in _KEY | _DETAIL and value is not None}
    t_s = event.get("t_s")
    return {
        "t": f"{float(t_s):.2f}" if t_s is not None else "",
        "event": str(event.get("event", "")).replace("_", " "),
        "what": _brief(fields)[:_MAX_TEXT],
    }


def _brief(value: Any) -> str:
    """Nested values on one line: `port 3, reason changed from 6 to 8`; numbers to three digits."""
    if isinstance(value, Mapping):
        table: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        pieces = [f"{name} ({_brief(each)})" if isinstance(each, Mapping | list) else f"{name} {_brief(each)}" for name, each in table.items()]  # fmt: skip
        return ", ".join(pieces)
    if isinstance(value, list):
        return "; ".join(_brief(each) for each in value)  # pyright: ignore[reportUnknownVariableType]
    return labels.number(value, 3) if isinstance(value, float) else str(value)


def _about(run: RunFolder) -> dict[str, str]:
    about: Mapping[str, Any] = run.summary.get("about", {})
    used = sorted({str(name) for name in run.flows["variant_used"]}) if "variant_used" in run.flows else []
    rows = {"senders really used": ", ".join(used)} if used else {}
    for name, value in about.items():
        rows |= dict(_flat(name, value))
    return rows


def _flat(name: str, value: Any) -> list[tuple[str, str]]:
    """A table of names becomes rows of its own."""
    if isinstance(value, Mapping) and value and all(not isinstance(each, Mapping | list) for each in value.values()):  # pyright: ignore[reportUnknownVariableType]
        inner: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [(f"{name}: {key}", _text(each)) for key, each in inner.items()]
    return [(name, _text(value))]


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."
