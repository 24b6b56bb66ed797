# SPDX-License-Identifier: Apache-2.0
"""The lab's part of program `qthresh`: per-flow thresholds, the control loop's measurements, the weights of flows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from fairlane import RunState, Section
from fairlane.switch import COUNTER_ADMITTED, SwitchClient
from fairlane_lab import scenario
from fairlane_lab.measures import mean_between
from fairlane_lab.problems import Problem, place
from fairlane_lab.programs.part import LabPart, Name
from fairlane_lab.recording import Recording
from fairlane_lab.run_result import RunError, SeriesPoint
from fairlane_topology import topology as fl_topology
from fairlane_topology.topology import PortKey, managed_ports
from pydantic import BeforeValidator

from ..control import QthreshTopology
from ..flows import Flow, FlowKey, parse_flow
from ..names import CLASSES, TABLE_FLOW, Scheme, admitted_index
from ..policies import START_QTHRESH_PACKETS, ConfigPlan, LoopStore, SetupPlan, why_no_lanes
from ..settings import ClassConfig

if TYPE_CHECKING:
    from fairlane_lab.definition.schema import Body
    from fairlane_lab.definition.topology import Resolved
    from fairlane_lab.sim.config import SimFlow

IDLE_NS = 1_000_000_000
"""A flow that sent nothing for so long does not send now."""


def _threshold(value: object) -> object:
    whole = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65535
    if not whole and value not in ("model", "auto"):
        raise ValueError(f"got {value!r}; allowed: packets from 1 to 65535, 'model' or 'auto'")
    return value


class Control(Section):
    """`[control]`."""

    scheme: Literal["drop_tail", "qthresh", "lanes"] = "drop_tail"
    threshold: Annotated[int | Literal["model", "auto"], BeforeValidator(_threshold)] = "auto"
    """Packets: fixed. `model`: the control loop, eq. (9) alone. `auto`: the control loop, tuning itself."""
    measure: bool = False
    probes: bool = False
    ecn: bool = False
    """Managed ports mark what says ECT (`tcp.ecn`) above its flow's threshold."""
    classes: tuple[ClassConfig, ...] = ()
    """Rules as in `[[classes]]` of a configuration; other packets are in class 0. Every class has the scheme and the threshold of `[control]`."""


def settings_of(control: scenario.Control) -> Control:
    """`[control]` of a scenario, its defaults where it says no more than the fields of every scenario."""
    return control.settings if isinstance(control.settings, Control) else Control()


def classes_of(control: scenario.Control) -> list[int]:
    """All classes that packets may be in."""
    return sorted({0, *(rule.traffic_class for rule in settings_of(control).classes)})


def configuration(control: scenario.Control, managed: Iterable[tuple[str, int]]) -> dict[str, Any]:
    """`[control]` as `fairlane.toml` has it, for these (switch, port)."""
    settings, policy = settings_of(control), dict[str, Any](scheme=control.scheme)
    if control.scheme != "drop_tail":
        fixed = isinstance(control.threshold, int)
        policy |= {"threshold": control.threshold} if fixed else {"self_tuning": control.threshold == "auto"}
    places = [{"switch": switch, "port": port} for switch, port in managed]
    return {
        "ports": [{**place, "managed": True, "ecn": settings.ecn} for place in places],
        "classes": [rule.plain() for rule in settings.classes],
        "policies": [{**place, "class": number, **policy} for place in places for number in classes_of(control)],
    }


_MEASURED: Mapping[str, Name] = {
    "qthresh_packets": Name("Qthresh in force", "packets", head="Qthresh"),
    "bw_bps": Name("measured BW", "Mbit/s", 1e-6),
    "t_res_ms": Name("measured T_res", "ms"),
}


