# SPDX-License-Identifier: Apache-2.0
"""Reading and checking a configuration file: every error says line, column, key, what is wrong, the nearest valid key and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairlane_controller.config.model import FairlaneConfig, SwitchConfig, config_model
from fairlane_controller.documents import DocumentError, is_array, is_table, parse_toml
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_file
from fairlane_controller.problems import allowed_keys, bad_config, describe_one, problem_path
from fairlane_controller.program.contract import Place
from fairlane_controller.program.registry import folder_of, is_folder, load_program, loaded_programs
from fairlane_controller.state import files
from fairlane_controller.state.run_state import (
    DEFAULT_PROGRAM,
    RunState,
    SwitchState,
    find_folder,
    read_run_state,
    state_root,
    write_topology,
)
from fairlane_controller.state.store import STATE_FILE

Position = tuple[int, int]
"""Line and column, from 1."""
MAX_LINES = 200
"""Lines of a statement that are tried as its end; what follows a longer one has no position."""
_KEY_OF_PROBLEM = re.compile(r"^[A-Za-z0-9_.\[\]-]+(?=: )")
_OWN_KEY = re.compile(r"^(?P<where>\S+): (?P<key>[a-z_]+): ")


@dataclass(frozen=True)
class Source:
    """Where a configuration comes from: its name and, of a file, its text."""

    name: str
    text: str = ""

    def error(self, problems: Iterable[str]) -> FairlaneError:
        """BAD_FILE with the first problems, each `key: what is wrong and what is allowed`, with line and column."""
        keys = positions(self.text)

        def placed(problem: str) -> str:
            key = _KEY_OF_PROBLEM.match(problem)
            at = nearest(keys, key.group()) if key else None
            return problem if at is None else f"line {at[0]}, column {at[1]}: {problem}"

        return bad_config(self.name, [placed(problem) for problem in dict.fromkeys(problems)])


@dataclass(frozen=True)
class Loaded:
    """A configuration and where it comes from."""

    config: FairlaneConfig
    source: Source
    path: Path | None = None
    is_empty: bool = False
    """Nothing stands in the file, as where `fairlane config show > FILE` failed."""


def read_file(path: Path, state: str | None = None, *, run_program: bool = True) -> Loaded:
    """Read and validate a file.

    The keys are those of the core and of one program: the one that the file names, or else that of the topology. A program in a
    folder is named by a path relative to the file; loading it runs its `program.py`.

    Args:
        path: the file.
        state: the running topology, as `--state` names it; None: the one that the file names, or the only one.
        run_program: load any program; without it refuse one in a folder, unless the topology runs it.

    Raises:
        FairlaneError: BAD_FILE.
    """
    source = Source(str(path), files.read_text(path))
    data = _data(source)
    is_empty, running, named = not data, _program_that_runs(data, state), data.get("program")
    if isinstance(named, str) and is_folder(named):
        data["program"] = named if named.startswith("~") else str(path.absolute().parent / named)
        runs = is_folder(running) and folder_of(data["program"]) == folder_of(running)
        if not run_program and not runs:
            raise source.error(
                [f"program: {named} has a program.py, which is run for a check: --run-program allows it"]
            )
    elif named is None and running:
        data["program"] = running
    return Loaded(parse(data, source), source, path.absolute(), is_empty)


def folder_for(name: str, state: str | None) -> Path:
    """The run-state folder that is meant: that of `--state`, else that of a file's topology, else the only one.

    The name in a file never leads out of the folder of the run states: whoever wrote the file could have put a program there.
    """
    return find_folder(state or (str(state_root() / Path(name).name) if name else None))


def read_text(text: str, name: str) -> FairlaneConfig:
    """As `read_file`, of a text; `name` stands where the file's name stands in an error."""
    source = Source(name, text)
    return parse(_data(source), source)


def parse(data: dict[str, Any], source: Source) -> FairlaneConfig:
    """A configuration from plain data; raises BAD_FILE with `source`'s name and places."""
    named: Any = data.get("program")
    try:
        if isinstance(named, str) and is_folder(named):
            data = {**data, "program": str(folder_of(named))}
        model = config_model(load_program(named)) if isinstance(named, str) else config_model()
    except FairlaneError as ex:
        raise source.error([f"program: {ex.message}"]) from None
    try:
        return model.model_validate(data)
    except ValidationError as ex:
        raise source.error(_describe(item, model) for item in ex.errors()) from None


def _data(source: Source) -> dict[str, Any]:
    try:
        return parse_toml(source.text)
    except DocumentError as ex:
        raise bad_file(f"{source.name}: {ex}") from None


def _program_that_runs(data: dict[str, Any], state: str | None) -> str:
    """The program of the topology that is meant; empty without one."""
    given: Any = data.get("topology")
    topology = given if is_table(given) else {}
    name: Any = topology.get("name")
    try:
        return read_run_state(folder_for(name if isinstance(name, str) else "", state)).program
    except FairlaneError:  # whoever needs a topology reports what is wrong
        return DEFAULT_PROGRAM if topology.get("switches") else ""


