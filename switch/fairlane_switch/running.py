# SPDX-License-Identifier: Apache-2.0
"""Finding a running topology by its run state, and its links: who is at their ends, whether the wire is there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane_controller.errors import FairlaneError
from fairlane_controller.state.run_state import find_folder, read_topology


class RunningError(RuntimeError):
    """What a command of links cannot do; `code` is one of `fairlane_controller.errors.ErrorCode`, the text says what and what is allowed."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class LinkEnd:
    """A node and its port; 0 at a host."""

    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.node}-p{self.port}" if self.port else self.node


@dataclass(frozen=True)
class RunningLink:
    """A link of a running topology."""

    name: str
    a: LinkEnd
    b: LinkEnd
    emulated: bool
    preset: str | None


@dataclass(frozen=True)
class RunningTopology:
    """A running topology."""

    name: str
    topology: str
    target: str
    wire: Path
    """The wire's control socket."""
    links: tuple[RunningLink, ...]
    switches: dict[str, Path]
    """Control socket of each switch."""
    port_rates: dict[tuple[str, int], int]
    """As the run state has them, bit/s."""
    folder: Path
    """Of the run state."""

    def link(self, name: str) -> RunningLink:
        """A link by name. Raises RunningError with the names that there are."""
        for link in self.links:
            if link.name == name:
                return link
        there = ", ".join(link.name for link in self.links)
        raise RunningError("unknown_name", f"there is no link {name!r}; there are {there or 'none'}")


def find_running(instance: str | None = None) -> RunningTopology:
    """The running topology of that name or folder; None: the one that runs, found as all commands find it.

    Raises RunningError `no_topology` when there is none, or several; `bad_file` when its state cannot be understood."""
    try:
        folder = find_folder(instance)
        state = read_topology(folder)
    except FairlaneError as error:
        raise RunningError(error.code.value, error.message) from None
    try:
        return _decode(state, folder)
    except (ValueError, KeyError, TypeError) as error:
        raise RunningError("bad_file", f"the state of {folder} is not a run's state: {error!r}") from error


def _decode(state: dict[str, Any], folder: Path) -> RunningTopology:
    return RunningTopology(
        name=state["name"],
        topology=state["topology"],
        target=state["target"],
        wire=Path(state["wire"]["control"]),
        links=tuple(
            RunningLink(link["name"], LinkEnd(**link["a"]), LinkEnd(**link["b"]), link["emulated"], link.get("preset"))
            for link in state["links"]
        ),
        switches={switch["name"]: Path(switch["control"]) for switch in state["switches"]},
        port_rates={
            (switch["name"], port["port"]): port["rate_bps"] for switch in state["switches"] for port in switch["ports"]
        },
        folder=folder,
    )
