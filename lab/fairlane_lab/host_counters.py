# SPDX-License-Identifier: Apache-2.0
"""Of a flow, what the programs of its two hosts counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlane_hosts.programs import COUNTERS

from fairlane_lab.scenario import Flow


def counters_of(flow: Flow, flows: Sequence[Flow], of_hosts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """`FlowResult.counters`. A host counts for all its flows: what other flows have a part in is left out."""
    found: dict[str, int] = {}
    for host, of_receiver, sharing in (
        (flow.sender, False, [other for other in flows if other.sender == flow.sender]),
        (flow.receiver, True, [other for other in flows if other.receiver == flow.receiver]),
    ):
        if len(sharing) == 1 and flow.connections == 1:
            counted = of_hosts.get(host, {}).items()
            found |= {name: value for name, value in counted if COUNTERS[name].of_receiver == of_receiver}
    return found
