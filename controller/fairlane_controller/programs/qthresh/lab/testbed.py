# SPDX-License-Identifier: Apache-2.0
"""`qthresh` in Mininet: scheme, threshold and weights through the control loop; flows found in its tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairlane import connect
from fairlane.switch import SwitchClient
from fairlane_lab.programs.part import MininetPart
from fairlane_lab.scenario import Scenario
from fairlane_lab.testbed.plan import Plan
from fairlane_lab.testbed.port_watch import FlowAddress

from ..flows import parse_flow
from ..names import TABLE_FLOW
from . import configuration, first_threshold

IDLE_NS = 1_000_000_000


class QthreshInMininet(MininetPart):
    """Schemes, thresholds, weights and marks through the control loop."""

    def begin(self, scenario: Scenario, plan: Plan) -> dict[tuple[str, int], int | None]:
        """Put the scenario in force, with drop-tail first: the loop forgets what it had decided for the run before."""
        network, control = connect(self.bed.state), scenario.control
        for each in (replace(control, scheme="drop_tail"), control):
            network.apply(configuration(each, self.managed))
        self.bed.ask({"op": "flow_weights", "rules": weight_rules(plan)})
        return {(port.switch, port.port): first_threshold(control, port.queue_packets) for port in self.bed.ports}

    async def find_flows(self, client: SwitchClient) -> dict[int, FlowAddress]:
        """The flows that send now, by slot."""
        found: dict[int, FlowAddress] = {}
        for table in TABLE_FLOW.values():
            for entry in await client.read_table(table, idle=True):
                key, slot, _ = parse_flow(entry)
                if (entry.time_since_last_hit or 0) < IDLE_NS:
                    found[slot] = (key.hosts[0], key.src_port, key.dst_port)
        return found


def weight_rules(plan: Plan) -> list[dict[str, Any]]:
    """Rules for the control loop's `flow_weights`: flows of one weight have a sink of their own."""
    return [
        {"dst": sender.address, "dst_port": sender.sink.port, "weight": sender.flow.weight}
        for sender in {sender.sink: sender for sender in plan.senders}.values()
        if sender.flow.weight != 1.0
    ]
