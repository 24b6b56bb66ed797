# SPDX-License-Identifier: Apache-2.0
"""What the lab needs to know of a P4 program. The base classes are a program's that brings nothing: it forwards, its queues are watched."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.program import contract
from fairlane_controller.program.contract import Program
from fairlane_controller.program.control import TopologyControl
from fairlane_controller.program.rows import Column
from fairlane_controller.program.setup import apply_plan, read_rows, set_up_program, share
from fairlane_controller.state.run_state import RunState, SwitchState, read_run_state
from fairlane_controller.switch.changeset import ChangeSet
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.difference import difference, entries_by_key, read_entries
from fairlane_controller.switch.shared import COUNTER_DROPS, COUNTER_PASSED, drops_index
from pydantic import BaseModel

from fairlane_lab.problems import Problem, place
from fairlane_lab.run_result import RunResult, SeriesPoint, VcResult
from fairlane_lab.scenario import Control, Scenario

if TYPE_CHECKING:
    from fairlane_controller.state.events import EventLog
    from fairlane_topology import topology as fl_topology

    from fairlane_lab.definition.body import Body
    from fairlane_lab.definition.topology import Resolved
    from fairlane_lab.sim.config import SimConfig
    from fairlane_lab.sim.measure import PortKey
    from fairlane_lab.sim.world import SimWorld
    from fairlane_lab.testbed.bed import Bed
    from fairlane_lab.testbed.plan import Plan
    from fairlane_lab.testbed.port_watch import FlowAddress


@dataclass(frozen=True)
class Name:
    """A parameter or a metric: what a human reads beside its column, and the column's type."""

    label: str
    unit: str = ""
    scale: float = 1.0
    """Shown value = value · scale."""
    kind: type[float] | type[int] | type[str] | type[bool] = float
    head: str = ""
    """Short, for the head of a table's column; empty: the label."""
    least: float = 0.0
    most: float = math.inf
    """What its values can be."""


LOOK_PERIOD_S = 1.0
"""Between two looks at what the control loop has measured."""


@dataclass(frozen=True)
class Records:
    """What a run has left for its program, the same in every runtime; seconds are from the scenario's zero."""

    scenario: Scenario
    topology: fl_topology.Topology
    managed: Sequence[PortKey]
    start_s: float
    end_s: float
    """Of the measured window."""
    events: Sequence[Mapping[str, Any]]
    """The controller's during the run, with `t_s`."""
    measured: Mapping[PortKey, Sequence[tuple[float, Mapping[str, float | None]]]]
    """What the loop had measured at each look, by `LabPart.loop_values`."""
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    """What was read of each switch (`RunPart.read`) at both ends of the window."""
    carried: Mapping[str, Sequence[tuple[float, float]]]
    """Bytes over time of each flow, where the program asks for them."""
    thresholds: Mapping[PortKey, int | None]
    """In force at the zero, packets."""

    def loop_series(self, port: PortKey, name: str) -> list[tuple[float, float]]:
        """(s, value) of what the loop had measured at a port, where it had."""
        return [(t, value) for t, row in self.measured.get(port, ()) if (value := row.get(name)) is not None]

    def loop_mean(self, port: PortKey, name: str) -> float | None:
        """Mean over the window; of the last value before its end when nothing was measured in it; None without any."""
        samples = [(t, value) for t, value in self.loop_series(port, name) if t <= self.end_s + 1e-9]
        inside = [value for t, value in samples if t >= self.start_s - 1e-9]
        if inside:
            return sum(inside) / len(inside)
        return samples[-1][1] if samples else None


