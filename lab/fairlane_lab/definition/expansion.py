# SPDX-License-Identifier: Apache-2.0
"""From a definition to scenarios: the keys that parameters set (`[sets]`), points and their repeats, in a fixed order, each with its own seed and start.

A scenario's seed is a hash of (base seed, repeat): whatever is compared meets the same chance in the same repeat and may be
compared in pairs, and one configuration gives the same runs in whatever experiment it stands.
"""

from __future__ import annotations

import copy
import fnmatch
import hashlib
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from fairlane_controller.documents import is_array, is_table
from fairlane_controller.errors import FairlaneError
from fairlane_controller.state.run_state import DEFAULT_PROGRAM
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import LinkChange
from pydantic import ValidationError

from fairlane_lab.definition.judging import drawn_repeats
from fairlane_lab.definition.names import PARAMETERS, part_of, variants
from fairlane_lab.definition.points import COLUMNS_ONLY, Drawn, Point, Setting, draw_params, make_points
from fairlane_lab.definition.schema import SECTIONS, Body, Overrides, RunSpec, Selected
from fairlane_lab.definition.strict import Scalar, matches
from fairlane_lab.definition.topology import Resolved, change_problems, resolve_topology, topology_path, with_wire
from fairlane_lab.problems import ExperimentError, Problem, place, pydantic_problems, unknown
from fairlane_lab.programs import find_part
from fairlane_lab.programs.part import LabPart
from fairlane_lab.run_result import AFTER_SPIKE_S
from fairlane_lab.scenario import UDP_KINDS, Control, Flow, Scenario, TcpOptions, names_of, with_given

if TYPE_CHECKING:
    from fairlane_lab.definition.loading import Definition


NAME_LENGTH = 32
"""Characters of a flow's name, without the numbers of its connections."""


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
    scenarios: list[Scenario] = []
    for point, resolution in resolve(definition, selection):
        for repeat in range(selection.repeats or resolution.body.run.repeats):
            if definition.experiment.drawn and repeat:
                resolution = _resolve(definition, point, selection, repeat)
            scenarios.append(scenario_of(definition, resolution, repeat, selection.seed))
    return scenarios


def resolve(definition: Definition, selection: Selection) -> Iterator[tuple[Point, Resolution]]:
    """The points of a selection in the file's order, and each as its first run has it. Raises as `expand`."""
    runtimes = definition.experiment.runtimes
    if not definition.experiment.runs_in(selection.runtime):
        problem = Problem("runtimes", f"does not run in {selection.runtime!r}; it runs in: {', '.join(runtimes)}")
        raise ExperimentError(definition.origin, [problem])
    for point in select_points(definition, selection):
        yield point, _resolve(definition, point, selection)


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
    """What holds on top of `[run]`, later ones first to be heeded; what the selection sets stays."""
    experiment = definition.experiment
    chosen: list[Selected] = [experiment.mininet if selection.runtime == "mininet" else experiment.sim]
    if selection.runtime == "kernel":
        chosen = [experiment.sim.model_copy(update={"tcp": {}}), experiment.kernel]
    if selection.quick:
        chosen.append(experiment.quick)
    asked = selection.values
    only = [{name: where for name, where in layer.only.items() if name not in asked} for layer in chosen]
    return [
        layer.model_copy(update={"only": where, **{name: None for name in asked if name in Overrides.model_fields}})
        for layer, where in zip(chosen, only, strict=True)
    ]


def select_points(definition: Definition, selection: Selection) -> list[Point]:
    """The points of a selection. Raises ExperimentError when a value or name does not exist or nothing is left."""
    experiment, asked = definition.experiment, selection.values
    scalar_axes = {name for name, axis in experiment.sweep.items() if not isinstance(axis[0], dict)}
    replaceable = {*experiment.params, *experiment.drawn, *scalar_axes, "duration_s", "warmup_s"}
    points = make_points(experiment, {name: values for name, values in asked.items() if name in replaceable})
    chosen = {name: list(values) for name, values in asked.items() if name not in replaceable}
    problems: list[Problem] = []
    for name, values in chosen.items():
        there = list(dict.fromkeys(point.params[name] for point in points if name in point.params))
        if not there:
            known = {key for point in points for key in point.params} | replaceable
            problems.append(Problem("--set", unknown("parameter", name, sorted(known))))
        wrong = [value for value in values if there and value not in there]
        problems += [Problem("--set", f"{name}: {unknown('value', value, there)}") for value in wrong]
    if problems:
        raise ExperimentError(definition.origin, problems)
    known = {name for point in points for name in point.params}
    asked_of_points = {name: list(values) for name, values in asked.items() if name in known}
    conditions = [asked_of_points, *(layer.only for layer in overrides(definition, selection))]
    points = [point for point in points if all(matches(where, point.params) for where in conditions)]
    if not points:
        problem = Problem("", "nothing is left to run: no point matches the selection")
        raise ExperimentError(definition.origin, [problem])
    return points


