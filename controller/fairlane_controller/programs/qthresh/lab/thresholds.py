# SPDX-License-Identifier: Apache-2.0
"""Which thresholds were in force during a run, by the controller's events. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def thresholds(
    events: Sequence[Mapping[str, Any]], port: tuple[str, int], first_packets: float
) -> list[tuple[float, float]]:
    """(t_s, packets) from which on a threshold was in force: the class's, or the mean of its flows' own where they have them.

    `events` are the controller's, from the run's zero on, with `t_s`; `port` is (switch, number). A flow's own threshold is a
    weight in the switch, so it changes with the class's.
    """
    steps = [(0.0, float(first_packets))]
    tuned = False
    for event in events:
        if (event.get("switch"), event.get("port")) != port:
            continue
        if event["event"] == "tuned" and event["flows"]:
            flows = [flow["qthresh_packets"] or event["planned_packets"] for flow in event["flows"].values()]
            steps.append((event["t_s"], sum(flows) / len(flows)))
            tuned = True
        elif event["event"] == "threshold":
            packets, before = float(event["qthresh_packets"]), event.get("previous_packets")
            steps.append((event["t_s"], steps[-1][1] * packets / before if tuned and before else packets))
    return steps
