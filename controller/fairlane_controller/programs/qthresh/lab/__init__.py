# SPDX-License-Identifier: Apache-2.0
"""The lab's part of program `qthresh`: per-flow thresholds, the control loop's measurements, the weights of flows.

sim.py   in virtual time     testbed.py   in Mininet     reactions.py   from a change to a measurement that has settled
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from fairlane import Section
from fairlane.switch import COUNTER_ADMITTED
from fairlane_lab import scenario
from fairlane_lab.measures import mean_between
from fairlane_lab.programs.part import LabPart, MininetPart, Name, Records, SimPart
from fairlane_lab.run_result import SeriesPoint
from pydantic import BeforeValidator

from ..names import CLASSES, admitted_index
from ..policies import START_QTHRESH_PACKETS
from ..settings import ClassConfig
from .reactions import reaction_s
from .thresholds import thresholds

if TYPE_CHECKING:
    from fairlane_lab.sim.measure import PortKey
    from fairlane_lab.sim.world import SimWorld
    from fairlane_lab.testbed.bed import Bed

REACTIONS = {"bw_reaction_s": "bw_bps", "t_res_reaction_s": "t_res_ms"}
"""Metric of a run whose network changes → the measurement whose reaction it is."""


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
        tuning = {"mode": "auto", "self_tuning": control.threshold == "auto"}
        policy |= {"threshold": control.threshold} if fixed else tuning
    places = [{"switch": switch, "port": port} for switch, port in managed]
    return {
        "ports": [{**place, "managed": True, "ecn": settings.ecn} for place in places],
        "classes": [rule.plain() for rule in settings.classes],
        "policies": [{**place, "class": number, **policy} for place in places for number in classes_of(control)],
    }


def first_threshold(control: scenario.Control, capacity_packets: int) -> int | None:
    """Packets that the threshold of a managed port has at time 0; None with drop-tail."""
    if control.scheme == "drop_tail":
        return None
    return control.threshold if isinstance(control.threshold, int) else min(START_QTHRESH_PACKETS, capacity_packets)


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
        "bw_reaction_s": Name("from a change to a BW that has settled", "s"),
        "t_res_reaction_s": Name("from a change to a T_res that has settled", "s"),
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

    def columns(self, control: scenario.Control) -> dict[str, Any]:
        """Columns of results that say what the switch does."""
        return {"scheme": control.scheme, "threshold": control.threshold if control.scheme != "drop_tail" else None}

    def sent_cells(self, port: int) -> list[tuple[str, int]]:
        """Cells of counters that together count what a port was given."""
        return [(COUNTER_ADMITTED, admitted_index(port, each)) for each in range(CLASSES)]

    def values(self, seen: Records) -> dict[str, float]:
        """Metrics of a run: how long the loop takes to measure a change."""
        changes_s = sorted({change.at_s for change in seen.scenario.changes if change.every_s is None})
        found = {
            metric: reaction_s(seen.loop_series(port, measured), changes_s, seen.scenario.duration_s)
            for port in seen.managed[:1]
            for metric, measured in REACTIONS.items()
        }
        return {metric: taken for metric, taken in found.items() if taken is not None}

    def port_values(self, seen: Records, port: PortKey) -> dict[str, Any]:
        """What is known of a managed port: measurements, and the mean threshold."""
        values = super().port_values(seen, port)
        steps = _thresholds(seen, port)
        return values | ({"qthresh_packets": mean_between(steps, seen.start_s, seen.end_s)} if steps else {})

    def port_series(self, seen: Records, port: PortKey, name: str) -> Iterator[SeriesPoint]:
        """Thresholds and measurements of a managed port over time."""
        yield from (SeriesPoint(t, name, "qthresh_packets", value) for t, value in _thresholds(seen, port))
        yield from super().port_series(seen, port, name)

    def in_sim(self, world: SimWorld) -> SimPart:
        """Its side of a run in virtual time."""
        from .sim import QthreshInSim

        return QthreshInSim(self, world)

    def in_mininet(self, bed: Bed) -> MininetPart:
        """Its side of a running network in Mininet."""
        from .testbed import QthreshInMininet

        return QthreshInMininet(self, bed)


def _thresholds(seen: Records, port: PortKey) -> list[tuple[float, float]]:
    """(s, packets) from which on a threshold was in force."""
    first = seen.thresholds.get(port)
    return [] if first is None else thresholds(seen.events, port, first)