def resolve_point(
    definition: Definition, point: Point, layers: Sequence[Selected] = ()
) -> tuple[Resolution | None, list[Problem]]:
    """Fill a point's parameters in and check everything that it names. Returns the problems instead of raising them."""
    source = definition.source
    document, problems = fill_in(source.document, point.params, definition.experiment.sets)
    for layer in layers:
        given = layer.model_dump(exclude_none=True, exclude={"only", "parallel", "tcp"})
        document["run"] = {**document["run"], **given}
        document["tcp"] = {**document.get("tcp", {}), **getattr(layer, "tcp", {})}
    try:
        body = Body.model_validate(document, context=source).with_totals()
    except ValidationError as error:
        return None, [*problems, *pydantic_problems(error, Body)]
    base = body.topology.base
    topology, found = resolve_topology(body, topology_path(base, source.find(base)))
    problems += found
    name = definition.program_path(body.program or DEFAULT_PROGRAM)
    try:
        part = part_of(name)
        names = [part.name, *(find_part(program).name for program in definition.programs)]
    except FairlaneError as error:
        return None, [*problems, Problem("program", error.message)]
    given = {key: value for key, value in body.control.items() if key not in names}
    own = body.control.get(part.name, {})  # `[control.NAME]` holds where program NAME runs
    try:
        control = part.control_model.model_validate({**given, **own} if is_table(own) else own)
    except ValidationError as error:
        found = pydantic_problems(error, part.control_model, ("control",) if is_table(own) else ("control", part.name))
        return None, [*problems, *(_unset(problem, point, definition) for problem in found)]
    if topology is None or problems:
        return None, problems
    body = body.model_copy(update={"control": control})
    try:
        topology = topology.with_scheduler(part.program)
        fl_topology.check_settings(topology.checked, part.program.Settings)
    except fl_topology.TopologyError as error:
        return None, [Problem("", str(error))]
    problems = [*_name_problems(body, topology, definition.experiment.runtimes), *part.problems(body, topology)]
    return Resolution(point, body, topology, name, part, part.control(control)), problems


def _unset(problem: Problem, point: Point, definition: Definition) -> Problem:
    """Of a parameter that is no key of `[control]`: that `[sets]` has to say what it sets."""
    name = problem.path.removeprefix("control.")
    if name not in point.params or name in definition.experiment.sets or not problem.message.startswith("there is no"):
        return problem
    text = f"is missing: {name} is no key of control, tcp or run; say which keys it sets, such as flows.NAME.variant, or []"
    return Problem(place(("sets", name)), text)


def _name_problems(body: Body, topology: Resolved, runtimes: Sequence[str]) -> Iterator[Problem]:
    """What is wrong with names and times of flows and changes."""
    senders = variants(runtimes)
    seen: set[str] = set()
    for index, flow in enumerate(body.flows):
        wrong: list[tuple[str, str]] = []
        if len(flow.name) > NAME_LENGTH:
            wrong.append(("name", f"{flow.name!r} has {len(flow.name)} characters; allowed: up to {NAME_LENGTH}"))
        own = {flow.name, *names_of(flow)}
        if twice := seen & own:
            wrong.append(("name", f"{min(twice)!r} is the name of an earlier flow"))
        seen |= own
        hosts = (("sender", flow.sender), ("receiver", flow.receiver))
        there = topology.checked.hosts
        wrong += [(end, unknown("host", host, there)) for end, host in hosts if host not in there]
        if flow.sender == flow.receiver:
            wrong.append(("receiver", f"{flow.receiver!r} is the sender too"))
        elif problem := _room_problem(body, topology, flow):
            wrong.append(problem)
        if flow.variant not in senders:
            where = f"in {' and '.join(runtimes)}; FAIRLANE_SENDERS names folders of yours"
            wrong.append(("variant", f"{unknown('variant', flow.variant, senders)} ({where})"))
        if flow.stop_s is not None and flow.stop_s <= flow.start_s:
            wrong.append(("stop_s", f"{flow.stop_s:g} is not after start_s {flow.start_s:g}"))
        if flow.start_s >= body.run.duration_s:
            wrong.append(("start_s", f"{flow.start_s:g} is not before the end, run.duration_s {body.run.duration_s:g}"))
        if flow.app.kind == "greedy" and flow.start_s > body.run.warmup_s and not flow.vc:
            text = f"{flow.start_s:g} is after run.warmup_s {body.run.warmup_s:g}: greedy flows start before what is counted"
            wrong.append(("start_s", text))
        yield from (Problem(f"flows[{index}].{key}", message) for key, message in wrong)
    for index, change in enumerate(body.changes):
        if change.link not in topology.links:
            yield Problem(f"changes[{index}].link", unknown("link", change.link, topology.links))
        if change.at_s >= body.run.duration_s:
            text = f"{change.at_s:g} is not before the end, run.duration_s {body.run.duration_s:g}"
            yield Problem(f"changes[{index}].at_s", text)
    yield from _spike_problems(body)
    yield from change_problems(topology, body.changes)
    known = {name for flow in body.flows for name in (flow.name, flow.group)}
    for index, name in enumerate(body.run.starts.flows):
        if name not in known:
            yield Problem(f"run.starts.flows[{index}]", unknown("flow or group", name, sorted(known)))
    if not any(spec.bottleneck for ports in topology.checked.ports.values() for spec in ports.values()):
        yield Problem("topology.ports", "no port has bottleneck = true: nothing would be measured or managed")


