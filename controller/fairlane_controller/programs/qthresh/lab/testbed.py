# SPDX-License-Identifier: Apache-2.0
"""`qthresh` in Mininet: scheme, threshold and weights through the control loop; counters, occupancies and measurements sampled.

Bytes that left are those that the program admitted less those that wait: exact in any kernel, which an interface's
own counters are not. Occupancies come from registers: BMv2 does not read those over P4Runtime, so there the series of
the queue stay empty and what waits counts as gone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from statistics import median
from typing import Any, cast

from fairlane_lab.measures import mean_between
from fairlane_lab.programs.part import MininetPart
from fairlane_lab.run_result import SeriesPoint
from fairlane_lab.scenario import Control, Scenario
from fairlane_lab.testbed.bed import ManagedPort
from fairlane_lab.testbed.collect import RunRecords
from fairlane_lab.testbed.plan import Plan
from fairlane_lab.testbed.port_watch import READ_MAX_S, FlowAddress, PortWatch
from fairlane_lab.topology_scripts import PortKey
from finsy import P4CounterData, P4CounterEntry, P4RegisterEntry

from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.flows import parse_flow
from fairlane_controller.programs.qthresh.lab import FLOW_REGISTER, MEASURED, class_rules, classes_of, marks
from fairlane_controller.programs.qthresh.lab.thresholds import thresholds
from fairlane_controller.programs.qthresh.settings import ClassConfig
from fairlane_controller.programs.qthresh.setup import limit_of
from fairlane_controller.programs.qthresh.wanted import class_entries
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import read_run_state
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.shared import COUNTER_ADMITTED
from fairlane_controller.switch.updates import plain_entry

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
        place = {"switch": port.switch, "port": port.port, "class": traffic_class}
        # Drop-tail first: the loop forgets what it had decided for the run before.
        policy = self.bed.ask({"op": "scheme_set", "scheme": "drop_tail", **place})
        if control.scheme != "drop_tail":
            if control.scheme == "lanes":
                self.bed.ask({"op": "scheme_set", "scheme": "lanes", **place})
            if isinstance(control.threshold, int):
                policy = self.bed.ask({"op": "threshold_set", "packets": control.threshold, "weight": None, **place})
            else:
                tuning = control.threshold == "auto"
                policy = self.bed.ask(
                    {"op": "threshold_auto", "k": None, "weight": 1.0, "self_tuning": tuning, **place}
                )
        return policy["qthresh_packets"]

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

    async def _run(self) -> None:
        switches = dict.fromkeys(port.switch for port in self._bed.ports)
        jobs = [self._guard(self._measure())]
        jobs += [self._guard(self._switch(name, [p for p in self._bed.ports if p.switch == name])) for name in switches]
        await asyncio.gather(*jobs)

    async def _measure(self) -> None:
        async for now_s in self._ticks(MEASURE_EVERY_S):
            for row in await ask(self._bed.state, {"op": "measure"}):
                values = {
                    name: (row[name]["value"] if row.get(name) else None)
                    for name in ("bw_bps", "t_res_s", "l_d_bytes", "n_c")
                }
                self.samples.measured.setdefault((row["switch"], row["port"]), []).append((now_s, values))

    async def _switch(self, name: str, ports: list[ManagedPort]) -> None:
        endpoint = self._bed.endpoint(name)
        slots: dict[int, FlowAddress] = {}
        found_at = -FIND_FLOWS_EVERY_S
        async with SwitchClient(endpoint) as client:
            async for now_s in self._ticks(self._period_s):
                if self._flows and now_s - found_at > FIND_FLOWS_EVERY_S:
                    slots = await self._find_flows(client)
                    found_at = now_s
                await self._read(client, ports, slots)

    async def _read(self, client: SwitchClient, ports: list[ManagedPort], slots: dict[int, FlowAddress]) -> None:
        """One request for everything: a single instant."""
        numbers = [port.port for port in ports]
        entities: list[Any] = []
        for number in numbers:
            indices = [program.admitted_index(number, each) for each in range(program.CLASSES)]
            entities += [P4CounterEntry(COUNTER_ADMITTED, index=index) for index in indices]
        if self._bed.target == "embedded":
            entities += [
                P4RegisterEntry(name, index=n) for n in numbers for name in (PORT_REGISTER, PORT_BYTES_REGISTER)
            ]
            entities += [P4RegisterEntry(FLOW_REGISTER, index=slot) for slot in slots]
        now_s = time.monotonic()
        admitted, waiting = dict.fromkeys(numbers, 0), dict.fromkeys(numbers, 0)
        samples, switch = self.samples, ports[0].switch
        answers = cast("AsyncIterator[P4CounterEntry | P4RegisterEntry]", client.switch.read(entities))
        async for entry in answers:
            index = cast("int", entry.index)
            if isinstance(entry, P4CounterEntry):
                admitted[index >> 3] += (entry.data or P4CounterData()).byte_count
            elif entry.register_id == PORT_REGISTER:
                samples.waiting.setdefault((switch, index), []).append((now_s, float(cast("int", entry.data))))
            elif entry.register_id == PORT_BYTES_REGISTER:
                waiting[index] = cast("int", entry.data)
            else:
                samples.flows.setdefault(slots[index], []).append((now_s, float(cast("int", entry.data))))
        took_s = time.monotonic() - now_s
        if took_s > READ_MAX_S:
            return  # nobody knows when in that time the switch read its counters
        now_s += took_s / 2
        for number in numbers:
            left = float(admitted[number] - waiting[number])
            samples.tx_bytes.setdefault((switch, number), []).append((now_s, left))

    async def _find_flows(self, client: SwitchClient) -> dict[int, FlowAddress]:
        found: dict[int, FlowAddress] = {}
        for table in program.TABLE_FLOW.values():
            for entry in await client.read_table(table, idle=True):
                key, slot, _ = parse_flow(entry)
                if key.dst_port in self._sink_ports and (entry.time_since_last_hit or 0) < IDLE_NS:
                    found[slot] = (key.hosts[0], key.src_port, key.dst_port)
        return dict(list(found.items())[:FLOWS_WATCHED_MAX])
