# SPDX-License-Identifier: Apache-2.0
"""What a configuration must fulfil as a whole, and on the topology that runs: every refusal says the key, the value, what is allowed."""

from __future__ import annotations

from collections.abc import Iterator

from fairlane_controller.config.model import FairlaneConfig, Place
from fairlane_controller.config.read import Loaded
from fairlane_controller.program.registry import folder_of, is_folder, load_program, loaded_programs
from fairlane_controller.state.run_state import RunState


def check(loaded: Loaded, run: RunState | None) -> None:
    """Check a configuration as a whole.

    Args:
        loaded: what was read.
        run: the topology that it is for; None: check only what the file alone can show.

    Raises:
        FairlaneError: BAD_FILE with the first problems, each with its place.
    """
    problems = problems_of(loaded.config, run)
    if problems:
        raise loaded.source.error(problems)


def problems_of(config: FairlaneConfig, run: RunState | None) -> list[str]:
    """Everything that is wrong with it, each `policies[0].port: what, and what is allowed`."""
    name = run.program if run is not None else config.program
    programs = loaded_programs() if name is None else [load_program(name)]
    problems = [*_program(config, run), *_topology(config, run), *_ports(config, run)]
    return problems + [problem for one in programs for problem in one.check(config.part_of(one, run), run)]


def _program(config: FairlaneConfig, run: RunState | None) -> Iterator[str]:
    if run is not None and config.program and _resolved(config.program) != _resolved(run.program):
        yield f"program: the topology {run.name!r} runs {run.program}, not {config.program}: start it with the program {config.program}"


def _resolved(program: str) -> str:
    return str(folder_of(program)) if is_folder(program) else program


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
