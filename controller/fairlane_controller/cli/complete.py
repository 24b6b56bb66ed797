# SPDX-License-Identifier: Apache-2.0
"""Shell completion of names: switches, ports, tables, objects of ports, events; `complete_names` for the commands of other packages.

Quick, and silent whatever goes wrong.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

T = TypeVar("T")
State = dict[str, Any]
"""A run state, not validated: names are all we want."""


@contextlib.contextmanager
def whole_words() -> Generator[None]:
    """Inside, a place `s1:3` is one word for typer, although bash ends words at colons and replaces what is behind the last one."""
    words = os.environ.get("COMP_WORDS", "").split("\n")  # as typer's script of bash joins them
    if os.environ.get("_FAIRLANE_COMPLETE") != "complete_bash" or ":" not in words:
        yield
        return
    joined, before = list[str](), ""
    for word in words[: int(os.environ.get("COMP_CWORD", "0")) + 1]:
        if joined and (word == ":" or (word and before == ":")):
            joined[-1] += word
        else:
            joined.append(word)
        before = word
    os.environ |= {"COMP_WORDS": "\n".join(joined), "COMP_CWORD": str(len(joined) - 1)}
    printed, kept = io.StringIO(), "".join(joined[-1].rpartition(":")[:2])
    try:
        with contextlib.redirect_stdout(printed):
            yield
    finally:
        for line in printed.getvalue().splitlines():
            print(line.removeprefix(kept))


def _quiet(work: Callable[[], list[T]]) -> list[T]:
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return work()
    except (Exception, SystemExit):  # whatever it is, a shell that completes must not show it
        return []


def complete_names(
    names: Callable[[Any], Sequence[str] | Mapping[str, str]],
) -> Callable[[Any, str], list[tuple[str, str]]]:
    """A completion by names, or names and what each is, that `names` finds for the context (`run_states`)."""

    def complete(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
        def work() -> list[tuple[str, str]]:
            found = names(ctx)
            pairs = [(name, "") for name in found] if isinstance(found, Sequence) else found.items()
            return [(name, text) for name, text in pairs if name.startswith(incomplete)]

        return _quiet(work)

    return complete


def _documents(chosen: str | None = None) -> list[tuple[str, State]]:
    """Name and run state of the topologies that run, or of the one that is named."""
    from fairlane_controller.state.run_state import find_folder, read_topology, state_root
    from fairlane_controller.state.store import STATE_FILE

    folders = [find_folder(chosen)] if chosen else sorted(path.parent for path in state_root().glob(f"*/{STATE_FILE}"))
    return [(folder.name, read_topology(folder)) for folder in folders]


def _param_value(ctx: Any, name: str) -> Any:
    params = cast("dict[str, Any] | None", getattr(ctx, "params", None))
    return (params or {}).get(name)


def run_states(ctx: Any) -> list[State]:
    """The run states that the command line means so far."""
    chosen = _param_value(ctx, "state")
    return [document for _, document in _documents(chosen)]


def _named_switches(ctx: Any) -> list[str]:
    found: Any = _param_value(ctx, "switch") or []
    return [found] if isinstance(found, str) else list(found)


def _switches(ctx: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [s for state in run_states(ctx) for s in state.get("switches", [])]
    wanted = _named_switches(ctx)
    return [s for s in found if s["name"] in wanted] or found


def complete_state(incomplete: str) -> list[tuple[str, str]]:
    """Names of the topologies that run."""

    def work() -> list[tuple[str, str]]:
        return [(name, str(document.get("name", ""))) for name, document in _documents() if name.startswith(incomplete)]

    return _quiet(work)


def complete_switch(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """Names of the switches."""

    def work() -> list[tuple[str, str]]:
        found = [s for state in run_states(ctx) for s in state.get("switches", [])]
        names = {str(s["name"]): str(s.get("grpc", "")) for s in found}
        return [(name, grpc) for name, grpc in names.items() if name.startswith(incomplete)]

    return _quiet(work)


def complete_port(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """Ports of the switches that are named, those that are managed first; as `s1:3` too where none is named."""
    return _quiet(lambda: _ports(ctx, incomplete))


def _ports(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    places = not _named_switches(ctx)
    ports = [(s, p) for s in _switches(ctx) for p in s.get("ports", [])]
    for switch, port in sorted(ports, key=lambda pair: not pair[1].get("bottleneck")):
        text = f"{switch['name']} {port.get('interface', '')}{' managed' if port.get('bottleneck') else ''}"
        if places:
            found[f"{switch['name']}:{port['port']}"] = text
        found.setdefault(str(port["port"]), text)
    return [(name, text) for name, text in found.items() if name.startswith(incomplete)]


def complete_object(ctx: Any, incomplete: str) -> list[str]:
    """Names of the objects that the topology's program remembers."""

    def work() -> list[str]:
        from fairlane_controller.program.registry import load_program
        from fairlane_controller.state.run_state import find_folder, read_run_state

        run = read_run_state(find_folder(_param_value(ctx, "state")))
        program = load_program(run.program)
        names = (name for kind in program.kinds for name in program.object_names(kind.name, run.folder))
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

    from fairlane_controller.verbs.grammar import next_words

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
