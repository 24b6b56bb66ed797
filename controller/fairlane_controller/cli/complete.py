# SPDX-License-Identifier: Apache-2.0
"""Shell completion of names: topologies, switches, ports; `complete_names` for the commands of other packages.

Quick, and silent whatever goes wrong.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

State = dict[str, Any]
"""A run state, not validated: only names are read."""


def complete_names(
    names: Callable[[Any], Mapping[str, str] | Iterable[str]],
) -> Callable[[Any, str], list[tuple[str, str]]]:
    """A completion for typer by names, or names and what each is, that `names` finds for the context (`run_states`)."""

    def complete(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                found = names(ctx)
                texts = cast("Mapping[str, str]", found) if isinstance(found, Mapping) else dict.fromkeys(found, "")
                return [(name, text) for name, text in texts.items() if name.startswith(incomplete)]
        except (Exception, SystemExit):  # whatever it is, a shell that completes must not show it
            return []

    return complete


def _documents(chosen: str | None = None) -> Iterator[tuple[str, State]]:
    """Name and run state of the topologies that run, or of the one that is named."""
    from fairlane_controller.state.run_state import find_folder, read_topology, run_folders

    for folder in [find_folder(chosen)] if chosen else run_folders():
        yield folder.name, read_topology(folder)


def run_states(ctx: Any) -> list[State]:
    """The run states that the command line means so far."""
    return [document for _, document in _documents(ctx.params.get("state"))]


def _switches(ctx: Any) -> list[State]:
    return [one for state in run_states(ctx) for one in state.get("switches", ())]


@complete_names
def complete_state(_: Any) -> dict[str, str]:
    """Names of the topologies that run."""
    return {name: str(document.get("name", "")) for name, document in _documents()}


@complete_names
def complete_switch(ctx: Any) -> dict[str, str]:
    """Names of the switches."""
    return {str(one["name"]): str(one.get("grpc", "")) for one in _switches(ctx)}


@complete_names
def complete_port(ctx: Any) -> dict[str, str]:
    """Ports of the switches that are named, those that are managed first; as `s1:3` too where none is named."""
    named, found = ctx.params.get("switch") or (), dict[str, str]()
    ports = [(s, p) for s in _switches(ctx) if not named or s["name"] in named for p in s.get("ports", ())]
    for switch, port in sorted(ports, key=lambda pair: not pair[1].get("bottleneck")):
        text = f"{switch['name']} {port.get('interface', '')}{' managed' if port.get('bottleneck') else ''}"
        if not named:
            found[f"{switch['name']}:{port['port']}"] = text
        found.setdefault(str(port["port"]), text)
    return found
