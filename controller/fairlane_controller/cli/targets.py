# SPDX-License-Identifier: Apache-2.0
"""Which switches a command means: `--state`, `--switch` and a port `s1:3`, by default all of the running topology."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from pathlib import Path

from fairlane_controller.cli.model_options import replacing
from fairlane_controller.cli.options import PortRef, StateOption, SwitchOption
from fairlane_controller.errors import ErrorCode, bad_file, bad_input
from fairlane_controller.state.ask import loop_runs
from fairlane_controller.state.run_state import RunState, find_folder, read_run_state
from fairlane_controller.switch.client import Endpoint, endpoint_of
from fairlane_controller.switch.security import tls_of_environment
from fairlane_controller.switch.shared import CPU_PORT

_ADDRESS = re.compile(
    r"^(?P<name>[A-Za-z0-9_.-]+)=(?P<grpc>(\[[0-9A-Fa-f:.]+\]|[^\[\]:@\s]+):(?P<port>\d{1,5}))(@(?P<id>\d+))?$"
)


@dataclass(frozen=True)
class Targets:
    """The switches that a command works on, and the topology they belong to."""

    endpoints: tuple[Endpoint, ...]
    run: RunState | None = None

    @property
    def folder(self) -> Path | None:
        """The run-state folder, if there is one."""
        return self.run.folder if self.run else None

    @property
    def loop_folder(self) -> Path | None:
        """The run-state folder when a loop runs there."""
        folder = self.folder
        return folder if folder is not None and loop_runs(folder) else None

    def one(self, port: PortRef | None = None) -> Endpoint:
        """The only switch that is meant; BAD_INPUT, with the names, where there are several. `port`: what was typed, if a port names the switch."""
        if len(self.endpoints) != 1:
            names = ", ".join(endpoint.name for endpoint in self.endpoints)
            example = f"{self.endpoints[0].name}:{port.name if port.name.isdecimal() else 3}" if port else ""
            way = f"port {port.name!r}: must be SWITCH:PORT, e.g. {example}" if port else "name a switch with --switch"
            raise bad_input(f"{way} (there are {names})")
        return self.endpoints[0]

    def need_run(self) -> RunState:
        """The topology; NO_TOPOLOGY when the switches were named by address alone."""
        if self.run is None:
            problem = "this command needs the run state of a topology (routes, ports, program): --state NAME"
            raise ErrorCode.NO_TOPOLOGY(problem)
        return self.run


def parse_endpoint(text: str) -> Endpoint:
    """`s1=127.0.0.1:50051` or `s1=[::1]:50051@1`; BAD_INPUT otherwise."""
    found = _ADDRESS.match(text)
    if not found or not 0 < int(found["port"]) < 65_536:
        problem = (
            "must be NAME=HOST:PORT or NAME=HOST:PORT@DEVICE_ID with a port of 1 to 65535, e.g. s1=127.0.0.1:50051"
        )
        raise bad_input(f"--switch {text!r}: {problem}")
    return Endpoint(found["name"], found["grpc"], int(found["id"] or 1), tls_of_environment())


def resolve(state: str | None, switches: list[str] | None, port: PortRef | None = None) -> Targets:
    """The switches named, that of a port `s1:3`, or all of the running topology. BAD_INPUT where a switch is named twice."""
    named = switches or []
    if port is not None and port.switch is not None:
        if named and port.switch not in named:
            raise bad_input(f"{port.switch}:{port.name} names its switch: leave --switch out")
        named = [port.switch]
    given = tuple(parse_endpoint(text) for text in named if "=" in text)
    if given and state is None:
        if len(given) != len(named):
            raise bad_input("--switch: either names of a topology or NAME=HOST:PORT, not both")
        return Targets(given)
    run = read_run_state(find_folder(state))
    if given:
        return Targets(given, run)
    chosen = [run.switch(name) for name in named] if named else list(run.switches)
    if not chosen:
        raise bad_file(f"the topology {run.name!r} has no switch")
    return Targets(tuple(endpoint_of(s) for s in chosen), run)


on_switches = replacing(
    "targets",
    [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in {"state": StateOption, "switch": SwitchOption}.items()
    ],
    lambda values, given: resolve(values["state"], values["switch"], given.get("port")),
)
"""Gives a command `--state` and `--switch`; its parameter `targets` gets the switches that they, and its parameter `port`, mean."""


def known_port(targets: Targets, ref: PortRef | None) -> int | None:
    """The port's number; UNKNOWN_NAME with the ports that there are, when the run state lists them and it is none of them."""
    if ref is None or targets.run is None:
        return None if ref is None else ref.number
    names = {endpoint.name for endpoint in targets.endpoints}
    switches = [switch for switch in targets.run.switches if switch.name in names]
    known = {one.port for switch in switches for one in switch.ports}
    if ref.number not in {*known, CPU_PORT} and all(switch.ports for switch in switches):
        listed = ", ".join(map(str, sorted(known)))
        raise ErrorCode.UNKNOWN_NAME(f"{', '.join(sorted(names))} has no port {ref.number}; valid: {listed}")
    return ref.number
