# SPDX-License-Identifier: Apache-2.0
"""From a definition to scenarios: points and their repeats, in a fixed order, each with its own seed and start.

A scenario's seed is a hash of (base seed, repeat): whatever is compared meets the same chance in the same repeat and may be
compared in pairs, and one configuration gives the same runs in whatever experiment it stands.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from fairlane_controller.errors import FairlaneError
from fairlane_controller.state.run_state import DEFAULT_PROGRAM
from pydantic import ValidationError

from fairlane_lab.definition.body import TEMPLATED, Body, FlowSpec, RunSpec, Starts
from fairlane_lab.definition.draws import Drawn
from fairlane_lab.definition.names import PARAMETERS, part_of, variants
from fairlane_lab.definition.points import Point, draw_params, make_points
from fairlane_lab.definition.references import resolve
from fairlane_lab.definition.schema import Overrides, Selected, SimOverrides
from fairlane_lab.definition.strict import Scalar, matches
from fairlane_lab.definition.topology import Resolved, change_problems, resolve_topology, with_wire
from fairlane_lab.problems import ExperimentError, Problem, place, pydantic_problems, unknown
from fairlane_lab.programs import find_part
from fairlane_lab.programs.part import LabPart
from fairlane_lab.scenario import Control, Flow, Scenario, TcpOptions

if TYPE_CHECKING:
    from fairlane_lab.definition.loading import Definition
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import LinkChange

RUN_PARAMETERS = ("duration_s", "warmup_s")


@dataclass(frozen=True)
class Selection:
    """Which part of an experiment is run, where, and how often."""

    runtime: Literal["sim", "kernel", "mininet"] = "sim"
    seed: int = 1
    repeats: int | None = None
    """None: as the file says."""
    quick: bool = False
    values: Mapping[str, Sequence[Scalar]] = field(default_factory=dict[str, Sequence[Scalar]])
    """Parameter → the values to run: other values for an axis or a parameter of the file, or a choice of its cases."""


@dataclass(frozen=True)
class Resolution:
    """One point, filled in and checked."""

    point: Point
    body: Body
    topology: Resolved
    program: str
    """Name or folder."""
    part: LabPart
    control: Control

    def columns(self) -> dict[str, Any]:
        """The point's parameters, and what the switch does."""
        flows = sum(flow.connections for flow in self.body.flows)
        return {**self.point.params, **self.part.columns(self.control), "flows": flows}


def expand(definition: Definition, selection: Selection | None = None) -> list[Scenario]:
    """Every run of a selection, points in the file's order, then repeats. Raises ExperimentError for a selection that makes no sense."""
    selection = selection or Selection()
    runtimes = definition.experiment.runtimes
    if not definition.experiment.runs_in(selection.runtime):
        problem = Problem("runtimes", f"does not run in {selection.runtime!r}; it runs in: {', '.join(runtimes)}")
        raise ExperimentError(definition.origin, [problem])
    scenarios: list[Scenario] = []
    for point in select_points(definition, selection):
        resolution = _resolve(definition, point, selection)
        for repeat in range(selection.repeats or resolution.body.run.repeats):
            if definition.experiment.drawn and repeat:
                resolution = _resolve(definition, point, selection, repeat)
            scenarios.append(_scenario(definition, resolution, repeat, selection.seed))
    return scenarios


def repeats_of(definition: Definition, selection: Selection) -> int:
    """How many runs a point has where the selection does not say. Raises ExperimentError for a selection that makes no sense."""
    return _resolve(definition, select_points(definition, selection)[0], selection).body.run.repeats


def _resolve(definition: Definition, point: Point, selection: Selection, repeat: int = 0) -> Resolution:
    point = with_drawn(definition, point, selection.seed, repeat)
    resolution, problems = resolve_point(definition, point, overrides(definition, selection))
    if resolution is None or problems:
        raise ExperimentError(f"{definition.origin} at {point.name}", definition.source.located(problems))
    return resolution


def with_drawn(definition: Definition, point: Point, base_seed: int = 1, repeat: int = 0) -> Point:
    """A point with the parameters that are drawn for a run."""
    drawn = definition.experiment.drawn
    params = draw_params(drawn, point.params, lambda name: fixed_hash(base_seed, repeat, "drawn", name))
    return replace(point, params=params)


