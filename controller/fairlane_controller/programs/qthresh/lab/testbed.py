# SPDX-License-Identifier: Apache-2.0
"""`qthresh` in Mininet: scheme, threshold and weights through the control loop; counters, occupancies and measurements sampled.

Bytes that left are those that the program admitted less those that wait: exact in any kernel, which an interface's
own counters are not. Occupancies come from registers: BMv2 does not read those over P4Runtime, so there the series of
the queue stay empty and what waits counts as gone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from fairlane import read_run_state
from fairlane.changes import ask
from fairlane.cli import resolve
from fairlane.switch import COUNTER_ADMITTED, SwitchClient, plain_entry
from fairlane_lab.measures import mean_between
from fairlane_lab.programs.part import MininetPart
from fairlane_lab.run_result import SeriesPoint
from fairlane_lab.scenario import Control, Scenario
from fairlane_lab.testbed.bed import ManagedPort
from fairlane_lab.testbed.collect import RunRecords
from fairlane_lab.testbed.plan import Plan
from fairlane_lab.testbed.port_watch import FlowAddress, Look, PortWatch
from fairlane_lab.topology_scripts import PortKey
from finsy import P4CounterEntry, P4RegisterEntry

from ..changes import PolicyChange, change_policies
from ..flows import parse_flow
from ..names import CLASSES, TABLE_FLOW, admitted_index
from ..policies import Scheme
from ..settings import ClassConfig
from ..wanted import class_entries, limit_of
from . import FLOW_REGISTER, MEASURED, class_rules, classes_of, marks
from .thresholds import thresholds

PORT_REGISTER = "port_occupancy"
PORT_BYTES_REGISTER = "port_occupancy_bytes"
FIND_FLOWS_EVERY_S = 1.0
MEASURE_EVERY_S = 1.0
IDLE_NS = 1_000_000_000
FLOWS_WATCHED_MAX = 256


class QthreshInMininet(MininetPart):
    """Schemes, thresholds, weights and marks through the control loop."""

    marking = False
    "Whether the managed ports mark now."
    rules: tuple[ClassConfig, ...] = ()
    "What is in the switches' tables of classes now."

    def begin(self, scenario: Scenario, plan: Plan) -> dict[tuple[str, int], int | None]:
        control = scenario.control
        if marks(control) != self.marking:
            self._mark(not self.marking)
        if class_rules(control) != self.rules:
            self._classify(class_rules(control))
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

    def watch(self) -> type[PortWatch]:
        return QthreshPortWatch

    def port_values(self, seen: RunRecords, port: PortKey) -> dict[str, Any]:
        """Medians of what the loop measured, and the mean threshold in force."""
        window = seen.window
        values: dict[str, Any] = {}
        for name, (theirs, factor) in MEASURED.items():
            rows = [
                row[theirs] for t, row in seen.samples.measured.get(port, []) if window.start_s <= t <= window.end_s
            ]
            known = [value for value in rows if value is not None]
            values[name] = factor * median(known) if known else None
        steps = [(window.zero_s + t, value) for t, value in _threshold_samples(seen, port)]
        return values | ({"qthresh_packets": mean_between(steps, window.start_s, window.end_s)} if steps else {})

    def port_series(self, seen: RunRecords, port: PortKey, name: str) -> Iterator[SeriesPoint]:
        for metric in ("bw_bps", "t_res_ms"):
            theirs, factor = MEASURED[metric]
            rows = seen.samples.measured.get(port, [])
            points = [(t, value * factor) for t, row in rows if (value := row[theirs]) is not None]
            yield from (SeriesPoint(t, name, metric, float(value)) for t, value in seen.window.series(points))
        for t, value in _threshold_samples(seen, port):
            yield SeriesPoint(t, name, "qthresh_packets", value)


def _threshold_samples(seen: RunRecords, port: PortKey) -> list[tuple[float, float]]:
    """(s after zero, packets) from which on a threshold was in force."""
    first = seen.running.thresholds.get(port)
    during = [event for event in seen.events if 0 < event["t_s"] <= seen.window.end_s - seen.window.zero_s]
    return [] if first is None else thresholds(during, port, first)


def weight_rules(plan: Plan) -> list[dict[str, Any]]:
    """Rules for the control loop's `flow_weights`: flows of one weight have a sink of their own."""
    return [
        {"dst": sender.address, "dst_port": sender.sink.port, "weight": sender.flow.weight}
        for sender in {sender.sink: sender for sender in plan.senders}.values()
        if sender.flow.weight != 1.0
    ]


class QthreshPortWatch(PortWatch):
    """Counters by port, occupancies of ports and flows, and what the control loop measured."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._found: dict[str, tuple[float, dict[int, FlowAddress]]] = {}
        "By switch: when flows were found, and theirs."

    def _looks(self) -> Sequence[tuple[Look, float]]:
        return [(self._read, self._period_s)]

    async def _watch_loop(self) -> None:
        with self._noting_problems():
            async for now_s in self._ticks(MEASURE_EVERY_S):
                for row in await ask(self._bed.state, {"op": "measure"}):
                    values = {name: row[name]["value"] if row.get(name) else None for name, _ in MEASURED.values()}
                    self.samples.measured[row["switch"], row["port"]].append((now_s, values))

    async def _read(self, client: SwitchClient, name: str) -> None:
        """All at a single instant."""
        numbers, slots = self._numbers(name), await self._flow_slots(client)
        counted = {number: [admitted_index(number, each) for each in range(CLASSES)] for number in numbers}
        entities: list[Any] = [
            P4CounterEntry(COUNTER_ADMITTED, index=cell) for cells in counted.values() for cell in cells
        ]
        if self._bed.target == "embedded":
            entities += [P4RegisterEntry(one, index=n) for n in numbers for one in (PORT_REGISTER, PORT_BYTES_REGISTER)]
            entities += [P4RegisterEntry(FLOW_REGISTER, index=slot) for slot in slots]
        at_s, found = await self._read_at_once(client, entities)
        if at_s is None:
            return
        for number, cells in counted.items():
            admitted: int = sum(found[COUNTER_ADMITTED, cell].byte_count for cell in cells)
            left = admitted - found.get((PORT_BYTES_REGISTER, number), 0)
            self.samples.tx_bytes[name, number].append((at_s, float(left)))
            if (PORT_REGISTER, number) in found:
                self.samples.waiting[name, number].append((at_s, float(found[PORT_REGISTER, number])))
        for slot, flow in slots.items():
            if (FLOW_REGISTER, slot) in found:
                self.samples.flows[flow].append((at_s, float(found[FLOW_REGISTER, slot])))

    async def _flow_slots(self, client: SwitchClient) -> dict[int, FlowAddress]:
        """The slots of the flows that send, found anew from time to time."""
        name, now_s = client.endpoint.name, time.monotonic()
        found_s, known = self._found.get(name, (-FIND_FLOWS_EVERY_S, {}))
        if not self._flows or now_s - found_s <= FIND_FLOWS_EVERY_S:
            return known
        found: dict[int, FlowAddress] = {}
        for table in TABLE_FLOW.values():
            for entry in await client.read_table(table, idle=True):
                key, slot, _ = parse_flow(entry)
                if key.dst_port in self._sink_ports and (entry.time_since_last_hit or 0) < IDLE_NS:
                    found[slot] = (key.hosts[0], key.src_port, key.dst_port)
        self._found[name] = now_s, dict(list(found.items())[:FLOWS_WATCHED_MAX])
        return self._found[name][1]