def _spike_problems(body: Body) -> Iterator[Problem]:
    """Whether the delay spike that greedy flows are measured by (`Scenario.spike_s`) lies within what is measured."""
    spikes = [(each.at_s, index) for index, each in enumerate(body.changes) if each.spike_s and each.every_s is None]
    if not spikes or all(flow.app.kind != "greedy" for flow in body.flows):
        return
    at_s, index = min(spikes)
    end_s, last_s = at_s + (body.changes[index].spike_s or 0), body.run.duration_s - AFTER_SPIKE_S
    if at_s < body.run.warmup_s:
        text = f"{at_s:g} is before run.warmup_s {body.run.warmup_s:g}: a delay spike is measured from its start on"
        yield Problem(f"changes[{index}].at_s", text)
    elif end_s > last_s:
        text = f"it ends at {end_s:g}; allowed: up to {last_s:g}, {AFTER_SPIKE_S:g} before run.duration_s, so that the recovery is seen"
        yield Problem(f"changes[{index}].spike_s", text)


def scenario_of(definition: Definition, resolution: Resolution, repeat: int = 0, base_seed: int = 1) -> Scenario:
    """One run of a point."""
    body, point = resolution.body, resolution.point
    drawn = Drawn(body.run.draws, lambda name: fixed_hash(base_seed, repeat, "draws", name))
    flows, offset_s = _start(body, repeat, fixed_hash(base_seed, repeat, "starts"), drawn)
    duration_s, warmup_s = body.run.duration_s, body.run.warmup_s
    params = {**resolution.columns(), "offset_s": offset_s, "duration_s": duration_s, "warmup_s": warmup_s}
    return Scenario(
        experiment=definition.experiment.name,
        point=point.name,
        params={key: params[key] for key in PARAMETERS if key in params},
        topology=drawn.topology(with_wire(resolution.topology, body.changes), resolution.topology.checked),
        flows=flows,
        program=resolution.program,
        tcp=body.tcp,
        control=resolution.control,
        changes=tuple(LinkChange(**change) for change in drawn.changes(body.changes)),
        vcs=body.vcs,
        repeat=repeat,
        seed=fixed_hash(base_seed, repeat),
        sample_s=body.run.sample_s,
        series=repeat < body.run.series_repeats or repeat in drawn_repeats(definition.experiment.plots),
        until_done=body.run.until_done,
        topology_file=resolution.topology.file,
        drawn=drawn.record,
        duration_s=duration_s,
        warmup_s=warmup_s,
    )


def fixed_hash(*parts: Any) -> int:
    """32 bits that depend on nothing but `parts`: the same on every machine and in every version of Python."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")


def _start(body: Body, repeat: int, seed: int, drawn: Drawn) -> tuple[tuple[Flow, ...], float]:
    """The flows with this repeat's starts, none before 0; and the offset that was used."""
    starts = body.run.starts
    offset_s = starts.offsets_s[repeat % len(starts.offsets_s)] if starts.offsets_s else 0.0
    begin: list[tuple[Flow, float]] = []
    for index, flow in enumerate(body.flows):
        moved = {flow.name, flow.group} & set(starts.flows) if starts.flows else index
        if flow.connections:
            later_s = (offset_s if moved else 0.0) + _later_s(flow, body.run, drawn)
            begin.append((flow, flow.start_s + later_s))
    if starts.jitter_s:
        chance = random.Random(seed)  # one flow a connection, so that each may start when it likes
        begin = [
            (replace(flow, name=name, connections=1), start_s + round(chance.random() * starts.jitter_s, 6))
            for flow, start_s in begin
            for name in names_of(flow)
        ]
    early = min([0.0, *(start_s for _, start_s in begin)])
    shifted = [
        replace(
            flow, start_s=round(start_s - early, 9), stop_s=None if flow.stop_s is None else flow.stop_s - early
        )
        for flow, start_s in begin
    ]  # fmt: skip
    return tuple(shifted), offset_s