def overrides(definition: Definition, selection: Selection) -> list[Selected]:
    """What holds on top of `[run]`, later ones first to be heeded."""
    experiment = definition.experiment
    chosen: list[Selected] = [experiment.mininet if selection.runtime == "mininet" else experiment.sim]
    if selection.runtime == "kernel":
        chosen = [experiment.sim.model_copy(update={"tcp": {}}), experiment.kernel]
    if selection.quick:
        chosen.append(experiment.quick)
    run = {name: selection.values[name] for name in RUN_PARAMETERS if name in selection.values}
    if run:
        try:
            chosen.append(Overrides.model_validate({name: _single(name, values) for name, values in run.items()}))
        except ValidationError as error:
            raise ExperimentError("--set", pydantic_problems(error, lambda _: RUN_PARAMETERS)) from None
    return chosen


def _single(name: str, values: Sequence[Scalar]) -> Scalar:
    if len(values) != 1:
        raise ExperimentError("--set", [Problem(name, f"takes one value, got {len(values)}")])
    return values[0]


def select_points(definition: Definition, selection: Selection) -> list[Point]:
    """The points of a selection. Raises ExperimentError when a value or name does not exist or nothing is left."""
    experiment = definition.experiment
    asked = {name: values for name, values in selection.values.items() if name not in RUN_PARAMETERS}
    all_points = make_points(experiment)
    known = {name for point in all_points for name in point.params} | set(experiment.drawn)
    replaced = {
        name: values
        for name, values in asked.items()
        if name in experiment.params or name in experiment.drawn or _is_scalar_axis(definition, name)
    }
    grouped = {name for point in make_points(experiment, replaced) for name in point.params}
    in_tables = {name for name in known if name not in experiment.params and name not in replaced} & grouped
    points = make_points(experiment, replaced)
    problems: list[Problem] = []
    for name, values in asked.items():
        if name in replaced:
            continue
        if name not in in_tables:
            problems.append(Problem("--set", unknown("parameter", name, [*sorted(known), *RUN_PARAMETERS])))
            continue
        there = list(dict.fromkeys(point.params.get(name) for point in all_points))
        for value in values:
            if value not in there:
                problems.append(Problem("--set", f"{name}: {unknown('value', value, there)}"))
    if problems:
        raise ExperimentError(definition.origin, problems)
    chosen = {name: list(values) for name, values in asked.items() if name not in replaced}
    points = [point for point in points if matches(chosen, point.params)]
    for layer in overrides(definition, selection):
        only = {name: condition for name, condition in layer.only.items() if name not in asked}
        points = [point for point in points if matches(only, point.params)]
    if not points:
        raise ExperimentError(
            definition.origin, [Problem("", "nothing is left to run: no point matches the selection")]
        )
    return points


def _is_scalar_axis(definition: Definition, name: str) -> bool:
    axis = definition.experiment.sweep.get(name)
    return axis is not None and not (isinstance(axis, list) and isinstance(axis[0], dict))


def resolve_point(
    definition: Definition, point: Point, layers: Sequence[Selected] = (), used: set[str] | None = None
) -> tuple[Resolution | None, list[Problem]]:
    """Fill a point's parameters in and check everything that it names. Returns the problems instead of raising them."""
    problems: list[Problem] = []
    used = set[str]() if used is None else used
    document: dict[str, Any] = {}
    for section in TEMPLATED:
        raw = definition.document.get(section)
        if raw is not None:
            document[section] = resolve(raw, point.params, (section,), problems, used)
    for layer in layers:
        for name in ("repeats", *RUN_PARAMETERS):
            value = getattr(layer, name, None)
            if value is not None and isinstance(document.get("run"), dict):
                document["run"] = {**document["run"], name: value}
        if isinstance(layer, SimOverrides) and isinstance(document.get("tcp", {}), dict):
            document["tcp"] = document.get("tcp", {}) | layer.tcp
    if problems:
        return None, problems
    try:
        body = Body.model_validate(document, context={"folder": definition.source.file.parent})
    except ValidationError as error:
        return None, pydantic_problems(error, _keys)
    topology, problems = resolve_topology(body.topology, definition.source.file_of("topology.base").parent)
    name = definition.program_path(body.program or body.topology.program or DEFAULT_PROGRAM)
    try:
        part = part_of(name)
    except FairlaneError as error:
        return None, [*problems, Problem("program" if body.program else "topology.program", error.message)]
    control, found = _control(definition, part, body.control)
    body = body.model_copy(update={"control": control})
    problems += found
    if topology is None or problems:
        return None, problems
    try:
        fl_topology.check_settings(topology.checked, part.program.Settings)
    except fl_topology.TopologyError as error:
        return None, [Problem("topology", str(error))]
    problems = [*_name_problems(body, topology, definition.experiment.runtimes), *part.problems(body, topology)]
    return Resolution(point, body, topology, name, part, part.control(body.control)), problems


