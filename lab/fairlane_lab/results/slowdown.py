# SPDX-License-Identifier: Apache-2.0
"""Slowdown of web-like transfers: the time that each took over the least that any TCP could take there. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from fairlane_topology import topology as fl_topology

from fairlane_lab.run_result import Transfer
from fairlane_lab.satellite import least_s, path_of
from fairlane_lab.scenario import Scenario, tcp_of

SHORT_BYTES = 100_000
"""A transfer up to here is short …"""
LONG_BYTES = 1_000_000
"""… and above here long."""


def with_slowdowns(scenario: Scenario, transfers: Sequence[Transfer]) -> list[Transfer]:
    """The transfers, those of `web` flows with their slowdown where their path has one managed port and costs time."""
    web = [flow for flow in scenario.flows if flow.app.kind == "web"]
    if not web:
        return list(transfers)
    topology = fl_topology.check(dict(scenario.topology))
    paths = {flow.name: (path, tcp_of(scenario, flow)) for flow in web if (path := path_of(topology, scenario, flow))}

    def slowdown(each: Transfer) -> float | None:
        name, _, number = each.flow.rpartition("-")
        found = paths.get(each.flow) or (paths.get(name) if number.isdigit() else None)
        return each.completion_s / least_s(*found, each.bytes) if found and each.complete else None

    return [replace(each, slowdown=slowdown(each)) for each in transfers]


def slowdown_metrics(finished: Sequence[Transfer]) -> dict[str, Any]:
    """Mean and 99 % quantile over all, over the short and over the long ones; nothing where no slowdown is known."""
    known = [(each.bytes, each.slowdown) for each in finished if each.slowdown is not None]
    classes = {
        "slowdown": [slowdown for _, slowdown in known],
        "slowdown_short": [slowdown for size, slowdown in known if size <= SHORT_BYTES],
        "slowdown_long": [slowdown for size, slowdown in known if size > LONG_BYTES],
    }
    metrics: dict[str, Any] = {}
    for name, values in classes.items():
        if values:
            metrics |= {name: float(np.mean(values)), f"{name}_p99": float(np.quantile(values, 0.99))}
    return metrics
