# SPDX-License-Identifier: Apache-2.0
"""`qthresh` in Mininet: scheme, threshold and weights through the control loop; flows found in its tables."""

from __future__ import annotations

from typing import Any

from fairlane import read_run_state
from fairlane.cli import resolve
from fairlane.switch import SwitchClient, plain_entry
from fairlane_lab.programs.part import MininetPart
from fairlane_lab.scenario import Control, Scenario
from fairlane_lab.testbed.bed import ManagedPort
from fairlane_lab.testbed.plan import Plan
from fairlane_lab.testbed.port_watch import FlowAddress

from ..changes import PolicyChange, change_policies
from ..flows import parse_flow
from ..names import TABLE_FLOW
from ..policies import Scheme
from ..settings import ClassConfig
from ..wanted import class_entries, limit_of
from . import classes_of, settings_of

IDLE_NS = 1_000_000_000


class QthreshInMininet(MininetPart):
    """Schemes, thresholds, weights and marks through the control loop."""

    marking = False
    "Whether the managed ports mark now."
    rules: tuple[ClassConfig, ...] = ()
    "What is in the switches' tables of classes now."

    def begin(self, scenario: Scenario, plan: Plan) -> dict[tuple[str, int], int | None]:
        control = scenario.control
        settings = settings_of(control)
        if settings.ecn != self.marking:
            self._mark(not self.marking)
        if settings.classes != self.rules:
            self._classify(settings.classes)
        thresholds: dict[tuple[str, int], int | None] = {}
        for port in self.bed.ports:
            in_force = [self._use(control, port, traffic_class) for traffic_class in classes_of(control)]
            thresholds[port.switch, port.port] = in_force[0]
        self.bed.ask({"op": "flow_weights", "rules": weight_rules(plan)})
        return thresholds

    def _mark(self, ecn: bool) -> None:
        run = read_run_state(self.bed.state)
        for state in run.switches:
            entries = [limit_of(state, port, ecn).entry for port in run.managed_ports(state)]
            updates = [{"update": "modify", **plain_entry(entry)} for entry in entries]
            if updates:
                self.bed.ask({"op": "table_write", "switch": state.name, "updates": updates})
        self.marking = ecn

    def _classify(self, rules: tuple[ClassConfig, ...]) -> None:
        """Have these rules in the tables of classes, and no others."""
        for state in read_run_state(self.bed.state).switches:
            gone, new = (class_entries(some, state.name) for some in (self.rules, rules))
            updates = [{"update": "delete", **plain_entry(entry)} for entry in gone]
            updates += [{"update": "insert", **plain_entry(entry)} for entry in new]
            if updates:
                self.bed.ask({"op": "table_write", "switch": state.name, "updates": updates})
        self.rules = rules

    def _use(self, control: Control, port: ManagedPort, traffic_class: int) -> int | None:
        """Put a scheme in force for a class of a managed port, as after a fresh start; returns the threshold then in force."""
        switch = resolve(str(self.bed.state), [port.switch])

        def change(**asked: Any) -> int | None:
            made = change_policies(switch, port.port, PolicyChange(traffic_class, **asked), every=False)
            return made[0]["qthresh_packets"] if made else None

        # Drop-tail first: the loop forgets what it had decided for the run before.
        threshold = change(scheme=Scheme.DROP_TAIL)
        if control.scheme == "drop_tail":
            return threshold
        if control.scheme == "lanes":
            change(scheme=Scheme.LANES)
        if isinstance(control.threshold, int):
            return change(packets=control.threshold)
        return change(auto=True, weight=1.0, loop={"self_tuning": control.threshold == "auto"})

    async def find_flows(self, client: SwitchClient) -> dict[int, FlowAddress]:
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
