# SPDX-License-Identifier: Apache-2.0
"""What a configuration must fulfil as a whole, and on the topology that runs: every refusal says the key, the value, what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fairlane_controller.config.model import FairlaneConfig, Place, PortConfig
from fairlane_controller.config.read import Loaded
from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.names import program_names
from fairlane_controller.program.registry import load_program
from fairlane_controller.programs.gfr import config as gfr
from fairlane_controller.programs.gfr import names as gfr_program
from fairlane_controller.programs.gfr.check import problems_of as gfr_problems
from fairlane_controller.programs.gfr.store import GfrStore
from fairlane_controller.programs.qthresh.wanted import capacity_packets, limit_of_port, managed_places
from fairlane_controller.state.run_state import RunState

QTHRESH = "qthresh"
_LIMIT_KEYS = ("limit_packets", "limit_bytes", "report_period")
_GFR_KEYS = sorted(set(gfr.PortConfig.model_fields) - {"switch", "port", "mtu_bytes", "capacity"})


def check(loaded: Loaded, run: RunState | None) -> None:
    """BAD_FILE with the first problems, each with its place; without a topology only what the file alone can show."""
    problems = problems_of(loaded.config, run)
    if problems:
        raise loaded.source.error(problems)


def problems_of(config: FairlaneConfig, run: RunState | None) -> list[str]:
    """Everything that is wrong with it, each `policies[0].port: what, and what is allowed`."""
    return [
        *_program(config, run),
        *_topology(config, run),
        *_ports(config, run),
        *_classes(config, run),
        *_policies(config, run),
        *_of_program(config, run),
        *_gfr(config, run),
    ]


def _program(config: FairlaneConfig, run: RunState | None) -> Iterator[str]:
    program = run.program if run else config.program
    if run is not None and config.program not in (None, run.program):
        yield f"program: the topology {run.name!r} runs {run.program}, not {config.program}: start it with the program {config.program}"
    if program is None:
        return
    ports, programs = list(enumerate(config.ports or ())), [load_program(name) for name in program_names()]
    sections: list[tuple[str, bool, str]] = [
        ("policies", bool(config.policies), QTHRESH),
        ("classes", bool(config.classes), QTHRESH),
        ("vcs", bool(config.vcs), gfr_program.PROGRAM),
        *((key, bool(getattr(config, key)), one.name) for one in programs for key in one.Sections.model_fields),
        *(
            (f"ports[{i}].{key}", key in port.model_fields_set, one.name)
            for one in programs
            for key in one.Settings.model_fields
            for i, port in ports
        ),
        *((f"ports[{i}].capacity", port.is_gfr, gfr_program.PROGRAM) for i, port in ports),
        *((f"ports[{i}].managed", port.managed is not None, QTHRESH) for i, port in ports),
    ]
    for key, said, needed in sections:
        if said and program != needed:
            yield f"{key}: is of the program {needed}, and this is for {program}: leave it out"


def _topology(config: FairlaneConfig, run: RunState | None) -> Iterator[str]:
    names = [switch.name for switch in config.topology.switches]
    for index, switch in enumerate(config.topology.switches):
        at = f"topology.switches[{index}]"
        if names.index(switch.name) != index:
            yield f"{at}.name: {switch.name!r} occurs twice; a switch may occur once"
        tls = switch.tls
        if tls is not None and (tls.cert is None) != (tls.key is None):
            yield f"{at}.tls: cert and key belong together: give both of them, or none"
        if run is not None:
            yield from run.unknown_switch(f"{at}.name", switch.name)


def _ports(config: FairlaneConfig, run: RunState | None) -> Iterator[str]:
    seen: dict[Place, int] = {}
    for index, port in enumerate(config.ports or ()):
        at = f"ports[{index}]"
        if port.place in seen:
            yield f"{at}: switch {port.switch} port {port.port} is ports[{seen[port.place]}] too; a port may occur once"
        seen.setdefault(port.place, index)
        if not port.is_gfr:
            for key in _GFR_KEYS:
                if key in port.model_fields_set:
                    yield f"{at}.{key}: is of GFR's ports, which have a capacity (C_GFR): give capacity, or leave {key} out"
            yield from _unknown(run, at, port.switch, port.port)
        yield from _limit(at, port, run)


def _limit(at: str, port: PortConfig, run: RunState | None) -> Iterator[str]:
    """The program must refuse before the queue behind it does, or its counters leak."""
    for key in _LIMIT_KEYS:
        if key in port.model_fields_set and not port.managed:
            yield f"{at}.{key}: the port is not managed: set managed to true, or leave {key} out"
    if not port.managed:
        return
    queue, limit = capacity_packets(port, run), limit_of_port(port, run)
    if limit is None:
        yield f"{at}.managed: nothing says how many packets the queue holds: give queue_packets or limit_packets"
    elif 0 < queue < limit.max_packets:
        yield f"{at}.limit_packets: {limit.max_packets} is more than the queue holds ({queue} packets): must be at most {queue}"


def _classes(config: FairlaneConfig, run: RunState | None) -> Iterator[str]:
    seen: dict[tuple[object, ...], int] = {}
    for index, rule in enumerate(config.classes or ()):
        at = f"classes[{index}]"
        match = (rule.ingress_port, rule.dscp, rule.pcp)
        for switch in {rule.switch, ""} if rule.switch else {"", *(one.switch for one in config.classes or ())}:
            other = seen.get((switch, *match))
            if other is not None:
                yield f"{at}: matches the same packets as classes[{other}]: one of them must go, or say more"
                break
        seen.setdefault((rule.switch, *match), index)
        if rule.switch:
            yield from _unknown(run, at, rule.switch, rule.ingress_port, "ingress_port")


def _policies(config: FairlaneConfig, run: RunState | None) -> Iterator[str]:
    seen: dict[tuple[str, int, int], int] = {}
    managed = managed_places(config, run) if run is not None else None
    for index, policy in enumerate(config.policies or ()):
        at = f"policies[{index}]"
        if policy.key in seen:
            yield (
                f"{at}: switch {policy.switch} port {policy.port} class {policy.traffic_class} is "
                f"policies[{seen[policy.key]}] too; it may occur once"
            )
        seen.setdefault(policy.key, index)
        unknown = list(_unknown(run, at, policy.switch, policy.port))
        yield from unknown
        if run is None or managed is None or unknown:
            continue
        limit = managed.get((policy.switch, policy.port))
        if limit is None:
            listed = ", ".join(f"{switch} port {port}" for switch, port in sorted(managed)) or "none"
            yield f"{at}.port: {policy.switch} port {policy.port} is not managed (managed: {listed}): add it to ports with managed = true"
            continue
        for key in ("threshold", "min_packets", "max_packets"):
            value = getattr(policy, key)
            if value is not None and value > limit.max_packets:
                yield f"{at}.{key}: {value} is more than the port lets wait ({limit.max_packets} packets): must be at most {limit.max_packets}"


def _of_program(config: FairlaneConfig, run: RunState | None) -> Iterator[str]:
    """The program's own checks."""
    for name in [run.program] if run is not None else program_names():
        program = load_program(name)
        yield from program.check(config.part_of(program), run)


def _gfr(config: FairlaneConfig, run: RunState | None) -> Iterator[str]:
    """GFR's own checks, with the numbers that the ports have in the file."""
    if run is not None and run.program != gfr_program.PROGRAM:
        return
    part = config.gfr_part(GfrStore(run.folder).state.config if run is not None else None)
    if part is None:
        return
    numbers = [index for index, port in enumerate(config.ports or ()) if port.is_gfr]
    for problem in gfr_problems(part, run):
        yield re.sub(
            r"\bports\[(\d+)\]", lambda found: f"ports[{numbers[int(found[1])]}]" if numbers else found[0], problem
        )


def _unknown(run: RunState | None, at: str, switch: str, port: int | None, key: str = "port") -> list[str]:
    return run.unknown_place(at, switch, port, key) if run is not None else []


def refuse(loaded: Loaded, problem: FairlaneError) -> FairlaneError:
    """A refusal that names the file, for problems that come from below."""
    return FairlaneError(problem.code, f"{loaded.source.name}: {problem.message}")
