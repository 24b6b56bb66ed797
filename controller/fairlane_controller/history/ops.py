# SPDX-License-Identifier: Apache-2.0
"""The requests that take a change back: by which name, and who applies each; all of a list or none."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError, unknown_name
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.ask import ask, loop_runs
from fairlane_controller.state.intent import taking_back
from fairlane_controller.state.run_state import RunState
from fairlane_controller.state.store import release_room
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.switch.setup import endpoint_of

Request = dict[str, Any]


@dataclass(frozen=True)
class Context:
    """Where a request is applied: a running topology."""

    folder: Path
    run: RunState
    given: tuple[Endpoint, ...] = ()
    "Switches that were named by their address, before those of the topology."

    @property
    def has_folder(self) -> bool:
        """Whether there is a run-state folder, and not switches alone."""
        return bool(self.folder.parts)

    @property
    def loop_runs(self) -> bool:
        """Whether a control loop runs: then it is the primary, and writes of table entries go through its socket."""
        return loop_runs(self.folder)

    async def ask(self, request: Request) -> Any:
        """Ask the running loop; what it raises."""
        return await ask(self.folder, request)

    def endpoint(self, switch: str) -> Endpoint:
        """Where a switch is; UNKNOWN_NAME when there is none of that name."""
        named = next((one for one in self.given if one.name == switch), None)
        return named or endpoint_of(self.run.switch(switch))


class NotTakenBack(FairlaneError):
    """A change was refused, and a part that was made before could not be taken back."""

    def __init__(self, problem: FairlaneError, left: Sequence[tuple[Request, FairlaneError]]) -> None:
        texts = "; ".join(second.message for _, second in left)
        code = ErrorCode.REFUSED if problem.code is ErrorCode.BAD_INPUT else problem.code
        text = f"{problem.message}; and a part that was changed before could not be taken back: {texts}"
        super().__init__(code, text, half_made=True)
        self.problem = problem
        self.left = left
        "The requests that take the rest back, each with what was wrong."


Apply = Callable[[Context, Request], Awaitable[list[Request]]]
"""Applies one request, or raises FairlaneError with nothing changed; returns the requests that take it back, in their order."""

MODULES: dict[str, str] = {
    "table_write": "fairlane_controller.history.standard",
    "loop_put": "fairlane_controller.config.apply",
    "config_note": "fairlane_controller.config.apply",
    "port_put": "fairlane_controller.config.port_change",
}
"""Who registers which request: imported when one is to be applied, since the command line imports a room only when it needs it.
Programs have requests of their own (`Program.undo_requests`)."""
_REGISTERED: dict[str, Apply] = {}


def register(op: str, apply: Apply) -> None:
    """Say who applies the requests called `op`; once, when the room's module is imported. Name the module in `MODULES` too."""
    if _REGISTERED.get(op, apply) is not apply:
        raise ValueError(f"the request {op!r} is registered already")
    _REGISTERED[op] = apply


def apply_of(context: Context, request: Request) -> Apply:
    """The handler of a request. Raises UNKNOWN_NAME when there is none."""
    op = str(request.get("op"))
    if op not in _REGISTERED and op in MODULES:
        importlib.import_module(MODULES[op])
    if op in _REGISTERED:
        return _REGISTERED[op]
    program = load_program(context.run.program)
    if op not in program.undo_requests:
        raise unknown_name("request of a history", op, {*_REGISTERED, *MODULES, *program.undo_requests})
    return program.load(program.undo_requests[op])


async def apply_all(context: Context, requests: Sequence[Request]) -> list[Request]:
    """Apply all, in their order, or none: what was applied is taken back when one is refused. Returns what takes all back."""
    appliers = [apply_of(context, request) for request in requests]
    inverse: list[Request] = []
    for request, apply in zip(requests, appliers, strict=True):
        try:
            inverse = [*await apply(context, request), *inverse]
        except FairlaneError as problem:
            left = await take_back(context, inverse)
            if not left:
                raise
            raise NotTakenBack(problem, left) from None
    return inverse


async def take_back(context: Context, requests: Sequence[Request]) -> list[tuple[Request, FairlaneError]]:
    """Everything that can be taken back is, even when a part cannot: those are returned, each with what is wrong."""
    release_room()
    failed: list[tuple[Request, FairlaneError]] = []
    with taking_back():
        for request in requests:
            try:
                await apply_of(context, request)(context, request)
            except FairlaneError as problem:
                failed.append((request, problem))
    return failed
