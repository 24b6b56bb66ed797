# SPDX-License-Identifier: Apache-2.0
"""Everything beside its seed that decides what a run gives: the one list of it, for the key of a campaign and a run folder's copies.

- the experiment's file with what it extends, and the topology files, as the scenarios were made from them;
- what scenarios only name: programs, senders of the user's own, traces, commands (`scenario_inputs`);
- fairlane itself, by hashes: code, compiled P4, native module, and the kernel where hosts are real (`build_hashes`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fairlane_controller.program.registry import is_folder, load_program
from fairlane_hosts.build import ROOT as HOSTS
from fairlane_hosts.build import SIMULATED_SENDER
from fairlane_hosts.variants import VARIANTS
from fairlane_switch.link_series import FILE_KEYS
from fairlane_topology.links import TOPOLOGIES

from fairlane_lab.definition.loading import Definition
from fairlane_lab.paths import REPOSITORY, digest_files
from fairlane_lab.scenario import Scenario, plain_configuration
from fairlane_lab.sim.kernel import BUILT

PYTHON = ("fairlane_lab", "fairlane_controller", "fairlane_hosts", "fairlane_switch", "fairlane_topology")
"""Packages whose code decides what a run gives."""
COPIES = "inputs"
"""The folder of a run folder that has the files, those of fairlane's tree in `fairlane/`, others in `own/`."""
NOT_OF_A_PROGRAM = frozenset({"__pycache__", "ptf", "results"})
"""Folders inside a program's folder."""


@dataclass(frozen=True)
class Input:
    """Files that a scenario, or the experiment, names."""

    kind: str
    """experiment, topology, program, sender, trace or command."""
    given: str
    """As the scenario has it: a name, or a path."""
    files: tuple[Path, ...]

    @property
    def digest(self) -> str:
        """Of the files' names and bytes: 12 hexadecimal digits."""
        return digest_files(self.files, 12)

    @property
    def stamps(self) -> list[tuple[int, int, int] | None]:
        """Of each file what changes when it does, without reading it: inode, bytes, and time in ns; None where there is no file."""
        return [_stamp(file) for file in self.files]

    def name(self, folder: Path) -> str:
        """`program own`: a path as seen from `folder`, the experiment's."""
        path = str(self.files[0]) if self.kind == "trace" and self.files else self.given
        return f"{self.kind} {os.path.relpath(path, folder) if Path(path).is_absolute() else path}"


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def campaign_inputs(definition: Definition, scenarios: Iterable[Scenario]) -> list[Input]:
    """The files of an experiment's scenarios, its own file first."""
    found = [Input("experiment", definition.experiment.name, _there(definition.source.files))]
    for scenario in {each.point: each for each in scenarios}.values():
        if (file := scenario.topology_file) is not None:
            files = _there([file])
            given = file.stem if file.parent == TOPOLOGIES else str(files[0] if files else file)
            found.append(Input("topology", given, files))
        found += scenario_inputs(scenario)
    return list(dict.fromkeys(found))


def scenario_inputs(scenario: Scenario) -> list[Input]:
    """What a scenario names and does not hold. Raises FairlaneError for a program that there is not."""
    return [Input("program", scenario.program, _program_files(scenario.program)), *_own_inputs(scenario)]


def _own_inputs(scenario: Scenario) -> list[Input]:
    """Those that can only be the user's own."""
    found: list[Input] = []
    for name in dict.fromkeys(flow.variant for flow in scenario.flows):
        folder = VARIANTS[name].folder if name in VARIANTS else None
        if folder is not None:
            found.append(Input("sender", name, _there([folder / "sender.py", *sorted(folder.glob("*.h"))])))
    changed = (change.model_dump(mode="json") for change in scenario.changes)
    for trace in dict.fromkeys([*_traces(scenario.topology), *_traces(list(changed))]):
        found.append(Input("trace", trace, _there([Path(trace)])))
    commands = [command for flow in scenario.flows for command in (flow.app.command, flow.app.receiver_command)]
    for word in dict.fromkeys(command[0] for command in commands if command):
        program = shutil.which(word)
        found.append(Input("command", word, _there([Path(program)] if program else [])))
    return found