def _control(definition: Definition, part: LabPart, given: dict[str, Any]) -> tuple[Any, list[Problem]]:
    """`[control]` as the program's own model; `[control.NAME]` holds where program NAME runs."""
    names = [part.name, *(find_part(program).name for program in definition.programs())]
    own = {**{key: value for key, value in given.items() if key not in names}, **given.get(part.name, {})}
    try:
        return part.control_model.model_validate(own), []
    except ValidationError as error:
        return None, pydantic_problems(error, lambda _: list(part.control_model.model_fields), ("control",))


def _keys(loc: tuple[int | str, ...]) -> list[str]:
    """The keys that the table around `loc` may have."""
    model: type[Any] | None = Body
    for part in loc[:-1]:
        if model is None:
            break
        if isinstance(part, int) or part not in model.__pydantic_fields__:
            continue
        about = model.__pydantic_fields__[part]
        model = TcpOptions if part == "tcp" else _model_of(about.annotation)
    return list(model.__pydantic_fields__) if model else []


def _model_of(annotation: Any) -> type[Any] | None:
    if isinstance(annotation, type) and hasattr(annotation, "__pydantic_fields__"):
        return annotation
    for part in get_args(annotation):
        found = _model_of(part)
        if found:
            return found
    return None


def _name_problems(body: Body, topology: Resolved, runtimes: Sequence[str]) -> list[Problem]:
    problems: list[Problem] = []
    names: set[str] = set()
    for index, flow in enumerate(body.flows):
        path = ("flows", index)
        if flow.name in names:
            problems.append(Problem(place((*path, "name")), f"{flow.name!r} is the name of an earlier flow"))
        names.add(flow.name)
        for end in ("sender", "receiver"):
            host = getattr(flow, end)
            if host not in topology.hosts:
                problems.append(Problem(place((*path, end)), unknown("host", host, topology.hosts)))
        if flow.sender == flow.receiver:
            problems.append(Problem(place((*path, "receiver")), f"{flow.receiver!r} is the sender too"))
        if flow.variant not in variants(runtimes):
            text = unknown("variant", flow.variant, variants(runtimes))
            problems.append(Problem(place((*path, "variant")), f"{text} (in {' and '.join(runtimes)})"))
        if flow.stop_s is not None and flow.stop_s <= flow.start_s:
            problems.append(Problem(place((*path, "stop_s")), f"{flow.stop_s:g} is not after start_s {flow.start_s:g}"))
        if flow.app.kind == "greedy" and flow.start_s > body.run.warmup_s and not flow.vc:
            text = f"{flow.start_s:g} is after run.warmup_s {body.run.warmup_s:g}: greedy flows start before what is counted"
            problems.append(Problem(place((*path, "start_s")), text))
    for index, change in enumerate(body.changes):
        if change.link not in topology.links:
            problems.append(Problem(place(("changes", index, "link")), unknown("link", change.link, topology.links)))
        if change.at_s >= body.run.duration_s:
            text = f"{change.at_s:g} is not before the end, run.duration_s {body.run.duration_s:g}"
            problems.append(Problem(place(("changes", index, "at_s")), text))
    problems += change_problems(topology, body.changes)
    groups = {spec.flow.group for spec in body.flows}
    for index, name in enumerate(body.run.starts.flows):
        if name not in names | groups:
            text = unknown("flow or group", name, sorted(names | groups))
            problems.append(Problem(place(("run", "starts", "flows", index)), text))
    if not topology.bottlenecks:
        text = "no port has bottleneck = true: nothing would be measured or managed"
        problems.append(Problem("topology.ports", text))
    return problems