def _later_s(flow: Flow, run: RunSpec, drawn: Drawn) -> float:
    """By how much a flow's start is drawn later: a greedy one's not beyond the warm-up."""
    room_s = [math.inf] if flow.stop_s is None else [(flow.stop_s - flow.start_s) / 2]
    if flow.app.kind == "greedy" and flow.start_s <= run.warmup_s:
        room_s.append(run.warmup_s - flow.start_s)
    return min(drawn.start_s(flow.name), *room_s)


def _room_problem(body: Body, topology: Resolved, flow: Flow) -> tuple[str, str] | None:
    """Key and text where a full packet over IPv6 is longer than the sender's link takes."""
    tcp, is_udp = with_given(body.tcp, flow), flow.app.kind in UDP_KINDS
    mtu = next((link.mtu for link in topology.checked.links if flow.sender in (link.a.node, link.b.node)), math.inf)
    given, most = (flow.app.payload_bytes, mtu - 48) if is_udp else (tcp.mss_bytes, mtu - 60)
    if not tcp.ipv6 or given <= most:
        return None
    key = "app.payload_bytes" if is_udp else "tcp.mss_bytes"
    return key, f"{given} is too much: a packet of {mtu} bytes over IPv6 has room for {most}"


_TCP = frozenset(field.name for field in fields(TcpOptions))


def fill_in(
    document: Mapping[str, Any], params: Mapping[str, Any], sets: Mapping[str, Setting]
) -> tuple[dict[str, Any], list[Problem]]:
    """The sections of an experiment file that are run, with a point's parameters; and what could not be set."""
    filled = {name: copy.deepcopy(document[name]) for name in SECTIONS if name in document}
    problems: list[Problem] = []
    for name, given in params.items():
        if name in COLUMNS_ONLY and name not in sets:
            continue
        try:
            for key, factor in sets.get(name, {_own_key(name): 1}).items():
                if "." not in key and key != "program":
                    raise ValueError(f"{key} is a section; say which key of it")
                _set(filled, key.split("."), given if factor == 1 else _product(given, factor))
        except ValueError as error:
            problems.append(Problem(place(("sets", name)), str(error)))
    return filled, problems


def _own_key(name: str) -> str:
    """What a parameter sets of which `[sets]` says nothing: the key of its name."""
    if name == "program":
        return name
    section = "tcp" if name in _TCP else "run" if name in RunSpec.model_fields else "control"
    return f"{section}.{name}"


def _product(given: Any, factor: float) -> float | int:
    """A whole one is an integer. Raises ValueError for what is no number."""
    if isinstance(given, bool | str):
        raise ValueError(f"got {given!r}, which has no product with {factor:g}; allowed: a number")
    product = round(given * factor, 9)
    if not math.isfinite(product):
        raise ValueError(f"got {given!r}, which times {factor:g} is no number")
    return int(product) if product == int(product) else product


def _set(here: Any, keys: Sequence[str], value: Any) -> None:
    """Set a key below a table or an array, whose entries have names or numbers (`*`: all of them). Raises ValueError where there is no such entry."""
    key, *others = keys
    if is_array(here):
        entries: dict[str, Any] = dict(_entries(here))
        chosen = fnmatch.filter(entries, key)
        if not chosen or not others:
            raise ValueError(unknown("entry", key, entries) if not chosen else f"{key}: say which key of the entry")
        for name in chosen:
            _set(entries[name], others, value)
    elif not is_table(here):
        raise ValueError(f"{key} is below {here!r}, which is no table")
    elif others:
        _set(here.setdefault(key, {}), others, value)
    else:
        here[key] = value


def _entries(array: list[Any]) -> Iterator[tuple[str, Any]]:
    """The entries of an array by their `name`, else by their number from 0."""
    for number, entry in enumerate(array):
        yield str(entry["name"] if is_table(entry) and "name" in entry else number), entry
