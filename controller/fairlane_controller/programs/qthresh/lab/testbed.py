# SPDX-License-Identifier: Apache-2.0
"""`qthresh` in Mininet: scheme, threshold and weights through the control loop; flows found in its tables."""

from __future__ import annotations

from typing import Any

from fairlane import read_run_state
from fairlane.cli import resolve
from fairlane.switch import SwitchClient, plain_entry
from fairlane_lab.programs.part import MininetPart
from fairlane_lab.scenario import Control as ScenarioControl
from fairlane_lab.scenario import Scenario
from fairlane_lab.testbed.bed import ManagedPort
from fairlane_lab.testbed.plan import Plan
from fairlane_lab.testbed.port_watch import FlowAddress

from ..cli_threshold import change_policies
from ..flows import parse_flow
from ..names import TABLE_FLOW
from ..policies import class_entries, limit_entry
from ..settings import QthreshPort
from . import Control, classes_of, settings_of

IDLE_NS = 1_000_000_000


class QthreshInMininet(MininetPart):
    """Schemes, thresholds, weights and marks through the control loop."""

    settings = Control()
    "What the switches have of marks and classes now."

    def begin(self, scenario: Scenario, plan: Plan) -> dict[tuple[str, int], int | None]:
        """Put the scenario in force."""
        control = scenario.control
        self._set(settings_of(control))
        thresholds: dict[tuple[str, int], int | None] = {}
        for port in self.bed.ports:
            in_force = [self._use(control, port, traffic_class) for traffic_class in classes_of(control)]
            thresholds[port.switch, port.port] = in_force[0]
        self.bed.ask({"op": "flow_weights", "rules": weight_rules(plan)})
        return thresholds

    def _set(self, settings: Control) -> None:
        """Have the managed ports mark, and the tables of classes say, what a scenario does, and nothing else."""
        before, self.settings = self.settings, settings
        if (before.ecn, before.classes) == (settings.ecn, settings.classes):
            return
        run = read_run_state(self.bed.state)
        for state in run.switches:
            updates = [("delete", entry) for entry in class_entries(before.classes, state.name)]
            updates += [("insert", entry) for entry in class_entries(settings.classes, state.name)]
            updates += [
                ("modify", limit_entry(port, QthreshPort(ecn=settings.ecn))) for port in run.managed_ports(state)
            ]
            plain = [{"update": kind, **plain_entry(entry)} for kind, entry in updates]
            if plain:
                self.bed.ask({"op": "table_write", "switch": state.name, "updates": plain})

    def _use(self, control: ScenarioControl, port: ManagedPort, traffic_class: int) -> int | None:
        """Put a scheme in force for a class of a managed port, as after a fresh start; returns the threshold then in force."""
        switch = resolve(str(self.bed.state), [port.switch])
        # Drop-tail first: the loop forgets what it had decided for the run before.
        changes: list[dict[str, Any]] = [{"scheme": "drop_tail"}]
        if control.scheme != "drop_tail":
            tuning = {"mode": "auto", "weight": 1.0, "self_tuning": control.threshold == "auto"}
            packets = {"threshold": control.threshold}
            changes.append({"scheme": control.scheme, **(packets if isinstance(control.threshold, int) else tuning)})
        threshold = None
        for change in changes:
            made = change_policies(switch, port.port, traffic_class, change, every=False)
            threshold = made[0]["qthresh_packets"] if made else None
        return threshold

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