def _describe(item: Mapping[str, Any], model: type[FairlaneConfig]) -> str:
    """One of pydantic's problems as `policies[0].scheme: …`."""
    steps = problem_path(item)
    text = describe_one({**item, "loc": steps}, model)
    own = _OWN_KEY.match(text) if item["type"] == "value_error" else None
    if own and own["key"] in allowed_keys(model, steps):  # a validator of a whole table names its key
        return f"{own['where']}.{own['key']}: {text[own.end() :]}"
    return text


# ---- where a key stands ------------------------------------------------------------------------------------------------


def positions(text: str) -> dict[str, Position]:
    """Line and column of the keys of a valid TOML text: `policies[0].scheme`. What is inside a value stands where its statement does."""
    found: dict[str, Position] = {}
    counts: dict[str, int] = {}
    prefix, statement, at, tried = "", "", (1, 1), 0
    for number, line in enumerate(text.split("\n"), 1):
        if not statement:
            at, tried = (number, len(line) - len(line.lstrip()) + 1), 0
        statement += f"{line}\n"
        tried += 1
        try:
            data = parse_toml(statement) if tried <= MAX_LINES else None
        except DocumentError:
            continue
        if data is None:
            break
        if statement.lstrip().startswith("["):
            prefix = _header(data, counts, found, at)
            data = {}
        _note(found, prefix, data, at)
        statement = ""
    return found


def _header(data: Any, counts: dict[str, int], found: dict[str, Position], at: Position) -> str:
    """The path of a table's header; an array of tables on the way means its last table."""
    path = ""
    while data:
        ((name, data),) = data.items()
        path = f"{path}.{name}" if path else name
        found.setdefault(path, at)
        if isinstance(data, list):
            counts[path] = counts.get(path, -1) + 1
            data = {}
        if path in counts:
            path = f"{path}[{counts[path]}]"
    return path


def _note(found: dict[str, Position], path: str, value: Any, at: Position) -> None:
    """A key, and all that is in its value."""
    if path:
        found.setdefault(path, at)
    if is_table(value):
        for name, one in value.items():
            _note(found, f"{path}.{name}" if path else name, one, at)
    elif is_array(value):
        for index, one in enumerate(value):
            _note(found, f"{path}[{index}]", one, at)


def nearest(found: dict[str, Position], path: str) -> Position | None:
    """The position of a key, or of the nearest thing around it that has one."""
    while path and path not in found:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return found.get(path)


# ---- what it must fulfil as a whole, and on the topology that runs -------------------------------------------------------


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


# ---- the topology that it is for: the running one that it names, with the addresses that it gives -----------------------


def find_run(loaded: Loaded, state: str | None) -> RunState:
    """The run state that `--state` names, else the file, else the only one.

    A file with a name and switches describes a topology by itself where none of that name runs: `ensure_run_folder` gives it a run state.

    Raises:
        FairlaneError: NO_TOPOLOGY when there is none; BAD_FILE when the file's own switches have no name to be found by.
    """
    topology = loaded.config.topology
    try:
        return addressed(loaded, read_run_state(folder_for(topology.name, state)))
    except FairlaneError as ex:
        if ex.code is not ErrorCode.NO_TOPOLOGY or state is not None or not topology.switches:
            raise
    if not topology.name:
        problem = "topology.switches: no topology runs that has them: give topology.name, by which commands find them"
        raise loaded.source.error([problem])
    return RunState(
        name=topology.name,
        target=topology.target,
        program=loaded.config.program or DEFAULT_PROGRAM,
        switches=tuple(_described(one, (loaded.path or Path()).parent) for one in topology.switches),
        folder=state_root() / topology.name,
    )


def ensure_run_folder(run: RunState) -> None:
    """Make the run-state folder of a topology that only a file describes, so that every command finds it. Raises BAD_FILE."""
    if (run.folder / STATE_FILE).exists():
        return
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
    except OSError as ex:
        raise bad_file(f"cannot make {run.folder}: {ex.strerror}") from None
    write_topology(run.folder, run.model_dump(mode="json", by_alias=True, exclude={"folder"}, exclude_none=True))


def running(loaded: Loaded, state: str | None) -> RunState | None:
    """As `find_run`; None when no topology runs and `state` asks for none."""
    try:
        return find_run(loaded, state)
    except FairlaneError as ex:
        if state is not None or ex.code is not ErrorCode.NO_TOPOLOGY:
            raise
        return None


def addressed(loaded: Loaded, run: RunState) -> RunState:
    """The run state with the addresses, device ids and TLS files of the file's switches; paths are relative to the file."""
    given = {one.name: _described(one, (loaded.path or Path()).parent) for one in loaded.config.topology.switches}

    def with_address(switch: SwitchState) -> SwitchState:
        new = given.get(switch.name)
        if new is None:
            return switch
        return switch.model_copy(update={"grpc": new.grpc, "device_id": new.device_id, "tls": new.tls or switch.tls})

    return run.model_copy(update={"switches": tuple(map(with_address, run.switches))})


def _described(switch: SwitchConfig, base: Path) -> SwitchState:
    """A switch as the file alone describes it; its paths are relative to the file's folder, `base`."""

    def located(value: Any) -> Any:
        if is_table(value):
            return {key: located(one) for key, one in value.items()}
        return base / value.expanduser() if isinstance(value, Path) else value

    return SwitchState.model_validate(located(switch.model_dump(by_alias=True)))
