# SPDX-License-Identifier: Apache-2.0
"""ENA's counters of a flow, out of those of its hosts' programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlane_lab.scenario import Flow

OF_SENDER = ("ena_notified", "ena_kept", "ena_reduced")
OF_RECEIVER = ("ena_corrupted",)


def ena_counters(flow: Flow, flows: Sequence[Flow], of_hosts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Fields of `FlowResult`. A host counts for all its flows: what other flows have a part in is left out."""
    found: dict[str, int] = {}
    for host, names, sharing in (
        (flow.sender, OF_SENDER, [other for other in flows if other.sender == flow.sender]),
        (flow.receiver, OF_RECEIVER, [other for other in flows if other.receiver == flow.receiver]),
    ):
        if len(sharing) == 1 and flow.connections == 1:
            counters = of_hosts.get(host, {})
            found |= {name: counters[name] for name in names if name in counters}
    return found