def configuration(scenario: Scenario) -> str:
    """Of all that is run, without experiment, point and seed: 12 hexadecimal digits. With the same seed it gives the same numbers, in whatever experiment.

    Files of the user's own count by what is in them, not by where they lie.
    """
    text = plain_configuration(scenario)
    for each in (scenario_inputs if is_folder(scenario.program) else _own_inputs)(scenario):
        text = text.replace(json.dumps(each.given), json.dumps(f"{each.kind} {each.digest}"))
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


@cache
def build_hashes(kernel: bool = False) -> Mapping[str, str]:
    """`code`, `p4`, `native`, and `kernel` where that is asked for: 12 hexadecimal digits each; an empty text where there is none. Read once a process."""
    sources = [path for name in PYTHON for path in sorted(_package(name).rglob("*.py"))]
    sources += [
        *sorted((HOSTS / "cc").glob("*.h")),
        SIMULATED_SENDER,
    ]  # a sender of the user's own is compiled with them
    compiled = sorted((REPOSITORY / "p4src" / "compiled").glob("*.json"))
    native = sorted(_package("fairlane_switch").glob("native*.so"))
    files = {"code": sources, "p4": compiled, "native": native}
    if kernel:
        files["kernel"] = [BUILT / "linux", BUILT / "guest"]
    return {name: _hash([path for path in paths if path.is_file()]) for name, paths in files.items()}


def copy_inputs(inputs: Sequence[Input], folder: Path) -> Path:
    """Copy all files into `folder`, in the place of what is there: below it they lie to each other as they do now. Returns the experiment's. Raises OSError."""
    files = list(dict.fromkeys(file for each in inputs for file in each.files))
    others = [file for file in files if not file.is_relative_to(REPOSITORY)]
    root = os.path.commonpath([file.parent for file in others]) if others else ""
    shutil.rmtree(folder, ignore_errors=True)
    places: list[Path] = []
    for file in files:
        ours = file.is_relative_to(REPOSITORY)
        place = Path("fairlane", file.relative_to(REPOSITORY)) if ours else Path("own", file.relative_to(root))
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / place)
        places.append(place)
    return places[0] if places else Path()


@cache
def digest_once(each: Input) -> str:
    """The digest of files as this process first read them: what it has loaded of a program stays."""
    return each.digest


@cache
def _program_files(name: str) -> tuple[Path, ...]:
    """Python and P4 of a program's folder, and what was compiled."""
    program = load_program(name)
    folder, compiled = Path(inspect.getfile(type(program))).parent, program.pipeline()
    sources = [path for path in _walk(folder) if path.suffix in (".py", ".p4")]
    return _there([*sources, compiled.json, compiled.p4info])


def _walk(folder: Path) -> Iterator[Path]:
    """The files of a program's folder, without run folders, which may lie in it."""
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in NOT_OF_A_PROGRAM and name[0] != "." and not Path(at, name, "campaign.json").exists()
        )
        yield from (Path(at, name) for name in sorted(names))


def _traces(document: Any) -> Iterator[str]:
    """Every file that a series in a document names."""
    if isinstance(document, Mapping):
        for key, value in document.items():  # pyright: ignore[reportUnknownVariableType]
            if key in FILE_KEYS and isinstance(value, str):
                yield value
            else:
                yield from _traces(value)
    elif isinstance(document, list):
        for value in document:  # pyright: ignore[reportUnknownVariableType]
            yield from _traces(value)


def _there(files: Sequence[Path]) -> tuple[Path, ...]:
    """Those that are files, by the real paths of their folders. What is missing is told by who needs it."""
    return tuple(file.absolute().parent.resolve() / file.name for file in files if file.is_file())


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else Path("/nonexistent")


def _hash(paths: Sequence[Path]) -> str:
    return digest_files(paths, 12) if paths else ""
