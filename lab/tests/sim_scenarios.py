# SPDX-License-Identifier: Apache-2.0
"""Scenarios for the tests of virtual time: the Qthresh paper's dumbbell (mininet/topologies/dumbbell.json) and small changes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlane_lab.definition.loading import Definition, load
from fairlane_lab.scenario import App, Control, Flow, Scenario

DUMBBELL: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[2] / "mininet" / "topologies" / "dumbbell.json").read_text(encoding="utf-8")
)
RATE_BPS = 2_000_000
RENO = Flow("reno", "reno", "h1", "h3", variant="reno")
VEGAS = Flow("vegas", "vegas", "h2", "h3", variant="vegas")


def exact(name: str) -> Definition:
    """An experiment of lab/experiments with nothing drawn: what the test expects follows from the numbers of its file."""
    found = load(name)
    run = {**found.document.get("run", {}), "draws": {"fixed": "numbers of the file are looked at"}}
    return replace(found, source=replace(found.source, document={**found.document, "run": run}))


def scenario(*flows: Flow, **fields: Any) -> Scenario:
    """A run on the dumbbell: 20 s, of which 5 s are not counted; drop-tail unless `control` says something else."""
    given: dict[str, Any] = {
        "experiment": "test",
        "point": "one",
        "params": {},
        "topology": DUMBBELL,
        "duration_s": 20.0,
        "warmup_s": 5.0,
        **fields,
    }
    return Scenario(flows=flows, **given)


def fixed(packets: int) -> Control:
    """Qthresh with a fixed threshold."""
    return Control("qthresh", packets)


def cbr(name: str, sender: str, rate_bps: int, **fields: Any) -> Flow:
    """A UDP flow of 1000-byte packets (1014-byte frames) at a rate of payload."""
    return Flow(name, "cbr", sender, "h3", app=App("cbr_udp", rate_bps=rate_bps, payload_bytes=972), **fields)
