# SPDX-License-Identifier: Apache-2.0
"""What the lab needs to know of a P4 program. The base classes are a program's that brings nothing: it forwards, its queues are watched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from fairlane_controller.program import contract
from fairlane_controller.program.contract import Program
from fairlane_controller.program.control import TopologyControl
from fairlane_controller.program.rows import Column
from fairlane_controller.program.setup import read_rows, share
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.reading import read_cells
from fairlane_controller.switch.shared import COUNTER_DROPS, COUNTER_PASSED, drops_index
from fairlane_topology import topology as fl_topology
from fairlane_topology.topology import PortKey, managed_ports
from finsy import P4CounterEntry
from pydantic import BaseModel

from fairlane_lab.problems import Problem
from fairlane_lab.recording import Recording
from fairlane_lab.run_result import RunResult, SeriesPoint, VcResult
from fairlane_lab.scenario import Control, Scenario

if TYPE_CHECKING:
    from fairlane_lab.definition.schema import Body
    from fairlane_lab.definition.topology import Resolved
    from fairlane_lab.sim.config import SimConfig, SimFlow


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
    never_beside: str = ""
    """The column by which a run without the metric says that it never came; empty: such a run did not measure it."""


LOOK_PERIOD_S = 1.0
"""Between two looks at what the control loop has measured."""


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
    """Values that look the same in all pictures: index into the palette (`report/figures.py`)."""
    switch_parameters: ClassVar[frozenset[str]] = frozenset()
    """Parameters that say what the switch does, beside those of `Control`: a run's seed does not depend on them."""
    traffic_parameters: ClassVar[frozenset[str]] = frozenset()
    """Settings of `Control` that say what comes, not what the switch does with it."""
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
        return [number for number, reason in self.program.reasons.items() if reason.in_queue]

    @property
    def control_model(self) -> type[BaseModel]:
        """The model of `[control]`."""
        return self.Control or self.program.Settings

    @property
    def of_the_switch(self) -> set[str]:
        """Names of parameters that say what the switch does."""
        return {*self.switch_parameters, *self.control_model.model_fields} - self.traffic_parameters

    def control(self, settings: Any) -> Control:
        """A scenario's control, of what `[control]` says."""
        scheme, probes = getattr(settings, "scheme", self.name), getattr(settings, "probes", False)
        return Control(scheme, probes=probes, settings=settings)

    def columns(self, control: Control) -> dict[str, Any]:
        """What the switch does, as parameters of the results."""
        return {"scheme": control.scheme, "threshold": None}

    def problems(self, body: Body, topology: Resolved) -> Iterable[Problem]:
        """What is wrong with a point as far as the program decides it."""
        if body.vcs:
            yield Problem("vcs", f"program {self.name!r} has no VCs")
        for index, flow in enumerate(body.flows):
            if flow.vc:
                yield Problem(f"flows[{index}].vc", f"program {self.name!r} has no VCs")

    def metrics(self, result: RunResult) -> dict[str, Any]:
        """What it adds to the metrics of a run (`RunResult.values` are among them), or replaces."""
        return {}

    def sent_cells(self, port: int) -> tuple[str, list[int]]:
        """A counter and its cells that together count what the program has sent to a port: all that BMv2 says of its queue."""
        return COUNTER_PASSED, [port]

    def loop_row(self, row: Mapping[str, Any]) -> dict[str, float | None]:
        """What the loop says of a port (`SwitchControl.measurements`), by `loop_values`."""
        found: dict[str, float | None] = {}
        for name, (theirs, factor) in self.loop_values.items():
            found[name] = factor * row[theirs]["value"] if row.get(theirs) else None
        return found

    def values(self, seen: Recording) -> dict[str, float]:
        """Metrics of the run: the program's columns, summed over the managed ports."""
        before, after = (
            {key: row for rows in end.values() for key, row in rows.items()} for end in (seen.before, seen.after)
        )
        found: dict[str, float] = {}
        for column in self.measured:
            for port, values in after.items():
                if values.get(column.name) is not None:
                    start = before.get(port, {}).get(column.name, 0) if column.is_total else 0
                    found[column.name] = found.get(column.name, 0.0) + float(values[column.name]) - float(start or 0)
        for column in self.measured:
            if column.ratio is not None and (value := share(*map(found.get, column.ratio))) is not None:
                found[column.name] = value
        return found | self.derived_values(before, after)

    def port_values(self, seen: Recording, port: PortKey) -> dict[str, Any]:
        """`PortResult.values` of a managed port."""
        return {name: seen.loop_mean(port, name) for name in self.loop_values}

    def port_series(self, seen: Recording, port: PortKey, name: str) -> Iterator[SeriesPoint]:
        """Series of a managed port, which they call `name`."""
        for metric in self.loop_series:
            yield from (SeriesPoint(t, name, metric, value) for t, value in seen.loop_series(port, metric))

    def vcs(self, seen: Recording) -> list[VcResult]:
        """What each VC got."""
        return []

    def series(self, seen: Recording) -> Iterable[SeriesPoint]:
        """Further series."""
        return ()

    def derived_values(
        self, before: Mapping[PortKey, Mapping[str, Any]], after: Mapping[PortKey, Mapping[str, Any]]
    ) -> dict[str, float]:
        """Further values of a run, of two readings of its ports (`read_ports_of`)."""
        return {}

    def sampled_registers(self, config: SimConfig) -> list[dict[str, Any]]:
        """Registers that the simulator samples in runs with series."""
        if not self.flow_register:
            return []
        # Slots are given in the order in which flows appear; one for each flow, and for its ACKs where both ways are managed.
        indices = list(range(2 * len(config.flows)))
        switches = dict.fromkeys(switch for switch, _ in config.managed)
        return [{"switch": switch, "register": self.flow_register, "indices": indices} for switch in switches]

    # ---- in a runtime --------------------------------------------------------------------------------------------

    def configurations(self, scenario: Scenario, topology: fl_topology.Topology) -> Sequence[Mapping[str, Any]]:
        """What is applied before a run, one after the other, as after a fresh start; each as `fairlane.toml` has it. Raises RunError."""
        settings = scenario.control.settings
        if not isinstance(settings, self.program.Settings):
            return ()
        return [contract.Config(dict.fromkeys(managed_ports(topology), settings)).plain()]

    def plans(self, run: RunState, scenario: Scenario, topology: fl_topology.Topology) -> Sequence[contract.Plan]:
        """What switches in virtual time get at time 0, one after the other. Raises RunError, FairlaneError."""
        program = self.program
        config = program.initial_config(run)
        for one in self.configurations(scenario, topology):
            config = replace(config, ports={**(config.ports or {}), **(program.config_of(one).ports or {})})
        return [program.plan(config, run)]

    def control_loop(self, run: RunState, scenario: Scenario, plans: Sequence[contract.Plan]) -> TopologyControl | None:
        """The program's loop in virtual time, of what `plans` made; None: the run needs none."""
        control = self.program.topology_control()
        return None if control is None else control(run)

    def loop_options(self, weights: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Options of the loop, as `[loop]` has them; `weights` are rules for flows that do not weigh 1: `weight`, and what its packets have."""
        return {}

    def flow_entries(self, flows: Sequence[SimFlow]) -> Sequence[Any]:
        """Entries of the flows of a run in virtual time that has no loop."""
        return ()

    def thresholds(self, control: Control, capacities: Mapping[PortKey, int]) -> dict[PortKey, int | None]:
        """In force at the zero, packets; `capacities` are what the managed ports let wait."""
        return {}

    async def read(self, client: SwitchClient, managed: Sequence[PortKey], plans: Sequence[contract.Plan]) -> Any:
        """What it reads of a switch with managed ports while a run lasts: by default the values of these ports. `plans` are in force."""
        found = await read_ports_of(client, self.program) if self.measured else {}
        return {key: values for key, values in found.items() if key in managed}

    async def find_flows(self, client: SwitchClient) -> dict[int, tuple[str, int, int]]:
        """The flows that send now, (source address, source port, destination port), by their slots in `flow_register`."""
        return {}

    def flow_slots(
        self, flows: Sequence[SimFlow], switches: Sequence[str], events: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Sequence[tuple[str, int]]]:
        """The slots of each flow in `flow_register`, (switch, slot), the last one first; `events`: the controller's."""
        return {}


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
    for index, cell in (await read_cells(client, P4CounterEntry, COUNTER_DROPS, indices)).items():
        found[indices[index]] += cell.packet_count if cell else 0
    return found
