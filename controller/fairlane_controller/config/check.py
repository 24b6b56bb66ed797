# SPDX-License-Identifier: Apache-2.0
"""What a configuration must fulfil as a whole, and on the topology that runs: every refusal says the key, the value, what is allowed."""

from __future__ import annotations

from collections.abc import Iterator

from fairlane_controller.config.model import FairlaneConfig, Place, PortConfig
from fairlane_controller.config.read import Loaded, MayLoad, any_program
from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.registry import folder_of, folder_program, is_folder, load_program, loaded_programs
from fairlane_controller.state.run_state import RunState


def check(loaded: Loaded, run: RunState | None) -> None:
    """BAD_FILE with the first problems, each with its place; without a topology only what the file alone can show."""
    problems = problems_of(loaded.config, run, loaded.may_load)
    if problems:
        raise loaded.source.error(problems)


def problems_of(config: FairlaneConfig, run: RunState | None, may_load: MayLoad = any_program) -> list[str]:
    """Everything that is wrong with it, each `policies[0].port: what, and what is allowed`; of programs that may be loaded."""
    return [
        *_program(config, run, may_load),
        *_topology(config, run),
        *_ports(config, run),
        *_program_problems(config, run, may_load),
    ]


def _program(config: FairlaneConfig, run: RunState | None, may_load: MayLoad) -> Iterator[str]:
    program = run.program if run else config.program
    if run is not None and config.program and _resolved(config.program) != _resolved(run.program):
        yield f"program: the topology {run.name!r} runs {run.program}, not {config.program}: start it with the program {config.program}"
    if program is None or not may_load(program):
        return
    mine = load_program(program)
    own = mine.Settings.model_fields.keys()
    for one in (each for each in loaded_programs() if each is not mine):
        keys = [key for key in one.Sections.model_fields if key in config.model_fields_set and getattr(config, key)]
        settings = one.Settings.model_fields.keys() - PortConfig.model_fields.keys() - own
        for index, port in enumerate(config.ports or ()):
            keys += [f"ports[{index}].{key}" for key in sorted(settings & port.model_fields_set)]
        for key in keys:
            yield f"{key}: is of the program {one.name}, and this is for {program}: leave it out"


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
            yield f"{at}: {port.switch}:{port.port} is ports[{seen[port.place]}] too; a port may occur once"
        seen.setdefault(port.place, index)
        yield from _unknown(run, at, port.switch, port.port)


def _resolved(program: str) -> str:
    return str(folder_of(program)) if is_folder(program) else program


def _program_problems(config: FairlaneConfig, run: RunState | None, may_load: MayLoad) -> Iterator[str]:
    """The program's own checks."""
    named = run.program if run is not None else config.program or ""
    if run is not None:
        programs = [load_program(named)] if may_load(named) else []
    else:
        programs = [*(folder_program(named) if may_load(named) else ()), *loaded_programs()]
    for program in programs:
        yield from program.check(config.part_of(program, run), run)


def _unknown(run: RunState | None, at: str, switch: str, port: int | None, key: str = "port") -> list[str]:
    return run.unknown_place(at, switch, port, key) if run is not None else []


def refuse(loaded: Loaded, problem: FairlaneError) -> FairlaneError:
    """A refusal that names the file, for problems that come from below."""
    return FairlaneError(problem.code, f"{loaded.source.name}: {problem.message}")
