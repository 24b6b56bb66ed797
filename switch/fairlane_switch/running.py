# SPDX-License-Identifier: Apache-2.0
"""Finding a running topology by its run state (docs/design.md), and its links: who is at their ends, whether the wire is there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane_controller.state.run_state import STATE_FILE, state_root


class RunningError(RuntimeError):
    """What a command of links cannot do; `code` is stable, the text says what and what is allowed."""

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
    """As it was started, bit/s."""

    def link(self, name: str) -> RunningLink:
        """A link by name. Raises RunningError with the names that there are."""
        for link in self.links:
            if link.name == name:
                return link
        there = ", ".join(link.name for link in self.links)
        raise RunningError("unknown_name", f"there is no link {name!r}; there are {there or 'none'}")


def find_running(instance: str | None = None) -> RunningTopology:
    """The running topology of that name; None: the one that runs. Raises RunningError `no_topology` when there is none, or several."""
    files = {path.parent.name: path for path in sorted(state_root().glob(f"*/{STATE_FILE}"))}
    if instance is not None and instance not in files:
        there = f"running: {', '.join(files)}" if files else "none runs; `make run` starts one"
        raise RunningError("no_topology", f"no topology {instance!r} runs; {there}")
    if instance is None and len(files) != 1:
        what = f"several topologies run: {', '.join(files)}; say which with --instance" if files else "no topology runs"
        raise RunningError("no_topology", what if files else f"{what}; `make run` starts one")
    path = files[instance] if instance is not None else next(iter(files.values()))
    try:
        return _decode(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunningError("no_topology", f"{path} is not a run's state: {error!r}") from error


def _decode(state: dict[str, Any]) -> RunningTopology:
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
    )