def _scenario(definition: Definition, resolution: Resolution, repeat: int, base_seed: int) -> Scenario:
    body, point, name = resolution.body, resolution.point, definition.experiment.name
    drawn = Drawn(body.run.draws, lambda name: fixed_hash(base_seed, repeat, "draws", name))
    flows, offset_s = _start(body, repeat, fixed_hash(base_seed, repeat, "starts"), drawn)
    params = {
        **resolution.columns(),
        "offset_s": offset_s,
        "duration_s": body.run.duration_s,
        "warmup_s": body.run.warmup_s,
    }
    return Scenario(
        experiment=name,
        point=point.name,
        params={key: params[key] for key in PARAMETERS if key in params},
        topology=drawn.topology(with_wire(resolution.topology, body.changes), resolution.topology.checked),
        flows=flows,
        duration_s=body.run.duration_s,
        warmup_s=body.run.warmup_s,
        program=resolution.program,
        tcp=body.tcp,
        control=resolution.control,
        changes=tuple(LinkChange(**change) for change in drawn.changes(body.changes)),
        vcs=body.vcs,
        repeat=repeat,
        seed=fixed_hash(base_seed, repeat),
        sample_s=body.run.sample_s,
        series=repeat < body.run.series_repeats,
        until_done=body.run.until_done,
        topology_file=resolution.topology.file,
        drawn=drawn.record,
    )


def fixed_hash(*parts: Any) -> int:
    """32 bits that depend on nothing but `parts`: the same on every machine and in every version of Python."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")


def _start(body: Body, repeat: int, seed: int, drawn: Drawn) -> tuple[tuple[Flow, ...], float]:
    """The flows with this repeat's starts, none before 0; and the offset that was used."""
    starts: Starts = body.run.starts
    offset_s = starts.offsets_s[repeat % len(starts.offsets_s)] if starts.offsets_s else 0.0
    moved = _moved(body.flows, starts)
    flows = [
        replace(flow, start_s=flow.start_s + (offset_s if index in moved else 0.0) + _later_s(flow, body.run, drawn))
        for index, flow in enumerate(spec.flow for spec in body.flows)
        if flow.connections
    ]
    if starts.jitter_s:
        chance = random.Random(seed)
        flows = [
            replace(each, start_s=each.start_s + round(chance.random() * starts.jitter_s, 6))
            for flow in flows
            for each in _apart(flow)
        ]
    early = min([0.0, *(flow.start_s for flow in flows)])
    shifted = [
        replace(
            flow, start_s=round(flow.start_s - early, 9), stop_s=None if flow.stop_s is None else flow.stop_s - early
        )
        for flow in flows
    ]
    return tuple(shifted), offset_s


def _later_s(flow: Flow, run: RunSpec, drawn: Drawn) -> float:
    """By how much a flow's start is drawn later: a greedy one's not beyond the warm-up."""
    room_s = [math.inf] if flow.stop_s is None else [(flow.stop_s - flow.start_s) / 2]
    if flow.app.kind == "greedy" and flow.start_s <= run.warmup_s:
        room_s.append(run.warmup_s - flow.start_s)
    return min(drawn.start_s(flow.name), *room_s)


def _moved(flows: Sequence[FlowSpec], starts: Starts) -> set[int]:
    if not starts.flows:
        return set(range(1, len(flows)))
    return {index for index, flow in enumerate(flows) if {flow.name, flow.group} & set(starts.flows)}


def _apart(flow: Flow) -> list[Flow]:
    """One flow a connection, so that each may start when it likes; their names are those that a runner would give."""
    if flow.connections == 1:
        return [flow]
    return [
        replace(flow, name=f"{flow.name}-{number}", connections=1) for number in range(1, flow.connections + 1)
    ]  # fmt: skip