class Part(LabPart):
    """Program `qthresh`."""

    Control = Control
    shows_columns = False
    parameters: ClassVar[Mapping[str, Name]] = {
        "threshold": Name("Qthresh", "packets", kind=str),
        "ecn": Name("marks (ECN)", kind=bool),
    }
    run_metrics: ClassVar[Mapping[str, Name]] = {
        **_MEASURED,
        "l_d_bytes": Name("measured L_D", "bytes"),
        "n_c": Name("measured N_C"),
    }
    series_metrics: ClassVar[Mapping[str, Name]] = {**_MEASURED, "qthresh_packets": Name("Qthresh", "packets")}
    limit_series = "qthresh_packets"
    loop_values: ClassVar[Mapping[str, tuple[str, float]]] = {
        "bw_bps": ("bw_bps", 1.0),
        "t_res_ms": ("t_res_s", 1e3),
        "l_d_bytes": ("l_d_bytes", 1.0),
        "n_c": ("n_c", 1.0),
    }
    loop_series = ("bw_bps", "t_res_ms")
    flow_register = "flow_occupancy"
    value_labels: ClassVar[Mapping[tuple[str, str], str]] = {
        ("scheme", "qthresh"): "Qthresh",
        ("scheme", "lanes"): "lanes",
        ("threshold", "auto"): "self-tuning",
        ("threshold", "model"): "eq. (9)",
        ("ecn", "False"): "dropping",
        ("ecn", "True"): "marking",
    }
    colours: ClassVar[Mapping[str, int]] = {"qthresh": 2, "lanes": 3, "auto": 2, "fixed": 5, "model": 4}

    def control(self, settings: Any) -> scenario.Control:
        """The scheme and its settings, as a scenario has them."""
        # Settings only where they say more than the fields: what was archived before there were marks and classes keeps its configuration.
        fields = settings.model_dump(exclude={"ecn", "classes"})
        return scenario.Control(**fields, settings=settings if settings.ecn or settings.classes else None)

    def problems(self, body: Body, topology: Resolved) -> Iterable[Problem]:
        """What is wrong with a point, and lanes at ports whose queues are none."""
        yield from super().problems(body, topology)
        if body.control.scheme != "lanes":
            return
        for (switch, port), spec in managed_ports(topology.checked).items():
            if why := why_no_lanes(spec.scheduler, spec.queues):
                yield Problem(place(("topology", "ports", f"{switch}-p{port}")), why)

    def columns(self, control: scenario.Control) -> dict[str, Any]:
        """Columns of results that say what the switch does."""
        return {"scheme": control.scheme, "threshold": control.threshold if control.scheme != "drop_tail" else None}

    def sent_cells(self, port: int) -> tuple[str, list[int]]:
        """A counter and its cells that together count what a port was given."""
        return COUNTER_ADMITTED, [admitted_index(port, each) for each in range(CLASSES)]

    def port_values(self, seen: Recording, port: PortKey) -> dict[str, Any]:
        """What is known of a managed port: measurements, and the mean threshold."""
        values = super().port_values(seen, port)
        steps = _thresholds(seen, port)
        return values | ({"qthresh_packets": mean_between(steps, seen.start_s, seen.end_s)} if steps else {})

    def port_series(self, seen: Recording, port: PortKey, name: str) -> Iterator[SeriesPoint]:
        """Thresholds and measurements of a managed port over time."""
        yield from (SeriesPoint(t, name, "qthresh_packets", value) for t, value in _thresholds(seen, port))
        yield from super().port_series(seen, port, name)

    # ---- in a runtime --------------------------------------------------------------------------------------------

    def configurations(self, scenario: scenario.Scenario, topology: fl_topology.Topology) -> list[dict[str, Any]]:
        """Drop-tail first: the loop forgets what it had decided for the run before."""
        control = scenario.control
        return [configuration(one, managed_ports(topology)) for one in (replace(control, scheme="drop_tail"), control)]

    def plans(self, run: RunState, scenario: scenario.Scenario, topology: fl_topology.Topology) -> list[Any]:
        """Drop-tail and limits, then the scenario's configuration."""
        ports = {(one.name, port.port): port for one in run.switches for port in one.ports}
        states = {place: ports[place] for place in managed_ports(topology)}
        config = self.program.config_of(configuration(scenario.control, states))
        return [SetupPlan(run, Scheme.DROP_TAIL), ConfigPlan(replace(config, states=states), run, LoopStore(None))]

    def control_loop(self, run: RunState, scenario: scenario.Scenario, plans: Sequence[Any]) -> QthreshTopology | None:
        """The control loop, where the scenario needs one."""
        del run
        control, plan = scenario.control, plans[-1]
        if not control.needs_loop:
            return None
        plan.store.write({"/".join(map(str, one.key)): one.settings for one in plan.config.sections.policies})
        return QthreshTopology(probes=control.probes, store=plan.store)

    def loop_options(self, weights: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The weights that the entries of new flows get."""
        return {"flow_weights": list(weights)}

    def thresholds(self, control: scenario.Control, capacities: Mapping[PortKey, int]) -> dict[PortKey, int | None]:
        """In force at the zero; None with drop-tail. Raises RunError for a threshold that a port cannot have."""
        found: dict[PortKey, int | None] = {}
        for key, capacity in capacities.items():
            packets = control.threshold if isinstance(control.threshold, int) else min(START_QTHRESH_PACKETS, capacity)
            found[key] = None if control.scheme == "drop_tail" else packets
            if (found[key] or 0) > capacity:
                raise RunError(f"threshold {packets} is out of range: it must be between 1 and {capacity} packets")
        return found

    def flow_entries(self, flows: Sequence[SimFlow]) -> list[Any]:
        """Each known flow has the slot of its place in the list."""
        return [
            key_of(each).entry(slot, Flow(weight=None if each.flow.weight == 1.0 else each.flow.weight))
            for slot, each in enumerate(flows)
            if each.has_known_key
        ]

    async def find_flows(self, client: SwitchClient) -> dict[int, tuple[str, int, int]]:
        """The flows that send now, by slot."""
        found: dict[int, tuple[str, int, int]] = {}
        for table in TABLE_FLOW.values():
            for entry in await client.read_table(table, idle=True):
                key, slot, _ = parse_flow(entry)
                if (entry.time_since_last_hit or 0) < IDLE_NS:
                    found[slot] = (key.hosts[0], key.src_port, key.dst_port)
        return found

    def flow_slots(
        self, flows: Sequence[SimFlow], switches: Sequence[str], events: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Sequence[tuple[str, int]]]:
        """By the events of the loop; without one as `flow_entries` numbers them."""
        if not any(event["event"] == "took_over" for event in events):
            return {each.name: [(name, slot) for name in switches] for slot, each in enumerate(flows)}
        names = {str(key_of(each)): each.name for each in flows}
        found: dict[str, list[tuple[str, int]]] = {}
        for event in reversed(events):
            if event["event"] == "flow" and event["flow"] in names:
                found.setdefault(names[event["flow"]], []).append((event["switch"], event["slot"]))
        return found


def key_of(flow: SimFlow) -> FlowKey:
    """The key of the flow's entry."""
    src, dst, *rest = flow.key
    return FlowKey(src.version, int(src), int(dst), *rest)


def _thresholds(seen: Recording, port: PortKey) -> list[tuple[float, float]]:
    """(s, packets) from which on a threshold was in force."""
    first = seen.thresholds.get(port)
    return [] if first is None else thresholds(seen.events, port, first)


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
