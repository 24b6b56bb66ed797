# SPDX-License-Identifier: Apache-2.0
"""Shell completion of names: switches, ports, tables, VCs, events. Quick, and silent whatever goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

T = TypeVar("T")


def _quiet(work: Callable[[], list[T]]) -> list[T]:
    try:
        return work()
    except (Exception, SystemExit):  # whatever it is, a shell that completes must not show it
        return []


def _documents(chosen: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Name and run state of the topologies that run, or of the one that is named. Not validated: names are all we want."""
    from fairlane_controller.state.run_state import find_folder, read_topology, state_root
    from fairlane_controller.state.store import STATE_FILE

    folders = [find_folder(chosen)] if chosen else sorted(path.parent for path in state_root().glob(f"*/{STATE_FILE}"))
    return [(folder.name, read_topology(folder)) for folder in folders]


def _param_value(ctx: Any, name: str) -> Any:
    params = cast("dict[str, Any] | None", getattr(ctx, "params", None))
    return (params or {}).get(name)


def _states(ctx: Any) -> list[dict[str, Any]]:
    """The run states that the command line means so far."""
    return [document for _, document in _documents(_param_value(ctx, "state"))]


def _switches(ctx: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [s for state in _states(ctx) for s in state.get("switches", [])]
    wanted = cast("list[str]", list(_param_value(ctx, "switch") or []))
    return [s for s in found if s["name"] in wanted] or found


def complete_state(incomplete: str) -> list[tuple[str, str]]:
    """Names of the topologies that run."""

    def work() -> list[tuple[str, str]]:
        return [(name, str(document.get("name", ""))) for name, document in _documents() if name.startswith(incomplete)]

    return _quiet(work)


def complete_switch(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """Names of the switches."""

    def work() -> list[tuple[str, str]]:
        found = [s for state in _states(ctx) for s in state.get("switches", [])]
        names = {str(s["name"]): str(s.get("grpc", "")) for s in found}
        return [(name, grpc) for name, grpc in names.items() if name.startswith(incomplete)]

    return _quiet(work)


def complete_port(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """Ports of the switches that are named, those that are managed first."""

    def work() -> list[tuple[str, str]]:
        found: dict[str, str] = {}
        ports = [(s, p) for s in _switches(ctx) for p in s.get("ports", [])]
        for switch, port in sorted(ports, key=lambda pair: not pair[1].get("bottleneck")):
            text = f"{switch['name']} {port.get('interface', '')}{' managed' if port.get('bottleneck') else ''}"
            found.setdefault(str(port["port"]), text)
        return [(number, text) for number, text in found.items() if number.startswith(incomplete)]

    return _quiet(work)


def complete_vc(ctx: Any, incomplete: str) -> list[str]:
    """Names of the VCs that the topology's program remembers."""

    def work() -> list[str]:
        from fairlane_controller.program.registry import load_program
        from fairlane_controller.state.run_state import find_folder, read_run_state

        run = read_run_state(find_folder(_param_value(ctx, "state")))
        names = load_program(run.program).object_names("vc", run.folder)
        return [name for name in names if name.startswith(incomplete)]

    return _quiet(work)


def complete_row_kinds(incomplete: str) -> list[str]:
    """Kinds of rows of an export, of any program."""

    def work() -> list[str]:
        from fairlane_controller.program.registry import loaded_programs

        kinds = [kind.many for program in loaded_programs() for kind in program.kinds]
        return [name for name in dict.fromkeys(("ports", "drops", *kinds)) if name.startswith(incomplete)]

    return _quiet(work)


def complete_verb_words(ctx: Any, incomplete: str) -> list[str]:
    """What may come next behind a verb of simple_switch_CLI."""

    def work() -> list[str]:
        begun = [str(ctx.info_name), *cast("list[str]", _param_value(ctx, "words") or [])]
        return [word for word in _next_words(ctx, begun) if word.startswith(incomplete)]

    return _quiet(work)


def _next_words(ctx: Any, begun: Sequence[str]) -> list[str]:
    from finsy import P4Schema

    from fairlane_controller.verbs.complete import next_words

    for switch in _switches(ctx):
        path = switch.get("p4info")
        if path and Path(path).is_file():
            return next_words(P4Schema(Path(path)), begun)
    return []


def complete_event(ctx: Any, incomplete: str) -> list[str]:
    """Names of events that the log holds."""

    def work() -> list[str]:
        from fairlane_controller.live.events import EventTail
        from fairlane_controller.state.events import EVENTS_FILE
        from fairlane_controller.state.run_state import find_folder

        events = EventTail(find_folder(_param_value(ctx, "state")) / EVENTS_FILE, first=5_000).new()
        return sorted({str(e["event"]) for e in events if str(e["event"]).startswith(incomplete)})

    return _quiet(work)