class LabPart:
    """One program in the lab."""

    Control: ClassVar[type[BaseModel] | None] = None
    """What `[control]` may say; None: what a port can be set to, `Program.Settings`."""
    parameters: ClassVar[Mapping[str, Name]] = {}
    run_metrics: ClassVar[Mapping[str, Name]] = {}
    """One value a run."""
    object_metrics: ClassVar[Mapping[str, Name]] = {}
    """Of each of its objects: `metric[object]`."""
    series_metrics: ClassVar[Mapping[str, Name]] = {}
    limit_series: ClassVar[str] = ""
    """The one of `series_metrics` that holds the queue down: drawn as steps over the queue."""
    value_labels: ClassVar[Mapping[tuple[str, str], str]] = {}
    """What a reader sees for a value: (parameter, value) → label."""
    colours: ClassVar[Mapping[str, int]] = {}
    """Values that look the same in all pictures: index into the palette (`report/style.py`)."""
    switch_parameters: ClassVar[frozenset[str]] = frozenset()
    """Parameters that say what the switch does, beside those of `Control`: a run's seed does not depend on them."""
    has_vcs: ClassVar[bool] = False
    """Whether an experiment has `[[vcs]]`."""
    loop_values: ClassVar[Mapping[str, tuple[str, float]]] = {}
    """What its loop measures, as values of a port: name → name in `Program.measured`, and the factor between."""
    loop_series: ClassVar[Sequence[str]] = ()
    """Those of them that are series too."""
    flow_register: ClassVar[str] = ""
    """Register of the packets that each flow has waiting, by the flow's slot."""

    shows_columns: ClassVar[bool] = True
    """Whether the program's columns are metrics; False: the part has its own."""

    def __init__(self, program: Program) -> None:
        self.program = program
        columns = program.columns if self.shows_columns else ()
        self.measured: Sequence[Column] = [each for each in columns if each.is_total or each.unit]
        "Numbers that it shows of a port, as metrics of a run: what totals grew by, what else was read last; summed over ports."
        self.has_loop = program.topology_control() is not None
        "Whether a control loop belongs to its switches."

    @property
    def name(self) -> str:
        """The program's."""
        return self.program.name

    @property
    def drop_reasons(self) -> list[int]:
        """Of the counter `drops`: what counts as a drop of a port, beside what the queue behind the program refuses."""
        return [number for number, reason in self.program.reasons.items() if reason.in_queue or reason.in_rows]

    @property
    def control_model(self) -> type[BaseModel]:
        """The model of `[control]`."""
        return self.Control or self.program.Settings

    def control(self, settings: Any) -> Control:
        """A scenario's control, of what `[control]` says."""
        return Control(getattr(settings, "scheme", self.name), settings=settings)

    def columns(self, control: Control) -> dict[str, Any]:
        """What the switch does, as parameters of the results."""
        return {"scheme": control.scheme, "threshold": None}

    def problems(self, body: Body, topology: Resolved) -> Iterable[Problem]:
        """What is wrong with a point as far as the program decides it."""
        del topology
        if body.vcs:
            yield Problem("vcs", f"program {self.name!r} has no VCs")
        for index, flow in enumerate(body.flows):
            if flow.vc:
                yield Problem(place(("flows", index, "vc")), f"program {self.name!r} has no VCs")

    def metrics(self, result: RunResult) -> dict[str, Any]:
        """What it adds to the metrics of a run, or replaces."""
        return dict(result.values)

    def sent_cells(self, port: int) -> list[tuple[str, int]]:
        """Cells of counters, (name, index), that together count what the program has sent to a port: all that BMv2 says of its queue."""
        return [(COUNTER_PASSED, port)]

    def loop_row(self, row: Mapping[str, Any]) -> dict[str, float | None]:
        """What the loop says of a port (`SwitchControl.measurements`), by `loop_values`."""
        found: dict[str, float | None] = {}
        for name, (theirs, factor) in self.loop_values.items():
            found[name] = factor * row[theirs]["value"] if row.get(theirs) else None
        return found

    def values(self, seen: Records) -> dict[str, float]:
        """Metrics of the run: the program's columns, summed over the managed ports."""
        ends = ({key: row for rows in end.values() for key, row in rows.items()} for end in (seen.before, seen.after))
        return measured_values(self, *ends)

    def port_values(self, seen: Records, port: PortKey) -> dict[str, Any]:
        """`PortResult.values` of a managed port."""
        return {name: seen.loop_mean(port, name) for name in self.loop_values}

    def port_series(self, seen: Records, port: PortKey, name: str) -> Iterator[SeriesPoint]:
        """Series of a managed port, which they call `name`."""
        for metric in self.loop_series:
            yield from (SeriesPoint(t, name, metric, value) for t, value in seen.loop_series(port, metric))

    def vcs(self, seen: Records) -> list[VcResult]:
        """What each VC got."""
        del seen
        return []

    def series(self, seen: Records) -> Iterable[SeriesPoint]:
        """Further series."""
        del seen
        return ()

    def derived_values(
        self, before: Mapping[PortKey, Mapping[str, Any]], after: Mapping[PortKey, Mapping[str, Any]]
    ) -> dict[str, float]:
        """Further values of a run, of two readings of its ports (`read_ports_of`)."""
        del before, after
        return {}

    def vc_rows(self, result: RunResult) -> list[dict[str, Any]]:
        """Rows of `vcs.parquet`, without the key and the parameters."""
        del result
        return []

    def sampled_registers(self, config: SimConfig) -> list[dict[str, Any]]:
        """Registers that the simulator samples in runs with series."""
        if not self.flow_register:
            return []
        # Slots are given in the order in which flows appear; one for each flow, and for its ACKs where both ways are managed.
        indices = list(range(2 * len(config.flows)))
        switches = dict.fromkeys(switch for switch, _ in config.managed)
        return [{"switch": switch, "register": self.flow_register, "indices": indices} for switch in switches]

    def in_sim(self, world: SimWorld) -> SimPart:
        """Its side of a run in virtual time."""
        return SimPart(self, world)

    def in_mininet(self, bed: Bed) -> MininetPart:
        """Its side of a running network in Mininet."""
        return MininetPart(self, bed)


