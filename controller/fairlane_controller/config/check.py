# SPDX-License-Identifier: Apache-2.0
"""What a configuration must fulfil as a whole, and on the topology that runs: every refusal says the key, the value, what is allowed."""

from __future__ import annotations

from collections.abc import Iterator

from fairlane_controller.config.model import FairlaneConfig, Place, PortConfig
from fairlane_controller.config.read import Loaded, MayLoad, any_program
from fairlane_controller.program.contract import Program
from fairlane_controller.program.registry import folder_of, folder_program, is_folder, load_program, loaded_programs
from fairlane_controller.state.run_state import RunState


def check(loaded: Loaded, run: RunState | None) -> None:
    """Check a configuration as a whole.

    Args:
        loaded: what was read.
        run: the topology that it is for; None: check only what the file alone can show.

    Raises:
        FairlaneError: BAD_FILE with the first problems, each with its place.
    """
    problems = problems_of(loaded.config, run, loaded.may_load)
    if problems:
        raise loaded.source.error(problems)


def problems_of(config: FairlaneConfig, run: RunState | None, may_load: MayLoad = any_program) -> list[str]:
    """Everything that is wrong with it, each `policies[0].port: what, and what is allowed`; of programs that may be loaded."""
    name = run.program if run is not None else config.program or ""
    program = load_program(name) if name and may_load(name) else None
    problems = [*_program(config, run), *_topology(config, run), *_ports(config, run)]
    if program is not None:
        problems += _of_other_programs(config, program)
    checked = [program] if run is not None else [*(folder_program(name) if program else ()), *loaded_programs()]
    for one in filter(None, checked):
        problems += one.check(config.part_of(one, run), run)
    return problems


def _program(config: FairlaneConfig, run: RunState | None) -> Iterator[str]:
    if run is not None and config.program and _resolved(config.program) != _resolved(run.program):
        yield f"program: the topology {run.name!r} runs {run.program}, not {config.program}: start it with the program {config.program}"


def _resolved(program: str) -> str:
    return str(folder_of(program)) if is_folder(program) else program


def _of_other_programs(config: FairlaneConfig, program: Program) -> Iterator[str]:
    own = program.Settings.model_fields.keys() | PortConfig.model_fields.keys()
    for one in (each for each in loaded_programs() if each is not program):
        keys = [key for key in one.Sections.model_fields if key in config.model_fields_set and getattr(config, key)]
        settings = one.Settings.model_fields.keys() - own
        for index, port in enumerate(config.ports or ()):
            keys += [f"ports[{index}].{key}" for key in sorted(settings & port.model_fields_set)]
        for key in keys:
            yield f"{key}: is of the program {one.name}, and this is for {program.name}: leave it out"


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
        first = seen.setdefault(port.place, index)
        if first != index:
            yield f"ports[{index}]: {port.switch}:{port.port} is ports[{first}] too; a port may occur once"
        if run is not None:
            yield from run.unknown_place(f"ports[{index}]", port.switch, port.port)
