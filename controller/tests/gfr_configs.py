# SPDX-License-Identifier: Apache-2.0
"""Configurations for the GFR tests: the GFR paper's peer to peer (5 VCs through two switches) and the topology behind it."""

from __future__ import annotations

import copy
from typing import Any

from fairlane_controller.config.read import Loaded, Source, check, parse
from fairlane_controller.programs.gfr.config import GfrState
from fairlane_controller.state.run_state import RunState

PEER_TO_PEER: dict[str, Any] = {
    "ports": [
        {"switch": "s1", "port": 6, "capacity": "51.84Mbit", "lbo_cells": 1000, "hbo_cells": 3000, "qmax_cells": 4000},
    ],
    "vcs": [
        {
            "name": f"vc{number}",
            "mcr": f"{2 * number}Mbit",
            "match": [{"switch": "s1", "ingress_port": number, "src": f"10.0.{number}.0/24"}],
            "edge": [f"s1:{number}"],
        }
        for number in range(1, 6)
    ],
}


def data(**changes: Any) -> dict[str, Any]:
    """The peer-to-peer configuration as plain data; `changes` replace its top-level keys."""
    return {**copy.deepcopy(PEER_TO_PEER), **changes}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The same with one key (`ports.0.lbo_cells`) set, or removed when the value is None."""
    made = data()
    *steps, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
    place: Any = made
    for step in steps:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return made


def config(**changes: Any) -> GfrState:
    """It parsed."""
    return state_of(data(**changes))


def state_of(plain: dict[str, Any]) -> GfrState:
    """A configuration without numbers, of plain data."""
    return GfrState.model_validate(plain)


def check_config(plain: dict[str, Any], run: RunState | None = None, source: str = "gfr.toml") -> None:
    """Check a configuration as `fairlane config check` checks a file."""
    check(Loaded(parse({"program": "gfr", **plain}, Source(source)), Source(source)), run)


def run_state(target: str = "embedded", **port: Any) -> RunState:
    """Two switches; port 6 of s1 is the bottleneck, with `port` as its further options."""
    wide = {
        "port": 6,
        "rate_bps": 51_840_000,
        "bottleneck": True,
        "port_cells": 4000,
        "queues": 16,
        "scheduler": "wrr",
        **port,
    }
    edges = [{"port": number} for number in range(1, 6)]
    routes = [{"prefix": f"10.0.{10 + n}.0/24", "port": 6, "mac": "08:00:00:00:00:01"} for n in range(1, 6)]
    switches = [
        {"name": "s1", "grpc": "127.0.0.1:1", "ports": [*edges, wide], "routes": routes},
        {"name": "s2", "grpc": "127.0.0.1:2", "ports": [*edges, {"port": 6}]},
    ]
    return RunState.model_validate({"name": "0", "target": target, "program": "gfr", "switches": switches})