def make_program_plan(program: Program, run: RunState, scenario: Scenario, managed: Sequence[PortKey]) -> contract.Plan:
    """What the switches are to have: the topology's own settings, and the scenario's at managed ports."""
    config = program.initial_config(run)
    settings = scenario.control.settings
    if isinstance(settings, program.Settings):
        config = replace(config, ports={**(config.ports or {}), **dict.fromkeys(managed, settings)})
    return program.plan(config, run)


async def read_ports_of(client: SwitchClient, program: Program) -> dict[PortKey, Mapping[str, Any]]:
    """What a program shows of the ports of a switch; of a port's objects by their kind, then by their key."""
    rows = await read_rows(client, program)
    found = {
        (client.endpoint.name, row.port): dict(row.values) for row in rows if not row.kind and row.port is not None
    }
    for row in rows:
        if row.kind and row.port is not None:
            found[client.endpoint.name, row.port].setdefault(row.kind, {})[row.key] = row.values
    return {**found}


async def program_drops(client: SwitchClient, part: LabPart, ports: Iterable[int]) -> dict[int, int]:
    """Packets that the program has refused at each of these ports of a switch."""
    found = dict.fromkeys(ports, 0)
    indices = {drops_index(port, reason): port for port in found for reason in part.drop_reasons}
    for index, cell in (await client.read_counters(COUNTER_DROPS, indices)).items() if indices else ():
        found[indices[index]] += cell.packet_count
    return found


def measured_values(
    part: LabPart, before: Mapping[PortKey, Mapping[str, Any]], after: Mapping[PortKey, Mapping[str, Any]]
) -> dict[str, float]:
    """`LabPart.measured` between two readings of the ports."""
    found: dict[str, float] = {}
    for column in part.measured:
        for port, values in after.items():
            if values.get(column.name) is not None:
                start = before.get(port, {}).get(column.name, 0) if column.is_total else 0
                found[column.name] = found.get(column.name, 0.0) + float(values[column.name]) - float(start or 0)
    for column in part.measured:
        if column.ratio is not None:
            value = share(*map(found.get, column.ratio))
            found |= {} if value is None else {column.name: value}
    return found | part.derived_values(before, after)


class RunPart:
    """A program's side of a run, in whatever runtime."""

    managed: Sequence[PortKey] = ()

    def __init__(self, part: LabPart) -> None:
        self.part = part

    async def read(self, client: SwitchClient) -> Any:
        """What it reads of a switch with managed ports while it runs: by default the values of these ports."""
        if not self.part.measured:
            return {}
        found = await read_ports_of(client, self.part.program)
        return {key: values for key, values in found.items() if key in self.managed}


class SimPart(RunPart):
    """A program's side of one run in virtual time."""

    def __init__(self, part: LabPart, world: SimWorld) -> None:
        super().__init__(part)
        self.world = world
        self.managed = world.config.managed
        self.agents: list[Any] = []
        "The control loops, of `start`; each has `endpoint` and `last_error`."
        self.measured: dict[PortKey, list[tuple[float, Mapping[str, float | None]]]] = {}
        self.carried: dict[str, list[tuple[float, float]]] = {}
        self.thresholds: dict[PortKey, int | None] = {}
        "For `Records`."

    async def set_up(self) -> None:
        """Set up the switches at time 0, through the program's own plan. Raises FairlaneError."""
        world, plan = self.world, self.make_plan()
        for state in world.run_state.switches:
            async with world.client(world.endpoint(state.name), write=True) as client:
                await set_up_program(client, self.part.program, plan, state)

    def make_plan(self) -> contract.Plan:
        """What the switches are to have at time 0. Raises FairlaneError."""
        config = self.world.config
        return make_program_plan(self.part.program, self.world.run_state, config.scenario, config.managed)

    def start(self, log: EventLog) -> Sequence[Coroutine[Any, Any, None]]:
        """What runs beside the simulation, until it is cancelled: the program's own loop (`Program.topology_control`)."""
        control = self.part.program.topology_control()
        if control is None:
            return ()
        self.world.loop.stop_on_messages = bool(self.part.program.control)  # it waits for digests
        states = {state.name: state for state in self.world.run_state.switches}
        return self.run_agents(control(self.world.run_state), log, states)

    def run_agents(
        self, topology: TopologyControl, log: EventLog, states: Mapping[str, SwitchState] | None = None
    ) -> list[Coroutine[Any, Any, None]]:
        """A control loop's agent for each switch with managed ports; `states`: what a switch that has restarted gets."""
        world, states = self.world, states or {}
        self.agents = [
            SwitchAgent(world.endpoint(name), topology, log, state=states.get(name), client_factory=world.client)
            for name in world.managed_switches()
        ]
        watching = [self._poll_forever()] if self.part.loop_values else []
        return [*(agent.run() for agent in self.agents), *watching]

    async def _poll_forever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK_PERIOD_S)
            for agent in self.agents:
                for row in agent.control.measurements():
                    looks = self.measured.setdefault((agent.endpoint.name, row["port"]), [])
                    looks.append((loop.time(), self.part.loop_row(row)))

    def end(self) -> None:
        """The run is over."""

    def flow_slots(self, events: Sequence[Mapping[str, Any]]) -> Mapping[str, Sequence[tuple[str, int]]]:
        """The slots of each flow in `LabPart.flow_register`, (switch, slot), the last one first; `events`: the controller's."""
        del events
        return {}


class MininetPart(RunPart):
    """A program's side of a running network in Mininet."""

    def __init__(self, part: LabPart, bed: Bed) -> None:
        super().__init__(part)
        self.bed = bed
        self.managed = [(port.switch, port.port) for port in bed.ports]

    def begin(self, scenario: Scenario, plan: Plan) -> dict[tuple[str, int], int | None]:
        """Put a scenario's control in force, as after a fresh start; returns thresholds in force by port. Raises RunError, FairlaneError."""
        del plan
        if isinstance(scenario.control.settings, self.part.program.Settings):
            asyncio.run(self._apply(scenario))
        return {}

    async def _apply(self, scenario: Scenario) -> None:
        """Where a loop runs it writes; it decides on from there."""
        program, decides = self.part.program, self.part.has_loop
        run = read_run_state(self.bed.state)
        plan = make_program_plan(program, run, scenario, self.managed)
        for state in run.switches:
            async with SwitchClient(self.bed.endpoint(state.name), write=not decides) as client:
                if not decides:
                    await apply_plan(client, program, plan)
                    continue
                current = await read_entries(client, program.tables)
                wanted = entries_by_key(client, plan.wanted(state.name, current).entries)
                changes = ChangeSet({state.name: difference(current, wanted, program.tables)})
            if updates := changes.updates(state.name):
                self.bed.ask({"op": "table_write", "switch": state.name, "updates": updates})

    async def find_flows(self, client: SwitchClient) -> dict[int, FlowAddress]:
        """The flows that send now, by their slots in `LabPart.flow_register`."""
        del client
        return {}
